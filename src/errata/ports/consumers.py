"""Ports to what consumers show: their caches, databases and programs. Partitions are named as the consumer names them.

No message of an error contains an address, a credential or a value that a consumer shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.consumer.declaration import Refresh, Verify, WatermarkState
    from errata.model.consumer.watermark import WatermarkType


class ConsumerSystems(Protocol):
    """Refreshes what consumers show, and reads it.

    A step with ``{partition}`` is done once for each partition, one without it once for all of them. Every method
    raises ``SetupError`` when a package is missing, ``UsageError`` when a partition cannot be put where the step has
    it, and ``EngineError`` for everything else.
    """

    def refresh(self, step: Refresh, partitions: Sequence[str], key: str) -> int | None:
        """Make the consumer read these partitions again; returns the number of keys that were deleted from a cache.

        Must be safe to repeat: it is repeated after a crash, after ``refill`` and when the consumer shows old values.
        HTTP requests carry ``key`` in the header ``Idempotency-Key``, commands in ``ERRATA_KEY``.
        """

    def read_shown(self, verify: Verify, partitions: Sequence[str], key: str) -> dict[str, str | None]:
        """What the consumer shows for each partition, as text; None where it shows nothing. Only reads."""

    def rerun(self, command: Sequence[str], partitions: Sequence[str], key: str, timeout_seconds: float) -> None:
        """Run the command of an incremental job. At least once: after a crash it is run again with the same key."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far an incremental job has read; None: it has read nothing yet."""

    value: str | None
    type: WatermarkType


@dataclass(frozen=True, slots=True)
class WatermarkMove:
    """A watermark before and after; both are the same if the job had not come that far."""

    old: str | None
    new: str | None
    at: str


class Watermarks(Protocol):
    """Rows in which incremental jobs keep how far they have read.

    Every method raises ``UsageError`` when the row is not exactly one or its column has another type, and
    ``EngineError`` when the database does not answer.
    """

    def read(self, state: WatermarkState) -> Watermark:
        """The watermark now. Only reads."""

    def find_move(self, state: WatermarkState, key: str) -> WatermarkMove | None:
        """The move that was made with this key; None: it was not made. Only reads."""

    def move(self, state: WatermarkState, key: str, expected: str | None, new: str | None) -> WatermarkMove | None:
        """Set the watermark if it is as expected and nobody has moved it with this key.

        The key and the value are written in one transaction. Returns the move made with this key, by this call or an
        earlier one, or None if the watermark has another value than expected; nothing is then changed.
        """
