"""`errata ready`: may these partitions be read? Reads the ledger only, pays nothing, never starts a JVM."""

from __future__ import annotations

import re
from collections.abc import Sequence

from errata.model.consumer.readiness import PartitionReadiness, are_readable
from errata.model.duration import to_seconds
from errata.model.partition import Grain, parse_list, sort_oldest_first
from errata.publishing.readers.ready_table import read_readiness
from errata.views.readiness import PartitionReadyView, ReadyView
from errata.workspace import Workspace

_POLL_SECONDS = 1.0


def show_ready(workspace: Workspace, table: str, partitions: str | Sequence[str] | None, wait: str) -> ReadyView:
    """The states of these partitions, or of all that a correction has concerned; waits for them to be ready."""
    target = workspace.product_of(table).target
    wanted = _parse_partitions(target.grain, partitions)
    left = float(to_seconds(f"{wait}in" if re.fullmatch(r"\d+m", wait, re.ASCII) else wait))
    while True:
        found = read_readiness(workspace, target.table)
        if left <= 0 or are_readable(found, wanted or None):
            return _build_view(target.table, target.grain, wanted, found)
        pause = min(_POLL_SECONDS, left)
        workspace.sleep(pause)
        left -= pause


def _parse_partitions(grain: Grain, partitions: str | Sequence[str] | None) -> tuple[str, ...]:
    given = () if partitions is None else (partitions,) if isinstance(partitions, str) else partitions
    return sort_oldest_first(grain, {name for text in given for name in parse_list(grain, str(text))})


def _build_view(table: str, grain: Grain, wanted: Sequence[str], found: dict[str, PartitionReadiness]) -> ReadyView:
    names = wanted or sort_oldest_first(grain, found)
    return ReadyView(
        table,
        grain.value,
        are_readable(found, wanted or None),
        tuple(_build_line(name, found.get(name)) for name in names),
    )


def _build_line(name: str, one: PartitionReadiness | None) -> PartitionReadyView:
    if one is None:
        return PartitionReadyView(name, "ready")
    return PartitionReadyView(name, one.state.value, one.run_id, one.snapshot_id, one.since)
