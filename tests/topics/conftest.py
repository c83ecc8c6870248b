from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.invariants import assert_invariants
from support.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.kafka import KafkaBroker

PRODUCT = """
product: fin.sales
owner: finance
target:
  table: lake.fin.sales
  partition: {column: day, grain: day}
  key: [day, account]
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw:
    kafka:
      cluster: events
      topic: TOPIC
MORE      value: {format: json, columns: {account: string, amount: "decimal(12,2)", at: timestamptz}}
    partition: at
QUARANTINEpublish: {mode: replace_partitions, rollback_window: 30d}
checks:
  - {metric: duplicateValues, columns: [day, account], mustBe: 0}
reconcile:
  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}
lineage_columns: [produced_by_run_id, restatement_reason]
"""

TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    day = F.to_date("at").alias("day")
    return raw.groupBy(day, "account").agg(gross, F.count("*").alias("n"))
"""


@pytest.fixture
def topic_world(
    base_spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> Iterator[Callable[..., tuple[World, str]]]:
    """Makes a governed lake whose input is a topic, which holds these records."""
    made: list[World] = []

    def make(
        records: list[dict[str, Any]],
        *,
        partitions: int = 2,
        more: str = "",
        quarantine: str = "",
        chunk_bytes: str = "1MiB",
        config: dict[str, str] | None = None,
        project: str = "",
    ) -> tuple[World, str]:
        topic = kafka.make_topic(partitions, **(config or {}))
        kafka.send(topic, records)
        product = PRODUCT.replace("TOPIC", topic).replace("MORE", more)
        product = product.replace("QUARANTINE", quarantine)
        world = World.make(
            tmp_path / f"world{len(made)}", base_spark, days=4, product=product, transform=TRANSFORM,
            chunk_bytes=chunk_bytes, project=f'{project}kafka:\n  events: {{bootstrap: "{kafka.bootstrap}"}}\n',
        )  # fmt: skip
        made.append(world)
        return world, topic

    yield make
    for world in made:
        world.client.close()
        assert_invariants(world.root, world.lake.pyiceberg)
