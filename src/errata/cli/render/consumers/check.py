"""Render what a publication does to consumers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, render_warnings, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.escape import escape_text

if TYPE_CHECKING:
    from errata.views.consumers import ConfirmView, ConsumerEffectView, ConsumersView

_PUBLISHED = {"": "its table is not changed", "append": "as an append", "overwrite": "as an overwrite"}
_SIGNS = {"stops": "!", "unknown": "!", "misses": "!"}


def render_consumers(view: ConsumersView, steps: Mapping[str, Sequence[str]], width: int) -> list[str]:
    """The product, and each consumer with what happens to it; ``steps`` of a repair, by consumer."""
    scope = format_partitions(view.grain, view.partitions) if view.partitions else ""
    how = _PUBLISHED.get(view.operation, view.operation)
    lines = flow([view.product, scope, f"published {how}" if view.operation else how], width)
    if not view.consumers:
        return [*lines, *wrap("no consumer is declared for it in errata.yaml", width, "  ")]
    for one in view.consumers:
        lines += ["", *_render_consumer(one, steps[one.name], width)]
    return lines


def _render_consumer(one: ConsumerEffectView, steps: Sequence[str], width: int) -> list[str]:
    about = [one.name, one.kind, f"owner {one.owner}" if one.owner else "", one.effect]
    lines = flow(about, width, f"{_SIGNS.get(one.effect, '✓')} ")
    lines += wrap(one.why, width, "  ")
    lines += wrap(one.repair, width, "  repair      ") if one.repair else []
    lines += wrap(one.checkpoint, width, "  checkpoint  ") if one.checkpoint else []
    if one.run_id:
        lines += wrap(f"owed by {one.run_id}" + (f": {one.waits}" if one.waits else ""), width, "  ! ")
        lines += _render_steps(steps, width)
    return lines


def _render_steps(steps: Sequence[str], width: int) -> list[str]:
    """Steps by number; what is to be copied is not broken into lines."""
    lines: list[str] = []
    for n, step in enumerate(steps, 1):
        text, mark, query = step.partition("SELECT ")
        first = f"    {n}. "
        if step.startswith("errata "):
            lines.append(first + escape_text(step))
        else:
            lines += wrap(text.rstrip(), width, first)
            lines += [f"    {escape_text(mark + query)}"] if query else []
    return lines


def render_confirmed(view: ConfirmView, steps: Sequence[str], width: int) -> list[str]:
    """What was recorded, and the steps that come next."""
    if view.step == "stopped":
        shown = "is stopped, as far as its checkpoint shows; publish checks it again"
        lines = wrap(f"{view.consumer} {shown if view.checkpoint else 'was confirmed to be stopped'}", width)
    elif view.is_done:
        lines = wrap(f"{view.consumer} reads from {view.checkpoint} and is past the publication", width)
    else:
        lines = wrap(f"{view.consumer} was started on {view.checkpoint}", width)
        lines += wrap(view.waits, width, "  ! ") if view.waits else []
        lines += _render_steps(steps, width)
    return [*lines, *render_warnings(view.warnings, width)]
