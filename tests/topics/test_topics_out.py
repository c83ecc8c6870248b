"""Rows and events that go to real topics: sent after publication, at least once, and never after a rollback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.kafka.record_writer import KafkaRecordWriter
from errata.model.kafka.declaration import KafkaCluster, TopicPlace
from errata.model.kafka.outgoing import OutgoingRecord
from errata.testing.contracts import TopicContract
from faults.commands import COMMANDS, killed
from support.invariants import assert_invariants
from support.kafka import KafkaBroker
from support.world import PRODUCT_FILE, World
from support.world import TRANSFORM as PLAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINK = "sinks:\n  fixes: {class: backfill_topic, cluster: events, topic: TOPIC, key: [day, account]}\n"
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    rows = raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
    ctx.emit("fixes", rows.withColumn("mode", F.lit(ctx.mode.value)))
    return rows
"""


@dataclass
class BrokerSubject:
    kafka: KafkaBroker
    place: TopicPlace

    @property
    def writer(self) -> KafkaRecordWriter:
        clusters = {"events": KafkaCluster("events", self.kafka.bootstrap)}
        return KafkaRecordWriter(clusters, timeout_seconds=20)

    def received(self) -> list[OutgoingRecord]:
        return [_to_record(one) for one in self.kafka.read(self.place.topic)]

    def break_down(self) -> None:
        self.kafka.delete_topic(self.place.topic)


class TestKafka(TopicContract):
    """A real broker."""

    @pytest.fixture
    def topic_subject(self, kafka: KafkaBroker) -> BrokerSubject:
        return BrokerSubject(kafka, TopicPlace("events", kafka.make_topic(3)))


def _to_record(message: Any) -> OutgoingRecord:
    headers = {name: value.decode() for name, value in message.headers() or ()}
    return OutgoingRecord(message.key().decode(), message.value().decode(), headers)


@pytest.fixture
def sending_world(base_spark: SparkSession, kafka: KafkaBroker, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes a governed lake whose transform emits rows for a topic."""
    made: list[World] = []

    def make(days: int = 3, product: str = f"{PRODUCT_FILE}{SINK}") -> tuple[World, str]:
        topic = kafka.make_topic(2)
        world = World.make(
            tmp_path / f"world{len(made)}", base_spark, days=days, product=product.replace("TOPIC", topic),
            transform=TRANSFORM if "sinks" in product else PLAIN, chunk_bytes="1",
            project=f'kafka:\n  events: {{bootstrap: "{kafka.bootstrap}"}}\n',
        )  # fmt: skip
        made.append(world)
        return world, topic

    yield make
    for world in made:
        world.client.close()
        assert_invariants(world.root, world.lake.pyiceberg)


@pytest.mark.spark
def test_rows_are_sent_once_published_and_survive_a_kill(sending_world: Any, kafka: KafkaBroker) -> None:
    """Killed between two chunks of rows: what was sent may come again, and a consumer that drops keys has each once."""
    world, topic = sending_world()
    run = world.to("validated")
    assert kafka.read(topic) == []
    (command,) = [one for one in COMMANDS if one.name == "publish"]
    killed(command, world, run, "topic.after_chunk", "@2")
    assert world.rows() == world.expected()
    before = [_to_record(one) for one in kafka.read(topic)]
    assert 0 < len(before) < len(world.expected())
    world.client.deliver(as_="ana")
    sent = [_to_record(one) for one in kafka.read(topic)]
    once = {(one.headers["x-run-id"], one.key): json.loads(one.value) for one in sent}
    assert len(once) == len(world.expected()) <= len(sent)
    assert sorted((row["day"], row["account"], row["gross"], row["n"]) for row in once.values()) == [
        (day, account, str(gross), n) for day, account, gross, n in world.expected()
    ]
    assert {row["mode"] for row in once.values()} == {"BACKFILL"}
    assert {one.headers["x-transform-version"] for one in sent} == {"fin.sales/2.0.0"}
    assert {one.headers["x-processing-mode"] for one in sent} == {"BACKFILL"}
    assert all(one.headers["x-input-snapshot"].startswith("raw@files:") for one in sent)
    world.client.cleanup(as_="ana")
    assert "errata_emitted_" not in str(world.sql("SHOW TABLES IN lake.fin"))


@pytest.mark.spark
def test_after_a_rollback_the_rest_stays_here(sending_world: Any, kafka: KafkaBroker) -> None:
    """The topic was gone when the run was published; what was rolled back before it came back is never sent."""
    world, topic = sending_world()
    kafka.delete_topic(topic)
    run = world.to("published")
    assert world.rows() == world.expected()
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    kafka.make_topic(2, name=topic)
    world.client.deliver(as_="ana")
    days = {json.loads(one.value())["day"] for one in kafka.read(topic)}
    assert days == set(world.days[1:])
    told = next(one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic")
    assert (told.state.value, told.result["left_out"]) == ("paid", [world.days[0]])


@pytest.mark.spark
@pytest.mark.slow
def test_corrections_go_to_a_topic_as_events(sending_world: Any, kafka: KafkaBroker) -> None:
    """Each row of the table of corrections, then its reverse after a rollback."""
    said = "rollback_window: 30d, corrections: {cluster: events, topic: TOPIC}"
    world, topic = sending_world(days=1, product=PRODUCT_FILE.replace("rollback_window: 30d", said))
    run = world.to("published")
    world.client.deliver(as_="ana")
    first = [json.loads(one.value()) for one in kafka.read(topic)]
    assert sorted((one["key"]["account"], one["old"]["gross"], one["new"]["gross"]) for one in first) == sorted(
        (account, str(2 * gross), str(gross)) for _, account, gross, _ in world.expected()
    )
    world.client.rollback(run, reason="wrong", as_="bo")
    world.client.deliver(as_="ana")
    every = [json.loads(one.value()) for one in kafka.read(topic)]
    assert len(every) == 2 * len(first)
    assert len({one["id"] for one in every}) == len(every)
    assert {dict(one.headers())["x-run-id"].decode() for one in kafka.read(topic)} == {run}
