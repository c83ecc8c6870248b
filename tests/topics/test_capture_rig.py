"""A real database, connector and broker: what Errata rebuilds from the messages is what the database held."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from errata.engines.kafka.topics import KafkaTopics
from errata.engines.message_logs import read_message_log
from errata.engines.spark.inputs.change_messages import (
    MessagePlace,
    normalize_changes,
    parse_messages,
    read_commits,
    read_messages,
)
from errata.engines.spark.inputs.log_facts import SparkChangeLogs
from errata.model.change_log.log_pin import find_log_refusals
from errata.model.kafka.declaration import KafkaCluster, KafkaTopic
from errata.model.kafka.topic_range import TopicPin, merge_ranges
from errata.model.partition import Grain
from errata.model.product import Input
from errata.project.build.sources.change_inputs import build_transactions_input
from support import capture
from support.capture import CaptureRig
from support.change_log import Message
from support.connect import find_reason
from support.invariants import assert_invariants
from support.log_state import CDC, build_source, list_differences, read_state, replay_by_lsn
from support.world import World
from topics.test_change_inputs import APPLY, MERGE, PRODUCT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.ports.tables import InputState
    from support.kafka import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_RECORD = 64
"""The end of the log, which a mark has, is a little after the commit before it."""


@pytest.fixture
def rig(kafka: KafkaBroker, request: pytest.FixtureRequest) -> Iterator[CaptureRig]:
    """A table whose changes a connector sends."""
    if reason := find_reason():
        pytest.skip(f"there is no Kafka Connect: {reason}")
    prefix = "cdc" + str(abs(hash(request.node.name)) % 10_000)
    with CaptureRig.start(kafka, prefix, seed=11) as rig:
        rig.begin_capture()
        yield rig


def _place(state: InputState, source: Input) -> MessagePlace:
    assert source.kafka is not None
    assert state.topic is not None
    ranges = merge_ranges((state.offsets or {}).values())
    pin = TopicPin(source.kafka, state.topic.topic_id, len(state.topic.logs), state.topic.clock, ranges)
    return MessagePlace(state.location, topic=pin, ranges=ranges)


def test_the_state_at_any_commit_is_what_the_database_held(rig: CaptureRig, base_spark: SparkSession) -> None:
    """At 20 random commits, through a transaction that was open when the connector began, interleaved transactions,
    changed keys, a truncate, a kill -9, lost offsets and a new column. The order of log records alone fails.
    """
    rig.play()
    orders = f"{rig.prefix}.{capture.TABLE}"
    clusters = {"events": KafkaCluster("events", rig.broker.bootstrap)}
    made = build_source()
    source = Input(
        "orders", columns=made.columns, eras=made.eras, cdc=CDC, kafka=KafkaTopic("events", orders)
    )  # fmt: skip
    ends = build_transactions_input(source)
    ends = Input(ends.name, kafka=KafkaTopic("events", f"{rig.prefix}.transaction"), transactions_of="orders")
    topics = KafkaTopics(clusters)
    ends_state, changes_state = (read_message_log(one, Grain.DAY, (), topics) for one in (ends, source))
    state = SparkChangeLogs(lambda: base_spark, clusters).read_log(source, changes_state, ends_state, {}, ())
    assert find_log_refusals(CDC, state) == ()
    messages, marks = (
        parse_messages(read_messages(base_spark, _place(found, one), clusters))
        for found, one in ((changes_state, source), (ends_state, ends))
    )
    changes = normalize_changes(messages, read_commits(marks), CDC).cache()
    sent = [mark for mark in rig.marks[:-1] if mark.is_sent]
    chosen = random.Random(5).sample(sent, 20)  # noqa: S311 - repeatable, no secret
    records = [Message(orders, one["partition"], one["offset"], one["value"]) for one in
               capture.read_messages(rig.broker, orders)]  # fmt: skip
    wrong_by_lsn = 0
    for mark in chosen:
        found = read_state(changes, source, state, mark.position)
        assert list_differences(found, mark) == [], mark.position
        by_lsn = replay_by_lsn(records, mark.position)
        told = {key: str(row["amount"]) for key, row in by_lsn.items()}
        wrong_by_lsn += told != {key: row[1] for key, row in mark.rows.items()}
    changes.unpersist()
    assert wrong_by_lsn > 0
    for lost in (mark for mark in rig.marks if not mark.is_sent):
        with pytest.raises(AssertionError, match=str(lost.position - 1)):
            read_state(changes, source, state, lost.position - 1)


def test_a_bootstrap_is_followed_by_changes_without_a_gap(
    rig: CaptureRig, base_spark: SparkSession, tmp_path: Path
) -> None:
    """The state at the captured position, then twice what changed since: no row twice, none missing."""
    place = f"kafka: {{cluster: events, topic: {rig.prefix}.{capture.TABLE}}}"
    product = PRODUCT.replace("PLACE", place).replace("ENDS", f"{rig.prefix}.transaction")
    product = product.replace("CDC", "as: changes, since: accepted").replace("PUBLISH", MERGE)
    product = product.replace("PARTITION", "partition: created")
    project = f'kafka:\n  events: {{bootstrap: "{rig.broker.bootstrap}"}}\n'
    world = World.make(tmp_path / "world", base_spark, days=3, product=product, transform=APPLY, project=project)
    world.sql("ALTER TABLE lake.fin.sales ADD COLUMNS (input_snapshot_id string)")
    for day in world.days:
        world.remove_day(day)
    try:
        for kind in ("bootstrap", "restate", "restate"):
            rig.step(30)
            rig.end_open()
            rig.wait()
            run = world.to("planned", kind=kind)
            # what is committed while the run goes is the next run's
            rig.step(10)
            for state in ("approved", "staged", "validated", "published"):
                world.step(state, run)
            log = world.client.show(run).inputs[1].log
            assert log is not None
            mark = max(
                (one for one in rig.marks if one.position <= int(log.position) + 64), key=lambda one: one.position
            )
            rows = sorted((account, str(gross)) for _, account, gross, _ in world.rows())
            assert rows == sorted((key, str(row[1])) for key, row in mark.rows.items())
            rig.end_open()
    finally:
        world.client.close()
    assert_invariants(world.root, world.lake.pyiceberg)
