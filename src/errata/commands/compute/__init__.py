"""Commands that compute: run, pause, resume, cancel, retry, submit, late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.compute import control, late, run, submission

__all__ = ["control", "late", "run", "submission"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
