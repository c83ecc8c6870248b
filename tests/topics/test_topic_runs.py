"""A correction of what a topic holds, on a real broker, Spark and Iceberg."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from errata.errors import ErrataError, PlanRefused
from support.kafka import KafkaBroker
from support.world import World
from topics.records import START, record

pytestmark = pytest.mark.spark

Make = Callable[..., tuple[World, str]]


def _events(hours: Iterable[float] = range(96)) -> list[dict[str, Any]]:
    """One event an hour in four days, for three accounts, in two topic partitions."""
    return [record(hour, f"a{int(hour) % 3}", f"{int(hour)}.25", partition=int(hour) % 2) for hour in hours]


def _expected(hours: Iterable[float] = range(96)) -> list[tuple[str, str, Decimal, int]]:
    found: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for hour in hours:
        day = START.replace(day=1 + int(hour) // 24).date().isoformat()
        found[day, f"a{int(hour) % 3}"].append(Decimal(f"{int(hour)}.25"))
    return sorted((day, account, sum(each, Decimal(0)), len(each)) for (day, account), each in found.items())


def _commit_group(kafka: KafkaBroker, topic: str) -> Any:
    """A live job that has read some of the topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"live-{topic}", "log_level": "0"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 9)], asynchronous=False)
    return consumer


