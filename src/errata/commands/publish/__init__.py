"""Commands from the gate to main and back: validate, diff, report, release, publish, rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.publish import diff, preview, publish, publish_wait, release, report, rollback, validate

__all__ = ["diff", "preview", "publish", "publish_wait", "release", "report", "rollback", "validate"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
