"""Render what is owed, and what came of paying it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns, render_warnings, wrap
from errata.text.numbers import format_duration, format_moment, plural

if TYPE_CHECKING:
    from errata.views.outbox import DeliverView, OutboxDecisionView, OutboxItemView, OutboxView

_SIGNS = {"owed": "▶", "failed": "✗", "paid": "✓", "waived": "!"}
_MOST = 20
"""Items that pages about something else show."""


def render_outbox(view: OutboxView, steps: Sequence[str], width: int) -> list[str]:
    """Items as a table, with the last error of each below it."""
    if not view.items:
        of = f" because of {view.run_id}" if view.run_id else ""
        return [f"✓ nothing is {'on record' if view.all else 'owed'}{of}"]
    return [*_render_items(view.items, width, names_run=view.run_id is None), *_render_steps(steps)]


def render_outbox_decision(view: OutboxDecisionView, steps: Sequence[str], width: int) -> list[str]:
    """What was decided about which items."""
    if not view.items:
        return ["✓ nothing has failed"]
    many = plural(len(view.items), "item")
    told = f"✓ {many} to be tried again" if view.action == "retry" else f"✓ {many} given up"
    lines = [f"{told}{', as before' if view.already else ''}", *_render_items(view.items, width)]
    return [*lines, *_render_steps(steps)]


def render_delivery(view: DeliverView, steps: Sequence[str], width: int) -> list[str]:
    """What was paid, and what is still owed."""
    took = f"in {format_duration(view.seconds)}"
    if view.ok:
        lines = flow([f"✓ {plural(view.paid, 'item')} paid" if view.paid else "✓ nothing is owed", took], width)
        return [*lines, *render_owed(view.items, width)]
    failed = sum(item.state == "failed" for item in view.items)
    owed = len(view.items) - failed
    pieces = [
        f"! {plural(view.paid, 'item')} paid",
        f"{owed:,} still owed",
        f"{failed:,} failed" if failed else "",
        took,
    ]
    lines = [*flow(pieces, width), *render_owed(view.items, width)]
    warnings = render_warnings(view.warnings, width, shown=[item.last_error for item in view.items])
    return [*lines, *warnings, *_render_steps(steps)]


def render_owed(items: Sequence[OutboxItemView], width: int) -> list[str]:
    """Open items; of many only some, with those that failed first."""
    if len(items) <= _MOST:
        return list(_render_items(tuple(items), width))
    shown = sorted(items, key=lambda item: item.state != "failed")[:_MOST]
    of = items[0].run_id if len({item.run_id for item in items}) == 1 else ""
    rest = f"and {len(items) - _MOST:,} more: errata outbox {of}".rstrip()
    return [*_render_items(tuple(shown), width), *wrap(rest, width, "  ")]


def render_item(item: OutboxItemView, width: int) -> list[str]:
    """One item."""
    return list(_render_items((item,), width))


def _render_items(items: tuple[OutboxItemView, ...], width: int, *, names_run: bool = False) -> Iterator[str]:
    """Items as a table; below the run that owes them where it is not known otherwise."""
    runs = list(dict.fromkeys(item.run_id for item in items))
    names_run = names_run or len(runs) > 1
    ordered = sorted(items, key=lambda item: runs.index(item.run_id))
    rows = [_list_cells(item) for item in ordered]
    table = format_columns(rows, width, indent="", right=[len(rows[0]) - 1]) if rows else []
    fits = all(len(line) <= width for line in table)
    above = ""
    for item, cells, line in zip(ordered, rows, table, strict=True):
        if names_run and item.run_id != above:
            yield from flow([item.run_id], width)
        above = item.run_id
        yield from [line] if fits else flow(cells, width)
        yield from _render_item_notes(item, width)


def _list_cells(item: OutboxItemView) -> list[str]:
    cells = [f"{_SIGNS[item.state]} {item.id}", item.kind, item.consumer or "–", item.event.replace("_", " ")]
    return [*cells, item.state, plural(item.attempts, "attempt"), format_duration(item.age_seconds)]


def _render_item_notes(item: OutboxItemView, width: int) -> Iterator[str]:
    if item.last_error and item.state != "paid":
        yield from wrap(item.last_error, width, "      ")
    if item.waits:
        yield from wrap(item.waits, width, "      ")
    if item.next_at:
        again = "looked at again" if item.waits else "tried again"
        yield from wrap(f"{again} from {format_moment(item.next_at)} UTC", width, "      ")
    if item.waived_by:
        so = (
            ", and readers may continue"
            if item.waived_ready
            else ", and readers wait"
            if item.kind == "recover"
            else ""
        )
        yield from wrap(f"not done; given up by {item.waived_by}{so}: {item.waived_why}", width, "      ")


def _render_steps(steps: Iterable[str]) -> list[str]:
    found = [f"next: {step}" for step in steps]
    return ["", *found] if found else []
