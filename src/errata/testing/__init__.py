"""For tests of projects and of Errata itself: named failpoints that stop, kill or delay a command.

>>> with arm("publish.before_commit", lambda: None):
...     pass
"""

from __future__ import annotations

from errata.failpoints import NAMES, arm

__all__ = ["NAMES", "arm"]
