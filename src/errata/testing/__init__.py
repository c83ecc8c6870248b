"""Helpers for tests of projects and of Errata: failpoints that stop, kill or delay a command, and fake suppressions.

>>> with arm("publish.before_commit", lambda: None):
...     pass
"""

from __future__ import annotations

from errata.failpoints import NAMES, arm
from errata.testing.erasure import FakeSuppressions

__all__ = ["NAMES", "FakeSuppressions", "arm"]
