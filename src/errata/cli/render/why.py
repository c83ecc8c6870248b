"""Render who changed a number, when, why, and from what to what. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from errata.cli.render.approval import render_break_glass
from errata.cli.render.layout import flow, pad, render_next, wrap
from errata.text.numbers import format_exact, format_moment, format_value, format_verbatim

if TYPE_CHECKING:
    from errata.views import HistoryView, WhyView
    from errata.views.copies import PartitionCopy

INDENT = " " * 18


def render_why(view: WhyView, width: int) -> list[str]:
    """The history of a partition, of one row in it, or of several rows; oldest first as given."""
    lines = flow([view.table, view.partition, _format_key(view.key)], width)
    if not view.history and not view.rows and not view.note:
        lines.append("  no history is known for it")
    lines += _render_events(view.history, width)
    for row in view.rows:
        lines += ["", *flow([_format_key(row.key)], width), *_render_events(row.history, width)]
    lines += [line for copy in view.copies for line in _render_copy(copy, width)]
    lines += wrap(view.note, width) if view.note else []
    if view.set_back:
        lines += [*wrap(view.set_back.told, width, "! "), *render_next(view.set_back.next)]
    return lines


def _format_key(key: Mapping[str, str | None]) -> str:
    return "   ".join(f"{name}={format_verbatim(text)}" for name, text in key.items())


def _render_copy(copy: PartitionCopy, width: int) -> list[str]:
    """Whether a copy got what is accepted."""
    when = f", {format_moment(copy.at)}" if copy.at else ""
    said = {
        "delivered": f"got what {copy.run_id} left{when}",
        "waived": f"did not get what {copy.run_id} left: given up by {copy.waived_by}{when}: {copy.waived_why}",
        "failed": f"did not get what {copy.run_id} left: failed",
    }.get(copy.state, f"has yet to get what {copy.run_id} left")
    error = f": {copy.error}" if copy.error else ""
    return wrap(f"copy {copy.warehouse}:{copy.table} {said}{error}", width)


def _render_events(history: Sequence[HistoryView], width: int) -> list[str]:
    telling = _find_changed_columns(history)
    return [line for event in history for line in _render_event(event, telling, width)]


def _render_event(event: HistoryView, telling: set[str], width: int) -> Iterator[str]:
    action = event.action.replace("_", " ")
    # one column after the time and the action, so that the numbers line up
    head = f"{format_moment(event.published_at or event.at)}  {pad(action, 11)} "
    who = event.run_id or event.application or (f"snapshot {event.snapshot_id}" if event.snapshot_id else "")
    yield from flow([who, *_format_row_counts(event), *_format_values(event, telling)], width, head, INDENT)
    yield from _render_grounds(event, width)
    people = []
    if event.requested_by:
        people.append(f"asked by {event.requested_by}")
    if event.approved_by:
        people.append(f"approved by {event.approved_by}")
    if event.released_by and event.released_by != event.published_by:
        people.append(f"released by {event.released_by}")
    if event.published_by:
        people.append(f"published by {event.published_by}")
    if event.rolled_back_by:
        people.append(f"rolled back by {event.rolled_back_by}")
    if event.checks_passed is not None:
        people.append(f"{event.checks_passed} checks passed")
    if event.single_user:
        people.append("single-user project")
    if people:
        yield from wrap(", ".join(people), width, INDENT)
    yield from (f"{INDENT}{line}" for line in render_break_glass(event.break_glass, width - len(INDENT)))
    if event.run_id and event.snapshot_id:
        yield f"{INDENT}snapshot {event.snapshot_id}"
    if event.manifest_digest:
        yield f"{INDENT}sha256:{event.manifest_digest.removeprefix('sha256:')}"


def _format_row_counts(event: HistoryView) -> Iterator[str]:
    """Effect of a live write on the partition, if no row was requested."""
    if event.added_rows is None or event.before is not None or event.after is not None:
        return
    yield f"+{format_exact(event.added_rows)} −{format_exact(event.removed_rows or 0)} rows"
    if event.deleted_rows:
        yield f"{format_exact(event.deleted_rows)} deleted in place"


def _render_grounds(event: HistoryView, width: int) -> Iterator[str]:
    if event.restored:
        what = f"snapshot {event.restored} held" if event.restored.isdecimal() else f"{event.restored} held"
        yield from wrap(f"restored what {what}", width, INDENT)
    if event.rebased:
        yield from wrap(f"live wrote it meanwhile; computed again on snapshot {event.rebased}", width, INDENT)
    if event.reason:
        yield from wrap(event.reason, width, INDENT)


def _find_changed_columns(history: Sequence[HistoryView]) -> set[str]:
    """Columns that ever changed; all columns if none did. Lineage columns repeat the history itself."""
    from errata.model.product import LINEAGE_COLUMNS

    seen: dict[str, bool] = {}
    for event in history:
        old, new = event.before or {}, event.after or {}
        for name in (*old, *new):
            seen[name] = seen.get(name, False) or (bool(old and new) and old.get(name) != new.get(name))
    own = {name: changed for name, changed in seen.items() if name not in LINEAGE_COLUMNS}
    return {name for name, changed in own.items() if changed} or set(own)


def _format_values(event: HistoryView, telling: set[str]) -> Iterator[str]:
    old, new = event.before or {}, event.after or {}
    for name in dict.fromkeys((*old, *new)):
        if name not in telling:
            continue
        if event.before is None or name not in old:
            yield f"{name} {format_value(new[name])}"
        elif event.after is None:
            yield f"{name} {format_value(old[name])} → no longer known"
        elif name not in new:
            yield f"{name} {format_value(old[name])} → gone"
        elif old[name] != new[name]:
            yield f"{name} {format_value(old[name])} → {format_value(new[name])}"
        else:
            yield f"{name} {format_value(new[name])} (same)"
