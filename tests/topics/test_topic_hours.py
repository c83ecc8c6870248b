"""Hours of a topic as partitions of the target: chunks of offsets, a kill on the way, and plans that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from errata.errors import PlanRefused
from faults.commands import COMMANDS, killed
from support.kafka import KafkaBroker
from support.world import World
from topics.records import START, record

pytestmark = pytest.mark.spark

Make = Callable[..., tuple[World, str]]
HOURS = 6
PRODUCT = """
product: fin.hourly
owner: finance
target:
  table: lake.fin.hourly
  partition: {column: hour, grain: hour}
  key: [hour, account]
transform: {call: "transforms.hourly:build", version: 1.0.0}
inputs:
  raw:
    kafka:
      cluster: events
      topic: TOPIC
      lateness: 2h
      value: {format: json, columns: {account: string, amount: "decimal(12,2)", at: timestamptz}}
    partition: at
publish: {mode: replace_partitions}
checks:
  - {metric: duplicateValues, columns: [hour, account], mustBe: 0}
"""
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    hour = F.date_trunc("hour", "at").alias("hour")
    offsets = F.sort_array(F.collect_list("kafka_offset")).cast("string").alias("offsets")
    return raw.groupBy(hour, "account").agg(F.sum("amount").cast("decimal(12,2)").alias("gross"), offsets)
"""


def _add_hourly(world: World, topic: str) -> None:
    (world.root / "products/hourly.yaml").write_text(PRODUCT.replace("TOPIC", topic))
    (world.root / "transforms/hourly.py").write_text(TRANSFORM)
    world.sql(
        "CREATE TABLE lake.fin.hourly (hour timestamp, account string, gross decimal(12,2), offsets string) "
        "USING iceberg PARTITIONED BY (hours(hour)) TBLPROPERTIES ('format-version'='2')"
    )
    world.client.close()
    world.open()


def test_a_killed_run_over_hours_goes_on_and_is_exact(topic_world: Make) -> None:
    """After a kill at two thirds the chunks that are done are kept; late records are in their own hour, once."""
    events = [record(n / 4, f"a{n % 2}", "1.50", partition=n % 2) for n in range(4 * HOURS)]
    events += [record(n + 0.9, "late", "2.00", said=n + 2.4) for n in range(HOURS)]
    world, topic = topic_world(events, chunk_bytes="1")
    _add_hourly(world, topic)
    names = [f"2026-01-01T{n:02d}" for n in range(HOURS)]
    plan = world.client.plan("fin.hourly", partitions=f"{names[0]}..{names[-1]}", reason="lost", as_="ana")
    assert [chunk.partitions for chunk in plan.chunks] == [(name,) for name in reversed(names)]
    run = str(plan.id)
    (pin,) = world.ledger.runs.manifest(run).inputs
    sealed = json.loads(world.ledger.parts.get(str(pin.files_part)))
    assert {name: [(one["partition"], one["start"], one["end"]) for one in sealed[name]] for name in names} == {
        name: [(0, max(0, 2 * (n - 2)), 3 * HOURS), (1, max(0, 2 * (n - 2)), 2 * HOURS)] for n, name in enumerate(names)
    }
    world.step("approved", run)
    (command,) = [one for one in COMMANDS if one.name == "run"]
    killed(command, world, run, "stage.before_commit", "@5")
    done = [one.chunk_id for one in world.ledger.progress.chunks(run) if one.state.value == "done"]
    assert len(done) == HOURS * 2 // 3
    for state in ("staged", "validated", "published"):
        world.step(state, run)
    assert [one.fence for one in world.ledger.progress.attempts(run) if one.chunk_id in done] == [1] * len(done)
    rows = world.sql("SELECT date_format(hour, 'HH'), account, gross, offsets FROM lake.fin.hourly ORDER BY 1, 2")
    found = [tuple(row) for row in rows]
    expected = []
    for n in range(HOURS):
        offsets = f"[{2 * n}, {2 * n + 1}]"
        expected += [(f"{n:02d}", account, Decimal("3.00"), offsets) for account in ("a0", "a1")]
        expected.append((f"{n:02d}", "late", Decimal("2.00"), f"[{2 * HOURS + n}]"))
    assert found == expected


def test_a_plan_that_retention_would_overtake_is_refused(topic_world: Make) -> None:
    """The oldest records are gone before the run can have read them."""
    keep = int((datetime.now(UTC) - START).total_seconds() * 1000) + 2_000
    world, topic = topic_world([record(n, "a", "1.00") for n in range(96)], config={"retention__ms": str(keep)})
    with pytest.raises(PlanRefused, match=f"topic {topic} keeps its oldest records until"):
        world.plan()


def test_a_compacted_topic_is_refused_unless_declared(topic_world: Make, kafka: KafkaBroker) -> None:
    """Compaction removes records that a correction would need."""
    events = [record(n, "a", "1.00") for n in range(96)]
    world, topic = topic_world(events, config={"cleanup__policy": "compact"})
    with pytest.raises(PlanRefused, match=f"topic {topic} is compacted"):
        world.plan()
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("      value:", "      compacted: true\n      value:"))
    world.client.close()
    world.open()
    assert world.plan().inputs[0].offsets == {"0": (0, 96)}
    kafka.delete_topic(topic)
    (problem,) = world.client.check()
    assert (problem.key, f"has no topic {topic}" in problem.message) == ("inputs.raw.kafka.topic", True)
    told = {one.name: one.found for one in world.client.doctor()}
    assert told["kafka events"].startswith("1 broker, id ")
