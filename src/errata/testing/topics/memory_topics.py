"""Topics in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from errata.errors import EngineError
from errata.model.kafka.declaration import TopicPlace
from errata.model.kafka.outgoing import OutgoingRecord
from errata.ports.outgoing_rows import TopicWriter


@dataclass
class MemoryTopics:
    """Records by topic, in the order in which they came; a topic in ``down`` confirms none.

    ``after`` is called with the number of records of a call that are in the topic, after each of them.
    """

    sent: dict[str, list[OutgoingRecord]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    after: Callable[[int], None] = lambda _count: None

    def check(self, place: TopicPlace) -> None:
        """See the port."""
        if place.topic in self.down:
            raise EngineError(f"{place.location} does not answer", nothing_sent=True)

    def send(self, place: TopicPlace, records: Iterable[OutgoingRecord]) -> int:
        """See the port."""
        count = 0
        for record in records:
            if place.topic in self.down:
                raise EngineError(f"{place.location} does not answer", nothing_sent=count == 0)
            self.sent.setdefault(place.topic, []).append(record)
            count += 1
            self.after(count)
        return count


_conforms: type[TopicWriter] = MemoryTopics
