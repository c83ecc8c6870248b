"""Render a trial as text: what was computed, what the gate would say, what would change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.canonical import to_plain
from errata.cli.render.diff import render_changes
from errata.cli.render.gate import render_rules
from errata.cli.render.layout import flow, render_next, wrap
from errata.cli.render.throttle import format_partitions
from errata.model.partition import Grain, format_partition_list
from errata.text.numbers import format_count, format_duration

if TYPE_CHECKING:
    from errata.views.run import TryView

_NAMED = 5
"""Most partitions to write out in the next command."""


def suggest_after_trial(view: TryView) -> str:
    """The command to type next: a plan, or the trial again if the gate would reject the result."""
    asked = format_partition_list(Grain(view.diff.grain), view.partitions) if len(view.partitions) <= _NAMED else "…"
    if any(check.level == "block" for check in view.checks):
        return f"errata try {view.product} {asked}"
    return f'errata plan {view.product} --partitions {asked} --reason "…"'


def render_try(view: TryView, width: int, following: str) -> list[str]:
    """The page for judging a fix before it is planned; ``following`` is the command to type next."""
    scope = format_partitions(view.diff.grain, view.partitions)
    pieces = [
        f"tried {view.product}",
        scope,
        view.transform,
        f"{format_count(view.rows)} rows",
        format_duration(view.seconds),
    ]
    return [
        *flow(pieces, width),
        "  nothing was written",
        "",
        *render_rules(to_plain(view.checks), width),
        *wrap(_describe_verdict(view), width, "  "),
        "",
        "against accepted",
        *render_changes(view.diff, width),
        "",
        *render_next(following),
    ]


def _describe_verdict(view: TryView) -> str:
    levels = {level: sorted({c.name for c in view.checks if c.level == level}) for level in ("block", "warn")}
    if levels["block"]:
        return f"the gate would reject it: {', '.join(levels['block'])}; change the transform or the rule and try again"
    if levels["warn"]:
        return f"the gate would ask an approver to accept: {', '.join(levels['warn'])}"
    return "the gate would pass it"
