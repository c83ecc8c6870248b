"""The contract of :class:`errata.ports.outgoing_rows.TopicWriter`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pytest

from errata.errors import EngineError
from errata.model.kafka.declaration import TopicPlace
from errata.model.kafka.outgoing import OutgoingRecord
from errata.ports.outgoing_rows import NOTHING_SENT, TopicWriter
from errata.testing.topics.memory_topics import MemoryTopics


class TopicSubject(Protocol):
    """A topic, and what a reader of it sees."""

    @property
    def place(self) -> TopicPlace: ...

    @property
    def writer(self) -> TopicWriter: ...

    def received(self) -> list[OutgoingRecord]:
        """Every record of the topic; those of one key in their order."""

    def break_down(self) -> None:
        """Let the topic take nothing more."""


@dataclass
class MemoryTopicSubject:
    """A topic in memory."""

    place: TopicPlace = field(default_factory=lambda: TopicPlace("events", "fixes"))
    writer: MemoryTopics = field(default_factory=MemoryTopics)

    def received(self) -> list[OutgoingRecord]:
        """See the protocol."""
        return self.writer.sent.get(self.place.topic, [])

    def break_down(self) -> None:
        """See the protocol."""
        self.writer.down.add(self.place.topic)


def build_record(n: int, value: str = "") -> OutgoingRecord:
    """A record for contracts."""
    return OutgoingRecord(f'{{"n":{n}}}', value or f'{{"n":{n},"größe":"{n}"}}', {"x-run-id": "bf-1", "x-mode": "ä"})


class TopicContract:
    """Records are in the topic when the call returns; a failure says whether any can be."""

    def test_every_record_arrives_with_key_value_and_headers(self, topic_subject: TopicSubject) -> None:
        """The call returns their number."""
        records = [build_record(n) for n in range(250)]
        assert topic_subject.writer.send(topic_subject.place, iter(records)) == 250
        assert sorted(topic_subject.received(), key=lambda one: one.key) == sorted(records, key=lambda one: one.key)

    def test_records_of_one_key_keep_their_order(self, topic_subject: TopicSubject) -> None:
        """Over several calls."""
        for first in (0, 20):
            records = [build_record(7, f'{{"v":{n}}}') for n in range(first, first + 20)]
            topic_subject.writer.send(topic_subject.place, records)
        assert [one.value for one in topic_subject.received()] == [f'{{"v":{n}}}' for n in range(40)]

    def test_nothing_to_send_is_nothing_in_the_topic(self, topic_subject: TopicSubject) -> None:
        """And no error."""
        assert topic_subject.writer.send(topic_subject.place, ()) == 0
        assert topic_subject.received() == []

    def test_a_topic_that_takes_nothing_is_an_error_that_says_so(self, topic_subject: TopicSubject) -> None:
        """Nothing of the call is in the topic, and the caller can rely on that."""
        topic_subject.writer.check(topic_subject.place)
        topic_subject.break_down()
        with pytest.raises(EngineError):
            topic_subject.writer.check(topic_subject.place)
        with pytest.raises(EngineError) as failed:
            topic_subject.writer.send(topic_subject.place, [build_record(1)])
        assert failed.value.fields[NOTHING_SENT]
        assert topic_subject.place.topic in failed.value.message
