"""Who changed this number, when, why, from what to what, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from errata.cli.human import moment, value
from errata.cli.layout import flow, pad, wrap
from errata.model.views import HistoryView, WhyView

__all__ = ["why_lines"]

INDENT = " " * 18


def why_lines(view: WhyView, width: int) -> list[str]:
    """The history of a partition or of one row of it, oldest first as given."""
    key = "   ".join(f"{name}={text}" for name, text in view.key.items())
    lines = flow([view.table, view.partition, key], width)
    if not view.history:
        lines.append("  no history is known for it")
    for event in view.history:
        lines += _event(event, width)
    return [*lines, *wrap(view.note, width)] if view.note else lines


def _event(event: HistoryView, width: int) -> Iterator[str]:
    action = event.action.replace("_", " ")
    # one column after the time and the action, so that the numbers stand under each other
    head = f"{moment(event.published_at or event.at)}  {pad(action, 11)} "
    who = event.run_id or event.application or (f"snapshot {event.snapshot_id}" if event.snapshot_id else "")
    yield from flow([who, *_values(event.before, event.after)], width, head, INDENT)
    if event.reason:
        yield from wrap(event.reason, width, INDENT)
    people = []
    if event.requested_by:
        people.append(f"asked by {event.requested_by}")
    if event.approved_by:
        people.append(f"approved by {event.approved_by}")
    if event.published_by:
        people.append(f"published by {event.published_by}")
    if event.checks_passed is not None:
        people.append(f"{event.checks_passed} checks passed")
    if people:
        yield from wrap(", ".join(people), width, INDENT)
    if event.run_id and event.snapshot_id:
        yield f"{INDENT}snapshot {event.snapshot_id}"
    if event.manifest_digest:
        yield f"{INDENT}sha256:{event.manifest_digest.removeprefix('sha256:')}"


def _values(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Iterator[str]:
    old, new = before or {}, after or {}
    for name in dict.fromkeys((*old, *new)):
        if before is None or name not in old:
            yield f"{name} {value(new[name])}"
        elif after is None or name not in new:
            yield f"{name} {value(old[name])} → gone"
        elif old[name] != new[name]:
            yield f"{name} {value(old[name])} → {value(new[name])}"
        else:
            yield f"{name} {value(new[name])} (same)"
