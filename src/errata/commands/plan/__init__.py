"""Commands before any work: try, plan, show, approve, decline, standing approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.plan import approve, explain, plan, show, stale, standing, try_

__all__ = ["approve", "explain", "plan", "show", "stale", "standing", "try_"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
