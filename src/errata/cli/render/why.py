"""Who changed this number, when, why, from what to what, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from errata.cli.render.approval import glass_lines
from errata.cli.render.layout import flow, next_lines, pad, wrap
from errata.model.product import LINEAGE_COLUMNS
from errata.text.numbers import exact, moment, value, verbatim
from errata.views import HistoryView, WhyView

INDENT = " " * 18


def why_lines(view: WhyView, width: int) -> list[str]:
    """The history of a partition, of one row of it, or of several rows each; oldest first as given."""
    lines = flow([view.table, view.partition, _key(view.key)], width)
    if not view.history and not view.rows and not view.note:
        lines.append("  no history is known for it")
    lines += _events(view.history, width)
    for row in view.rows:
        lines += ["", *flow([_key(row.key)], width), *_events(row.history, width)]
    lines += wrap(view.note, width) if view.note else []
    if view.set_back:
        lines += [*wrap(view.set_back.told, width, "! "), *next_lines(view.set_back.next)]
    return lines


def _key(key: Mapping[str, str | None]) -> str:
    return "   ".join(f"{name}={verbatim(text)}" for name, text in key.items())


def _events(history: Sequence[HistoryView], width: int) -> list[str]:
    telling = _telling(history)
    return [line for event in history for line in _event(event, telling, width)]


def _event(event: HistoryView, telling: set[str], width: int) -> Iterator[str]:
    action = event.action.replace("_", " ")
    # one column after the time and the action, so that the numbers stand under each other
    head = f"{moment(event.published_at or event.at)}  {pad(action, 11)} "
    who = event.run_id or event.application or (f"snapshot {event.snapshot_id}" if event.snapshot_id else "")
    yield from flow([who, *_moved(event), *_values(event, telling)], width, head, INDENT)
    yield from _grounds(event, width)
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
    yield from (f"{INDENT}{line}" for line in glass_lines(event.break_glass, width - len(INDENT)))
    if event.run_id and event.snapshot_id:
        yield f"{INDENT}snapshot {event.snapshot_id}"
    if event.manifest_digest:
        yield f"{INDENT}sha256:{event.manifest_digest.removeprefix('sha256:')}"


def _moved(event: HistoryView) -> Iterator[str]:
    """What a live write did to the partition, where no row was asked for."""
    if event.added_rows is None or event.before is not None or event.after is not None:
        return
    yield f"+{exact(event.added_rows)} −{exact(event.removed_rows or 0)} rows"
    if event.deleted_rows:
        yield f"{exact(event.deleted_rows)} deleted in place"


def _grounds(event: HistoryView, width: int) -> Iterator[str]:
    if event.restored:
        yield from wrap(f"restored what snapshot {event.restored} held", width, INDENT)
    if event.rebased:
        yield from wrap(f"live wrote it meanwhile; computed again on snapshot {event.rebased}", width, INDENT)
    if event.reason:
        yield from wrap(event.reason, width, INDENT)


def _telling(history: Sequence[HistoryView]) -> set[str]:
    """The columns that ever changed; all of them when none did. Lineage columns repeat the history itself."""
    seen: dict[str, bool] = {}
    for event in history:
        old, new = event.before or {}, event.after or {}
        for name in (*old, *new):
            seen[name] = seen.get(name, False) or (bool(old and new) and old.get(name) != new.get(name))
    own = {name: changed for name, changed in seen.items() if name not in LINEAGE_COLUMNS}
    return {name for name, changed in own.items() if changed} or set(own)


def _values(event: HistoryView, telling: set[str]) -> Iterator[str]:
    old, new = event.before or {}, event.after or {}
    for name in dict.fromkeys((*old, *new)):
        if name not in telling:
            continue
        if event.before is None or name not in old:
            yield f"{name} {value(new[name])}"
        elif event.after is None:
            yield f"{name} {value(old[name])} → not known any more"
        elif name not in new:
            yield f"{name} {value(old[name])} → gone"
        elif old[name] != new[name]:
            yield f"{name} {value(old[name])} → {value(new[name])}"
        else:
            yield f"{name} {value(new[name])} (same)"
