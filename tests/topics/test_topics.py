"""What planning reads from a real broker, and what it seals."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from errata.engines.kafka.topics import KafkaTopics
from errata.errors import EngineError, NotFound
from errata.model.kafka.declaration import KafkaCluster, KafkaTopic, RecordValue
from errata.model.kafka.topic_range import OffsetRange, TopicPin
from errata.model.partition import Grain
from errata.model.product import Input
from errata.project.build.sources.topic_inputs import list_record_columns
from support.kafka import KafkaBroker

START = datetime(2026, 1, 1, tzinfo=UTC)


def _at(hours: float) -> int:
    return int((START + timedelta(hours=hours)).timestamp() * 1000)


def _record(hours: float, partition: int = 0, **more: Any) -> dict[str, Any]:
    at = (START + timedelta(hours=hours)).isoformat()
    return {"value": json.dumps({"id": 1, "at": at}), "partition": partition, "timestamp": _at(hours), **more}


def _source(topic: str, **more: Any) -> Input:
    kafka = KafkaTopic("events", topic, RecordValue("json", {"id": "long", "at": "timestamptz"}), **more)
    return Input("events", kafka=kafka, partition="at", columns=list_record_columns(kafka.value))


def _topics(kafka: KafkaBroker) -> KafkaTopics:
    return KafkaTopics({"events": KafkaCluster("events", kafka.bootstrap)})


def test_an_hour_becomes_offsets_of_every_topic_partition(kafka: KafkaBroker) -> None:
    """Times of records give the start of a range; with the broker's clock they also give its end."""
    topic = kafka.make_topic(2)
    kafka.send(topic, [_record(n / 2, n % 2) for n in range(8)])  # hours 0, 0.5, 1, … in turn
    state = _topics(kafka).read_input(_source(topic), Grain.HOUR, ["2026-01-01T01", "2026-01-01T02", "2026-01-01T09"])
    assert state.offsets == {
        "2026-01-01T01": (OffsetRange(0, 1, 4), OffsetRange(1, 1, 4)),
        "2026-01-01T02": (OffsetRange(0, 2, 4), OffsetRange(1, 2, 4)),
    }
    assert {name: size.rows for name, size in state.partitions.items()} == {"2026-01-01T01": 2, "2026-01-01T02": 2}


def test_a_record_with_a_clock_ahead_cuts_nothing_off(kafka: KafkaBroker) -> None:
    """Where producers set the time, a range ends at the end of the log, because times are not in order there."""
    topic = kafka.make_topic()
    kafka.send(topic, [_record(0), _record(24 * 365), _record(1), _record(0.5)])
    state = _topics(kafka).read_input(_source(topic), Grain.HOUR, ["2026-01-01T00"])
    assert state.offsets == {"2026-01-01T00": (OffsetRange(0, 0, 4),)}


def test_the_clock_of_the_broker_bounds_a_range_on_both_sides(kafka: KafkaBroker) -> None:
    """With LogAppendTime the end of the partition and the lateness give the end of the range."""
    topic = kafka.make_topic(message__timestamp__type="LogAppendTime")
    kafka.send(topic, [_record(0), _record(1)])
    now = datetime.now(UTC)
    today, later = now.strftime("%Y-%m-%d"), (now + timedelta(days=3)).strftime("%Y-%m-%d")
    state = _topics(kafka).read_input(_source(topic, lateness_seconds=86_400), Grain.DAY, [today, later])
    assert state.offsets == {today: (OffsetRange(0, 0, 2),)}


def test_lateness_widens_the_range(kafka: KafkaBroker) -> None:
    """A record may be that much older or younger than its event."""
    topic = kafka.make_topic()
    kafka.send(topic, [_record(n) for n in range(6)])
    source = _source(topic, lateness_seconds=2 * 3600)
    state = _topics(kafka).read_input(source, Grain.HOUR, ["2026-01-01T04"])
    assert state.offsets == {"2026-01-01T04": (OffsetRange(0, 2, 6),)}


def test_records_of_an_open_transaction_are_after_the_end(kafka: KafkaBroker) -> None:
    """The end of a range is the last stable offset, which a reader of committed records may see."""
    from confluent_kafka import Producer

    topic = kafka.make_topic()
    kafka.send(topic, [_record(0)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": "0"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, **_record(0.1))
    producer.flush(30)
    state = _topics(kafka).describe(_source(topic).kafka)  # type: ignore[arg-type]
    assert state is not None
    assert state.logs[0].end == 1
    producer.commit_transaction(30)
    until = time.monotonic() + 30
    while state is None or state.logs[0].end < 3:  # the record and the marker, which the broker writes on its own
        assert time.monotonic() < until
        state = _topics(kafka).describe(_source(topic).kafka)  # type: ignore[arg-type]
    assert state.logs[0].end == 3


def test_a_topic_that_is_not_there_is_named(kafka: KafkaBroker) -> None:
    """A wrong name is no empty topic."""
    with pytest.raises(NotFound, match="events has no topic nowhere"):
        _topics(kafka).read_input(_source("nowhere"), Grain.HOUR, ["2026-01-01T00"])


def test_what_makes_a_sealed_range_unreadable_is_named(kafka: KafkaBroker) -> None:
    """Records that retention removed, a topic that is gone, and one of the same name."""
    topic = kafka.make_topic()
    kafka.send(topic, [_record(n) for n in range(6)])
    topics, declared = _topics(kafka), _source(topic).kafka
    assert declared is not None
    state = topics.describe(declared)
    assert state is not None
    ranges = (OffsetRange(0, 2, 6),)
    pin = TopicPin(declared, state.topic_id, 1, state.clock, ranges)
    assert topics.find_changes(pin, ranges) == ()
    kafka.cut(topic, 0, 2)
    assert topics.find_changes(pin, ranges) == ()
    kafka.cut(topic, 0, 4)
    (told,) = topics.find_changes(pin, ranges)
    assert told == "retention removed 2 of 4 offsets of partition 0: [2, 4); it begins at 4 now"
    kafka.delete_topic(topic)
    assert topics.find_changes(pin, ranges) == (f"topic {topic} is gone",)
    kafka.make_topic(name=topic)
    (told,) = topics.find_changes(pin, ranges)
    assert f"topic {topic} was deleted and created again: its id was {state.topic_id} and is" in told


def test_a_cluster_that_does_not_answer_is_named() -> None:
    """A connection that fails says which cluster, and what to look at."""
    pytest.importorskip("confluent_kafka")
    conf = {"socket.timeout.ms": "300"}
    topics = KafkaTopics({"events": KafkaCluster("events", "127.0.0.1:1", conf)}, timeout_seconds=1)
    with pytest.raises(EngineError, match="Kafka cluster events did not answer"):
        topics.describe(KafkaTopic("events", "any"))
