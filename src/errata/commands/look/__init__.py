"""Commands that look and change nothing: status, why, runs, history, runbook, impact, stale, quarantine, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.look import history, impact, metrics, quarantine, run_list, runbook, stale, status, why

__all__ = ["history", "impact", "metrics", "quarantine", "run_list", "runbook", "stale", "status", "why"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
