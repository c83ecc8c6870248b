"""A diff with its run, for ``errata diff`` and the report. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from errata.canonical import to_plain
from errata.model.diff import Diff, MetricMoves, OutsideScope


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff with its run; ``outside`` is None if a snapshot needed to prove it is gone."""

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

    def data(self) -> dict[str, Any]:
        """As JSON data: one flat object."""
        found: dict[str, Any] = to_plain(self)
        inner: dict[str, Any] = found.pop("diff")
        return found | inner

    def _repr_html_(self) -> str:
        from errata.views.notebook import render_diff

        return render_diff(self)
