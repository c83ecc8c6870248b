"""A trial as text: what was computed, what the gate would say, what would change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errata.canonical import plain
from errata.cli.render.diff import change_lines, diff_data
from errata.cli.render.gate import rule_lines
from errata.cli.render.layout import flow, next_lines, wrap
from errata.cli.render.throttle import folded
from errata.model.partition import Grain, list_text
from errata.text.numbers import count, duration

if TYPE_CHECKING:
    from errata.views.run import TryView

_NAMED = 5
"""So many partitions are written out in the next command."""


def try_data(view: TryView) -> dict[str, Any]:
    """The JSON of a trial."""
    return {**plain(view), "diff": diff_data(view.diff)}


def try_lines(view: TryView, width: int) -> list[str]:
    """The page on which a fix is judged before it is planned."""
    scope = folded(view.diff.grain, view.partitions)
    pieces = [f"tried {view.product}", scope, view.transform, f"{count(view.rows)} rows", duration(view.seconds)]
    asked = list_text(Grain(view.diff.grain), view.partitions) if len(view.partitions) <= _NAMED else "…"
    return [
        *flow(pieces, width),
        "  nothing was written",
        "",
        *rule_lines(plain(view.checks), width),
        *wrap(_verdict(view), width, "  "),
        "",
        "against accepted",
        *change_lines(view.diff, width),
        "",
        *next_lines(f'errata plan {view.product} --partitions {asked} --reason "…"'),
    ]


def _verdict(view: TryView) -> str:
    levels = {level: sorted({c.name for c in view.checks if c.level == level}) for level in ("block", "warn")}
    if levels["block"]:
        return f"the gate would reject it: {', '.join(levels['block'])}"
    if levels["warn"]:
        return f"the gate would ask an approver to accept: {', '.join(levels['warn'])}"
    return "the gate would pass it"
