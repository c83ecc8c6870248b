"""Render copies of a run, and what copies hold, compared with the lake. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import format_columns, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from errata.views.copies import BaselineCopy, BaselineView, CheckedCopy, CopiesCheckView, CopyLine

_SIGNS = {"pending": "▶", "delivered": "✓", "failed": "✗", "waived": "!"}
_SHOWN = 10
"""Most partitions that are listed one by one."""


def render_copies(lines: Sequence[CopyLine], grain: str, width: int) -> list[str]:
    """A line for each copy; below it what is missing, and why."""
    rows = [[f"{_SIGNS[line.state]} {line.warehouse}:{line.table}", _describe(line)] for line in lines]
    shown: list[str] = []
    for line, row in zip(lines, format_columns(rows, width), strict=True):
        shown += wrap(row, width) if len(row) > width else [row]
        if line.missing:
            shown += wrap(f"not there: {format_partitions(grain, line.missing)}", width, "      ")
        if line.error and line.state != "delivered":
            shown += wrap(line.error, width, "      ")
    return shown


def _describe(line: CopyLine) -> str:
    if line.state == "waived":
        return f"not delivered (waived by {line.waived_by}: {line.waived_why})"
    at = f" {format_moment(line.delivered_at)} UTC" if line.delivered_at else ""
    needed = ", required" if line.required and line.state != "delivered" else ""
    return f"{line.state}{at}, {plural(len(line.partitions), 'partition')}{needed}"


def render_baseline(view: BaselineView, steps: Sequence[str], width: int) -> list[str]:
    """Each copy with the partitions that differ from main, and what was decided."""
    shown = [line for copy in view.copies for line in _render_copy(copy, width)]
    told = f"✓ accepted as they are: {view.reason}" if view.is_accepted else "nothing was accepted: no reason was given"
    shown += ["", *wrap(told, width)]
    if view.retried:
        shown += wrap(f"tried again: {plural(len(view.retried), 'failed item')}", width)
    return [*shown, *(f"next: {step}" for step in steps)]


def _render_copy(copy: BaselineCopy, width: int) -> list[str]:
    same = len(copy.partitions) - len(copy.differing)
    head = f"{copy.warehouse}:{copy.table}   {plural(len(copy.partitions), 'partition')}   {same} as main"
    differing = [one for one in copy.partitions if not one.is_same]
    rows = [
        [f"! {one.partition}", f"main {one.lake_rows:,}", f"copy {one.copy_rows:,} rows"] for one in differing[:_SHOWN]
    ]
    more = len(differing) - len(rows)
    return [head, *format_columns(rows, width), *([f"  and {more:,} more"] if more else [])]


_WHY = {"changed": "changed by others", "undelivered": "not delivered"}


def render_copies_check(view: CopiesCheckView, steps: Sequence[str], width: int) -> list[str]:
    """Each copy with the partitions that differ, and those that could not be compared."""
    shown = [f"{view.product} at snapshot {view.snapshot_id or 'none'}"]
    for copy in view.copies:
        shown += _render_checked(copy, view.grain, width)
    return [*shown, *(["", *(f"next: {step}" for step in steps)] if steps else [])]


def _render_checked(copy: CheckedCopy, grain: str, width: int) -> list[str]:
    name = f"{copy.warehouse}:{copy.table}"
    if copy.error:
        return [f"✗ {name}   not compared", *wrap(copy.error, width, "      ")]
    if not copy.checked_count:
        shown = [f"– {name}   nothing to compare"]
        return shown + _render_left_out(copy, grain, width)
    told = f"{plural(len(copy.differing), 'partition')} differ" if len(copy.differing) != 1 else "1 partition differs"
    head = f"{'✗' if copy.differing else '✓'} {name}   {plural(copy.checked_count, 'partition')} compared"
    shown = [f"{head}, {told if copy.differing else 'all as in the lake'}"]
    rows = [
        [f"    {one.partition}", f"lake {one.lake_rows:,}", f"copy {one.copy_rows:,} rows", _WHY[one.why]]
        for one in copy.differing[:_SHOWN]
    ]
    more = len(copy.differing) - len(rows)
    shown += [*format_columns(rows, width), *([f"    and {more:,} more"] if more else [])]
    if copy.waived_by and copy.differing:
        shown += wrap(f"{copy.waived_by} waived a delivery to it", width, "      ")
    return shown + _render_left_out(copy, grain, width)


def _render_left_out(copy: CheckedCopy, grain: str, width: int) -> list[str]:
    """Partitions that were not compared, and why."""
    shown: list[str] = []
    if copy.moved_on:
        shown += wrap(f"moved on in the lake, not compared: {format_partitions(grain, copy.moved_on)}", width, "      ")
    if copy.baseline:
        listed = format_partitions(grain, copy.baseline)
        shown += wrap(f"accepted with other rows than the lake's, not compared: {listed}", width, "      ")
    if copy.unknown:
        shown += wrap(f"never delivered: {format_partitions(grain, copy.unknown)}", width, "      ")
    return shown
