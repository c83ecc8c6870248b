"""Render which partitions are ready, and holds. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns
from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from errata.views.readiness import HoldView, PartitionReadyView, ReadyView

_SIGNS = {"ready": "✓", "announced": "✓", "held": "▶", "publishing": "▶", "settling": "▶"}


def render_ready(view: ReadyView, width: int) -> list[str]:
    """One line for all partitions, and one for each range with the same state."""
    waiting = sum(one.state not in ("ready", "announced") for one in view.partitions)
    if not view.partitions:
        return [f"✓ {view.table} is ready: no correction concerns it"]
    if view.ready:
        title = f"✓ {view.table} is ready"
    else:
        title = f"▶ {view.table} is not ready: {plural(waiting, view.grain)} of {len(view.partitions):,} to wait for"
    return [title, *(line for alike in _group(view) for line in _render_range(view, alike, width))]


def render_hold(view: HoldView, width: int) -> list[str]:
    """A hold, before its owner acknowledges it."""
    scope = "the whole run" if view.wave == 0 else f"wave {view.wave}"
    count = len(view.partitions)
    lines = [
        f"{view.consumer} is held for {view.run_id}, {scope}: {plural(count, 'partition')}",
        f"  hold   {view.hold_id}, since {format_moment(view.opened_at)} UTC",
        f"  until  it is published, at most {format_moment(view.until)} UTC",
    ]
    then = "the publication continues" if view.on_timeout == "go" else "nothing is published"
    waits = f"  then   {then}, if nobody has acknowledged" if view.acknowledge else ""
    return [line for one in filter(None, (*lines, waits)) for line in flow([one], width)]


def render_holds(holds: Sequence[HoldView], width: int) -> list[str]:
    """The holds of a run, for its status."""
    rows = [(f"▶ {one.consumer}", _describe_hold(one)) for one in holds]
    return [f"{plural(len(holds), 'consumer')} held for this run", *format_columns(rows, width, indent="")]


def _describe_hold(one: HoldView) -> str:
    if one.state == "acknowledged":
        return f"acknowledged by {one.acknowledged_by}, held at most until {format_moment(one.until)} UTC"
    if one.acknowledge:
        then = "continues" if one.on_timeout == "go" else "stops"
        return f"not acknowledged yet; without that the publication {then} at {format_moment(one.until)} UTC"
    return f"published from {format_moment(one.not_before)} UTC on, held at most until {format_moment(one.until)} UTC"


def render_acknowledged(view: HoldView, width: int) -> list[str]:
    """An acknowledgement."""
    before = " before" if view.already else ""
    told = f"✓ {view.consumer} acknowledged{before} for {view.run_id} by {view.acknowledged_by}"
    return list(flow([told, f"it stays held until it is published, at most {format_moment(view.until)} UTC"], width))


def _group(view: ReadyView) -> Iterator[list[PartitionReadyView]]:
    def key(one: PartitionReadyView) -> tuple[str, str, str, str]:
        return one.state, one.run_id or "", one.snapshot_id or "", one.since or ""

    for _, alike in groupby(view.partitions, key):
        yield list(alike)


def _render_range(view: ReadyView, alike: list[PartitionReadyView], width: int) -> list[str]:
    one = alike[0]
    scope = format_ranges(Grain(view.grain), [each.partition for each in alike])
    since = f"since {format_moment(one.since)} UTC" if one.since else ""
    lines = flow([f"{_SIGNS[one.state]} {one.state}", scope, since], width, "  ")
    snapshot = f"snapshot {one.snapshot_id}" if one.snapshot_id else ""
    return [*lines, *(flow([one.run_id, snapshot], width, "    ") if one.run_id else ())]
