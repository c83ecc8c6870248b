"""Render whether consumers of a run show what was published. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import format_columns
from errata.text.numbers import format_duration

if TYPE_CHECKING:
    from errata.views.recovery_line import RecoveryLine

_SIGNS = {"pending": "▶", "recovered": "✓", "failed": "✗", "waived": "!"}


def render_recovery(state: str, lines: Sequence[RecoveryLine], width: int) -> list[str]:
    """The state of the run's recovery, and a line for each consumer."""
    rows = [[f"{_SIGNS[line.state]} {line.consumer}", _describe(line)] for line in lines]
    return [f"recovery: {state}", *format_columns(rows, width)]


def _describe(line: RecoveryLine) -> str:
    if line.state == "waived":
        return f"not recovered (waived by {line.waived_by}: {line.waived_why})"
    told = [line.state]
    if line.seconds_left is not None:
        left = format_duration(abs(line.seconds_left))
        told.append(f"late by {left}" if line.seconds_left < 0 else f"{left} left")
    elif line.is_late:
        told.append("late")
    why = line.error or line.waits
    return ", ".join(told) + (f": {why}" if why else "")
