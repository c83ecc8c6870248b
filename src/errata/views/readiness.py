"""Readiness of partitions, and holds of consumers. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionReadyView:
    """Whether one partition may be read; ``snapshot_id`` None: read the table as it is."""

    partition: str
    state: str  # ready | announced | held | publishing | settling
    run_id: str | None = None
    snapshot_id: str | None = None
    since: str | None = None  # None: no correction of Errata has ever concerned it


@dataclass(frozen=True, slots=True)
class ReadyView:
    """Whether partitions of a table may be read: none is held, being published or settling."""

    table: str
    grain: str
    ready: bool
    partitions: tuple[PartitionReadyView, ...]


@dataclass(frozen=True, slots=True)
class HoldView:
    """The time that a consumer gets before a publication."""

    hold_id: str
    run_id: str
    consumer: str
    wave: int  # 0: the whole run
    state: str  # open | acknowledged | expired | ended
    partitions: tuple[str, ...]
    opened_at: str
    not_before: str  # the publication comes no sooner
    until: str  # the hold ends at the latest
    acknowledge: bool  # whether the publication waits for an acknowledgement
    on_timeout: str  # go | stop
    acknowledged_by: str | None = None
    acknowledged_at: str | None = None
    already: bool = False  # it was acknowledged before
