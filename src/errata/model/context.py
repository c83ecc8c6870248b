"""Context that a transform receives about its run. Pure.

The daily job uses the same type (:func:`errata.live_context`), so one function serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from errata.errors import TransformFailed

if TYPE_CHECKING:
    from errata.model.product.reconstruction import Reconstruction


class Mode(StrEnum):
    """Why a transform runs."""

    LIVE = "LIVE"
    BACKFILL = "BACKFILL"
    REPLAY = "REPLAY"
    DRY_RUN = "DRY_RUN"
    RECONCILIATION = "RECONCILIATION"


@dataclass(frozen=True, slots=True)
class Context:
    """Run, clock, interval and config. ``clock`` is the run's clock, never the wall clock."""

    run_id: str | None
    product: str
    mode: Mode
    clock: datetime
    partitions: tuple[str, ...]  # partitions that this call may produce, oldest first
    start: datetime | None  # the publish interval [start, end) of these partitions; None for partitions by value
    end: datetime | None  # for the last partition of the year 9999: the last instant that a datetime can hold
    config: Mapping[str, Any]
    version: str
    lineage: Mapping[str, str | None] = field(default_factory=dict)
    _deterministic_id: Callable[..., Any] | None = None
    _stamp: Callable[..., Any] | None = None
    _quarantine: Callable[..., Any] | None = None
    _emit: Callable[..., Any] | None = None
    reconstruction: Reconstruction | None = None  # rules of the product for events that were never recorded
    _recorded: Callable[[], Any] | None = None
    _cut: Callable[[Any], Any] | None = None

    def deterministic_id(self, *columns: str) -> Any:
        """A column computed from these columns alone, so it is equal in every run and retry."""
        if self._deterministic_id is None:
            raise TransformFailed("deterministic_id needs a Spark session; this context was made without one")
        return self._deterministic_id(*columns)

    def with_lineage(self, frame: Any) -> Any:
        """The frame with this run's lineage columns; a governed run adds them itself."""
        if self._stamp is None:
            raise TransformFailed("with_lineage needs a Spark session; this context was made without one")
        return self._stamp(frame, self.lineage)

    def quarantine(self, frame: Any, condition: Any, reason: str, *, of: str | None = None) -> Any:
        """The frame without the rows that match the condition (a column or SQL text); those rows go to quarantine.

        ``of`` names the input they come from, if the product has several inputs; its partition column must be in the
        frame. Lazy: the rows are computed with the output and count only if this attempt is adopted.
        """
        if self._quarantine is None:
            raise TransformFailed(
                "quarantine needs somewhere to put the rows; this context was made without it",
                hint="errata.live_context(…, quarantine=function of rows and reason)",
            )
        return self._quarantine(frame, condition, reason, of)

    def recorded(self) -> Any:
        """Events that the target has and no run rebuilt, of these partitions and those around them.

        They are read where the publication starts from: late rows of a live job are there, or the run is refused or
        computed again.
        """
        if self._recorded is None:
            raise TransformFailed("recorded needs a run of a product with reconstruct:; this context was made without")
        return self._recorded()

    def cut(self, frame: Any) -> Any:
        """The rows of the frame in the partitions that this call may produce."""
        if self._cut is None:
            raise TransformFailed("cut needs a Spark session; this context was made without one")
        return self._cut(frame)

    def emit(self, sink: str, frame: Any) -> None:
        """Send rows to a sink of the product, beside the output.

        A governed run does what its sealed plan says: it drops the rows, or fails. A live job sends them with the
        function that was given to :func:`errata.live_context`.
        """
        if self._emit is None:
            raise TransformFailed(
                f"rows for the sink {sink!r} were not sent; this context was made without a way to send them",
                hint="errata.live_context(…, emit=function of the sink's name and the rows)",
            )
        self._emit(sink, frame)
