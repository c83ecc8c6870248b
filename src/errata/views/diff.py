"""A diff with what it is about: what ``errata diff`` and the report show. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from errata.model.diff import Diff, MetricMoves, OutsideScope


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff with what it is about; ``outside`` is None when a snapshot that would prove it is gone."""

    run_id: str
    product: str
    snapshot_id: str
    base_snapshot_id: str | None
    grain: str
    untouched_partitions: int
    key: tuple[str, ...]
    diff: Diff
    metrics: tuple[MetricMoves, ...] = ()
    outside: OutsideScope | None = None