def _read_groups(kafka: KafkaBroker, topic: str) -> dict[str, dict[int, int]]:
    """Committed offsets of every group that the broker knows, in this topic."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    names = [one.group_id for one in kafka.admin.list_consumer_groups().result(30).valid]
    found = {}
    for name in names:
        asked = ConsumerGroupTopicPartitions(name)
        told = kafka.admin.list_consumer_group_offsets([asked])[name].result(30)
        held = {one.partition: one.offset for one in told.topic_partitions if one.topic == topic and one.offset >= 0}
        if held:
            found[name] = held
    return found


def test_a_run_publishes_what_the_sealed_offsets_hold(topic_world: Make, kafka: KafkaBroker) -> None:
    """Rows are cut by their event time, later records change nothing, and no group of the broker is touched."""
    world, topic = topic_world(_events(), chunk_bytes="1")
    live = _commit_group(kafka, topic)
    before = _read_groups(kafka, topic)
    assert before == {f"live-{topic}": {0: 7, 1: 9}}
    view = world.plan()
    (read,) = view.inputs
    assert read.kafka == f"kafka://events/{topic}"
    assert read.offsets == {"0": (0, 48), "1": (0, 48)}
    assert len(view.chunks) == 4
    kafka.send(topic, [record(5, "late", "1000.00")])
    run = str(view.id)
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, run)
    assert world.rows() == _expected()
    told = [one.text("day") for one in world.client.status(run).late_inputs]
    assert any(
        "may have changed for 2026-01-01 … 2026-01-04 after it was pinned: at least 1 record" in one for one in told
    )
    assert _read_groups(kafka, topic) == before
    live.close()
    costs = [one.cost for one in world.ledger.progress.attempts(run)]
    # every chunk reads from its first record to the end of the log, because producers set the times
    assert sorted(int(cost["records_read:raw"]) for cost in costs) == [24, 48, 72, 96]
    assert {int(cost["offsets_empty:raw"]) for cost in costs} == {0}


def test_a_record_that_cannot_be_read_is_quarantined_once(topic_world: Make) -> None:
    """It is named by topic, partition and offset, and counts for the partition of its record time."""
    at = int(START.timestamp() * 1000)
    bad = [
        {"value": "{not json", "partition": 0, "timestamp": at + 3_600_000},
        {"value": "[1]", "partition": 0, "timestamp": at + 25 * 3_600_000},
        {"value": '{"account": "a", "amount": "x", "at": "2026-01-02T00:00:00Z"}', "partition": 0, "timestamp": at},
        {"value": '{"account": "a", "amount": "1.00"}', "partition": 0, "timestamp": at},
        {"value": None, "key": "k", "partition": 0, "timestamp": at},
    ]
    world, topic = topic_world([*_events(), *bad], quarantine="    quarantine: {block: 100%}\n", chunk_bytes="1")
    run = world.to("published")
    assert world.rows() == _expected()
    found = {row.origin: (row.partition, row.reason) for row in world.client.quarantine(run, sample=50).rows}
    place = f"kafka://events/{topic}/0@"
    assert found == {
        f"{place}48": ("2026-01-01", "value is no JSON object"),
        f"{place}49": ("2026-01-02", "value is no JSON object"),
        f"{place}50": ("2026-01-02", "cast amount"),
        f"{place}51": ("2026-01-01", "at is missing"),
        f"{place}52": ("2026-01-01", "value is missing"),
    }


def test_a_range_that_retention_has_eaten_is_refused(topic_world: Make, kafka: KafkaBroker) -> None:
    """The refusal names the topic partition, the time span that is lost, and a plan that is possible."""
    world, topic = topic_world(_events())
    kafka.cut(topic, 1, 20)
    with pytest.raises(PlanRefused) as refused:
        world.plan()
    said = str(refused.value)
    assert f"topic {topic} no longer has all records of 2026-01-01 … 2026-01-02: " in said
    assert "partition 1 begins at offset 20" in said
    assert "records from 2026-01-01T00:00:00Z to 2026-01-02T17:00:00Z are gone" in said
    assert "2026-01-03..2026-01-04" in str(refused.value.hint)
    run = world.to("published", "2026-01-03..2026-01-04")
    assert run


def test_a_topic_that_was_created_again_stops_the_chunk(topic_world: Make, kafka: KafkaBroker) -> None:
    """A topic of the same name is another topic, whatever its offsets say."""
    world, topic = topic_world(_events())
    run = world.to("approved")
    kafka.delete_topic(topic)
    kafka.make_topic(2, name=topic)
    kafka.send(topic, _events())
    with pytest.raises(ErrataError, match="was deleted and created again"):
        world.step("staged", run)
    assert world.rows() == world.wrong()


def test_offsets_without_a_record_need_an_explanation(topic_world: Make, kafka: KafkaBroker) -> None:
    """Markers of transactions fail the chunk, unless the product says that producers use transactions."""
    from confluent_kafka import Producer

    world, topic = topic_world(_events())
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": "0"})
    producer.init_transactions(30)
    for is_kept in (True, False):
        producer.begin_transaction()
        producer.produce(topic, **record(95.5, "tx" if is_kept else "aborted", "5.00"))
        producer.flush(30)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    kafka.send(topic, [record(95.75, "after", "6.00")])
    run = world.to("approved", "2026-01-04")
    with pytest.raises(ErrataError, match="has no record at offsets that were planned: 3 of partition 0"):
        world.step("staged", run)
    world.client.cancel(run, reason="no transactions declared", as_="ana")
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("      value:", "      transactions: true\n      value:"))
    world.client.close()
    world.open()
    run = world.to("published", "2026-01-04")
    (cost,) = [one.cost for one in world.ledger.progress.attempts(run)]
    assert int(cost["offsets_empty:raw"]) == 3
    accounts = {account for day, account, _, _ in world.rows() if day == "2026-01-04"}
    assert accounts == {"a0", "a1", "a2", "tx", "after"}


def test_records_that_retention_takes_after_the_plan_stop_the_chunk(topic_world: Make, kafka: KafkaBroker) -> None:
    """The error names the topic partition and what is gone; nothing is staged, and main is as it was."""
    world, topic = topic_world(_events())
    run = world.to("approved")
    kafka.cut(topic, 1, 3)
    with pytest.raises(ErrataError, match="retention removed 3 of 48 offsets of partition 1") as failed:
        world.step("staged", run)
    assert topic in str(failed.value)
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_a_record_of_an_open_transaction_is_not_in_the_range(topic_world: Make, kafka: KafkaBroker) -> None:
    """The range ends at the last stable offset, before the high watermark; a commit after the plan changes nothing."""
    from confluent_kafka import Producer

    world, topic = topic_world(_events(), more="      transactions: true\n")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": "0"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, **record(5, "open", "5.00"))
    producer.flush(30)
    kafka.send(topic, [record(6, "behind", "6.00")])
    view = world.plan()
    assert view.inputs[0].offsets == {"0": (0, 48), "1": (0, 48)}
    producer.commit_transaction(30)
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, str(view.id))
    assert world.rows() == _expected()


@pytest.mark.slow
def test_values_that_are_no_json_are_set_aside_and_stop_the_run(topic_world: Make) -> None:
    """Avro with its magic byte and schema id is a bad record with its place, not a row of NULLs."""
    avro = b"\x00\x00\x00\x00\x07\x02a\x0642.\xfe"
    at = int(START.timestamp() * 1000)
    limit = "    quarantine: {block: 0}\n"
    world, topic = topic_world(
        [*_events(), {"value": avro, "partition": 0, "timestamp": at}], quarantine=limit, chunk_bytes="1"
    )
    run = world.to("staged")
    with pytest.raises(ErrataError, match="quarantine"):
        world.step("validated", run)
    (row,) = world.client.quarantine(run, sample=5).rows
    assert (row.origin, row.reason) == (f"kafka://events/{topic}/0@48", "value is no JSON object")
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_staleness_of_a_topic_says_what_offsets_can_tell(topic_world: Make, kafka: KafkaBroker) -> None:
    """Retention makes nothing stale, new records may; a day with records near it only is called that, not missing."""
    late = "      lateness: 2h\n"
    world, topic = topic_world(_events(range(72)), more=late)
    for day in world.days[3:]:
        world.remove_day(day)
    world.to("published", "2026-01-01..2026-01-03")

    def look(**scope: str) -> dict[str, tuple[str, str]]:
        found = world.client.stale("fin.sales", **scope).partitions
        return {one.partition: (one.state, one.reasons[0].what if one.reasons else "") for one in found}

    assert {state for state, _ in look().values()} == {"current"}
    kafka.cut(topic, 0, 20)
    assert {state for state, _ in look().values()} == {"current"}
    kafka.send(topic, [record(71.5, "late", "1.00")])
    told = look()
    assert {state for state, _ in told.values()} == {"stale"}
    assert "2026-01-01 may have changed: 1 record came since of any time, because producers" in told["2026-01-01"][1]
    (near,) = look(partitions="2026-01-04").values()
    assert near[0] == "stale"
    assert "lake.fin.sales has no such partition; the topic has no record of that time, but others since 2 h" in near[1]
    after = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    kafka.send(topic, [record((datetime.now(UTC) - START) / timedelta(hours=1), "today", "1.00")])
    today = datetime.now(UTC).date().isoformat()
    (state, why) = look(partitions=today)[today]
    assert (state, f"may arrive until {after} 02:00 UTC" in why) == ("waiting", True)
