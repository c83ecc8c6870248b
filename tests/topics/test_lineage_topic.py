"""Lineage to a topic of a real broker: every event is confirmed, and those of one correction stay in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from errata.model.consumer.outbox import Effect
from support.lineage import list_endings, require_valid
from support.memory_world import MemoryWorld
from support.world import PRODUCT

if TYPE_CHECKING:
    from support.kafka import KafkaBroker

LINEAGE = """
kafka:
  events: {{bootstrap: "{bootstrap}"}}
lineage: {{kafka: {{cluster: events, topic: {topic}}}}}
"""


def test_events_go_to_a_topic_in_order(kafka: KafkaBroker, tmp_path: Path) -> None:
    """All events of a correction have one key, so that they are in one partition, in order."""
    topic = kafka.make_topic(partitions=4)
    project = LINEAGE.format(bootstrap=kafka.bootstrap, topic=topic)
    world = MemoryWorld.make(tmp_path / "world", days=3, chunk_bytes="1", project=project)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    records = kafka.read(topic)
    events = [json.loads(record.value()) for record in records]
    require_valid(events)
    assert list(list_endings(events).values()) == [["START", "COMPLETE"]] * 6
    assert {record.key() for record in records} == {f"run:test/{PRODUCT}".encode()}
    world.client.close()


def test_a_topic_that_is_not_there_leaves_the_events_owed(kafka: KafkaBroker, tmp_path: Path) -> None:
    """The correction is published; once there is the topic, it gets everything."""
    project = LINEAGE.format(bootstrap=kafka.bootstrap, topic="lineage-of-tests")
    world = MemoryWorld.make(tmp_path / "world", days=1, project=project)
    run = world.to("published")
    assert world.client.status(run).state == "published"
    owed = [one for one in world.ledger.outbox.list_open() if one.effect is Effect.LINEAGE]
    assert owed[0].last_error == "events has no topic lineage-of-tests"
    kafka.make_topic(name="lineage-of-tests")
    world.client.retry_outbox([str(one.item_id) for one in owed], as_="ana")
    assert world.client.deliver(as_="ana").ok
    assert len(kafka.read("lineage-of-tests")) == 6
    world.client.close()
