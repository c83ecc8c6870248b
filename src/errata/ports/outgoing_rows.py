"""Ports for rows that go to topics: kept with the attempt that computed them, and sent after publication."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.kafka.declaration import TopicPlace
    from errata.model.kafka.outgoing import OutgoingRecord

NOTHING_SENT = "nothing_sent"
"""Field of an error: no record of the call can be in the topic."""


@dataclass(frozen=True, slots=True)
class EmittedRow:
    """A row that a transform emitted, as it will be sent."""

    sink: str
    partition: str  # of the target; the row goes with the publication of this partition
    key: str  # JSON object of the columns of the sink's key
    value: str  # JSON object of the row
    input_snapshot: str  # what the chunk read


class EmittedTable(Protocol):
    """The table of rows that a run emits; starts no JVM. Only rows of the given attempts count."""

    def ensure(self, table: str) -> None:
        """Create the table unless it exists; safe to repeat and to call concurrently."""

    def iterate(self, table: str, attempts: Collection[str], sink: str) -> Iterator[Sequence[EmittedRow]]:
        """The rows of these attempts for a sink, some at a time; raises ``NotFound`` if there is no table."""

    def exists(self, table: str) -> bool:
        """Whether the table exists."""

    def drop(self, table: str) -> bool:
        """Drop the table with its files; returns whether it existed. Idempotent."""


class TopicWriter(Protocol):
    """Sends records to topics of the project's clusters."""

    def check(self, place: TopicPlace) -> None:
        """Raise ``EngineError`` if nothing can be sent to the topic now: it is not there, or nobody answers."""

    def send(self, place: TopicPlace, records: Iterable[OutgoingRecord]) -> int:
        """Send the records and return their number, once the cluster has confirmed every one.

        A producer of this call writes no record twice, also if it has to try again; a call that is repeated writes them
        again. Raises ``EngineError`` if the topic is not there, or a record was not confirmed in time; some of the
        records may then be in the topic, unless the error has the field ``NOTHING_SENT``.
        """
