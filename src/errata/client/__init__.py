"""The Client: every command as a method; it receives its ports and knows no adapter.

Each method resolves the acting person, runs the command from :mod:`errata.commands` and returns a frozen view with the
fields of ``--json``. ``as_`` is the person to act as.
"""

from __future__ import annotations

from errata.client.client import Client
from errata.views.checks import DoctorCheck

__all__ = ["Client", "DoctorCheck"]
