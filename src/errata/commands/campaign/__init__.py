"""Commands on campaigns: plan, decide, run, look, roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.campaign import decide, plan, rollback, run, show, status

__all__ = ["decide", "plan", "rollback", "run", "show", "status"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
