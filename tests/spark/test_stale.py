"""Staleness on Iceberg: two days of an input table that a foreign job overwrites, and everything that follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.world import World

Make = Callable[..., World]
RAW = "lake.fin.raw_days"
PRODUCT = """
product: fin.sales
owner: finance
target: {table: lake.fin.sales, partition: {column: day, grain: day}, key: [day, account]}
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  days: {table: lake.fin.raw_days, partition: day, lookback: 2d}
lineage_columns: [produced_by_run_id, restatement_reason]
"""
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, days):
    own = [F.lit(name).cast("date") for name in ctx.partitions]
    spread = days.select("amount", F.explode(F.expr("sequence(day, date_add(day, 2))")).alias("day"))
    rows = spread.where(F.col("day").isin(*own)).groupBy("day")
    rows = rows.agg(F.sum("amount").cast("decimal(12,2)").alias("gross"), F.count("*").alias("n"))
    return rows.select("day", F.lit("all").alias("account"), "gross", "n")
"""


def find(world: World) -> list[str]:
    return [one.partition for one in world.client.stale("fin.sales").partitions if one.state == "stale"]


def write(world: World, *amounts: tuple[str, int]) -> None:
    """A foreign job overwrites days of the input."""
    rows = ", ".join(f"(DATE '{day}', {amount})" for day, amount in amounts)
    world.sql(f"INSERT OVERWRITE {RAW} VALUES {rows}")


@pytest.mark.slow
@pytest.mark.spark
def test_two_overwritten_days_make_four_partitions_stale_until_they_are_published(make_world: Make) -> None:
    """By metadata alone; compaction of the input and a delete of its rows are told apart."""
    world = make_world(days=8, product=PRODUCT, transform=TRANSFORM, history=False)
    world.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    world.sql(f"CREATE TABLE {RAW} (day DATE, amount INT) USING iceberg PARTITIONED BY (day)")
    write(world, *((day, n + 1) for n, day in enumerate(world.days)))
    world.to("published")
    assert find(world) == []
    write(world, (world.days[2], 70), (world.days[3], 80))
    assert find(world) == list(world.days[2:6])
    view = world.client.stale("fin.sales")
    (reason,) = next(one.reasons for one in view.partitions if one.partition == world.days[4])
    assert (reason.input, reason.basis) == ("days", "recorded")
    assert f"{world.days[2]} … {world.days[3]} changed: overwrite by" in reason.what
    plan = world.client.plan("fin.sales", stale=True, reason="late", as_="ana")
    assert plan.partitions == world.days[2:6]
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, plan.id)
    assert (find(world), world.client.stale("fin.sales").ok) == ([], True)
    world.sql(f"CALL lake.system.rewrite_data_files(table => '{RAW}', options => map('rewrite-all', 'true'))")
    assert find(world) == []
    world.sql(f"DELETE FROM {RAW} WHERE day = DATE '{world.days[7]}'")
    assert find(world) == [world.days[7]]


@pytest.mark.slow
@pytest.mark.spark
def test_a_change_in_files_of_an_older_spec_is_seen(make_world: Make) -> None:
    """Rows that were written before the input was partitioned belong to what is read; days elsewhere do not."""
    world = make_world(days=6, product=PRODUCT, transform=TRANSFORM, history=False)
    world.sql(
        f"CREATE TABLE {RAW} (day DATE, amount INT) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    for days in (world.days[:2], world.days[4:]):
        rows = ", ".join(f"(DATE '{day}', {n})" for n, day in enumerate(days, 1))
        world.sql(f"INSERT INTO {RAW} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    world.sql(f"ALTER TABLE {RAW} ADD PARTITION FIELD day")
    world.sql(f"INSERT INTO {RAW} VALUES (DATE '{world.days[2]}', 3), (DATE '{world.days[3]}', 4)")
    world.to("published")
    assert find(world) == []
    world.sql(f"DELETE FROM {RAW} WHERE day = DATE '{world.days[0]}'")
    assert find(world)[0] == world.days[0]
    assert world.client.plan("fin.sales", stale=True, reason="late", as_="ana").partitions
