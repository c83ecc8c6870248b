"""A campaign of four tables on Spark and Iceberg: hour → day → month, and a rolling sum with look-back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.graph_world import PRODUCTS
from support.world import World

Make = Callable[..., World]
TABLES = {
    "raw.events": ("at timestamp, amount bigint", "hours(at)"),
    "ops.hourly": ("at timestamp, amount bigint", "hours(at)"),
    "ops.daily": ("day date, amount bigint", "day"),
    "ops.monthly": ("month string, amount bigint", "month"),
    "ops.rolling": ("day date, amount bigint", "day"),
}
MEMBERS = ("ops.hourly", "ops.daily", "ops.monthly", "ops.rolling")
CODE = """
from pyspark.sql import functions as F


def hourly(ctx, events):
    return events.groupBy(F.date_trunc("hour", "at").alias("at")).agg(F.sum("amount").alias("amount"))


def daily(ctx, hours):
    return hours.groupBy(F.to_date("at").alias("day")).agg(F.sum("amount").alias("amount"))


def monthly(ctx, days):
    return days.groupBy(F.date_format("day", "yyyy-MM").alias("month")).agg(F.sum("amount").alias("amount"))


def rolling(ctx, days):
    later = F.explode(F.array(*[F.date_add("day", n) for n in range(3)])).alias("day")
    return (
        days.select(later, "amount").groupBy("day").agg(F.sum("amount").alias("amount"))
        .where(F.col("day").cast("string").isin(*ctx.partitions))
    )
"""
EXPECTED = {
    "raw.events": "SELECT at, amount FROM lake.raw.events",
    "ops.hourly": "SELECT date_trunc('hour', at) AS at, sum(amount) AS amount FROM lake.raw.events GROUP BY 1",
    "ops.daily": "SELECT to_date(at) AS day, sum(amount) AS amount FROM lake.raw.events GROUP BY 1",
    "ops.monthly": "SELECT date_format(at, 'yyyy-MM') AS month, sum(amount) AS amount FROM lake.raw.events GROUP BY 1",
    "ops.rolling": "SELECT d.day, sum(e.amount) AS amount FROM"
    " (SELECT DISTINCT to_date(at) AS day FROM lake.raw.events)"
    " d JOIN lake.raw.events e ON to_date(e.at) BETWEEN date_sub(d.day, 2) AND d.day GROUP BY 1",
}


def make_graph(make_world: Make) -> World:
    """A world with the four products beside its own, their tables right."""
    world = make_world(days=1)
    root = world.root
    (root / "transforms/graph.py").write_text(CODE)
    for name, text in PRODUCTS.items():
        (root / f"products/{name}.yaml").write_text(text + "publish: {manual: false}\n")
    config = (root / "errata.yaml").read_text()
    (root / "errata.yaml").write_text(
        config.replace("people:\n", "people:\n  walker: {roles: [operator, publisher]}\n", 1)
    )
    world.client.close()
    world.open()
    for namespace in ("raw", "ops"):
        world.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
    for name, (columns, by) in TABLES.items():
        world.spark.sql(f"CREATE TABLE lake.{name} ({columns}) USING iceberg PARTITIONED BY ({by})")
    world.spark.sql(
        "INSERT INTO lake.raw.events SELECT timestamp '2026-01-31 00:00:00' + make_interval(0, 0, 0, 0, id, 0, 0), "
        "id + 1 FROM range(48)"
    )
    for name in MEMBERS:
        world.spark.sql(f"INSERT INTO lake.{name} {EXPECTED[name]}")
    return world


def rows(world: World, sql: str) -> list[Any]:
    """Rows in order, as text."""
    return sorted(str(tuple(row)) for row in world.spark.sql(sql).collect())


def content(world: World) -> dict[str, list[Any]]:
    """Rows of every member."""
    return {name: rows(world, f"SELECT * FROM lake.{name}") for name in MEMBERS}


@pytest.mark.slow
@pytest.mark.spark
def test_a_campaign_of_four_tables_corrects_them_in_order_and_goes_back(make_world: Make) -> None:
    """One approval, four publications, content by an independent query; the rollback restores all four."""
    world = make_graph(make_world)
    before = content(world)
    world.spark.sql("UPDATE lake.raw.events SET amount = 1000 WHERE at = timestamp '2026-02-01 05:00:00'")
    client = world.client
    plan = client.plan_campaign("ops.hourly", partitions="2026-02-01T05", reason="late events", as_="ana")
    assert [one.product for one in plan.members] == list(MEMBERS)
    client.approve_campaign(plan.campaign_id, digest=plan.campaign_digest, as_="bo")
    world.spark.sql("CALL lake.system.rewrite_data_files(table => 'ops.daily', options => map('rewrite-all', 'true'))")
    view = client.run_campaign(plan.campaign_id, publish=True, as_="walker")
    assert view.state == "done", view.problems
    assert content(world) == {name: rows(world, EXPECTED[name]) for name in MEMBERS}
    assert content(world) != before
    client.roll_back_campaign(plan.campaign_id, reason="wrong", as_="bo")
    assert content(world) == before
    assert world.workspace.ledger.audit.verify().ok
