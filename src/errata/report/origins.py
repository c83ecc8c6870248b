"""Section on events by origin and rule: those of the run, of main before it, and of the superseded run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.report.html import render_section, render_table
from errata.text.markup import Child
from errata.text.numbers import format_exact
from errata.views.report import OriginCount


def render_origins(counts: Sequence[OriginCount]) -> list[Child]:
    """One row for each origin and rule version; no section if the run rebuilds no events."""
    if not counts:
        return []
    has_superseded = any(one.superseded is not None for one in counts)
    head = ("Origin", "Rule", "Confidence", *(("Superseded run",) if has_superseded else ()), "Main before", "This run")
    rows = [
        [
            one.origin,
            f"{one.rule} {one.version}" if one.rule else "–",
            one.confidence or "–",
            *([_format(one.superseded)] if has_superseded else []),
            _format(one.before),
            format_exact(one.rows),
        ]
        for one in counts
    ]
    numbers = tuple(range(3, len(head)))
    table = render_table(head, rows, caption="Events by origin and rule", numbers=numbers, classes="stack")
    return [render_section("Where events come from", table, name="origins")]


def _format(count: int | None) -> str:
    return "–" if count is None else format_exact(count)
