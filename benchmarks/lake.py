"""Lakes to measure on: raw events by day, a target, and a project around them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import errata
from errata.client import Client
from errata.model.views import PlanView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "lake.bench.daily"
FIRST = date(2020, 1, 1)
PROJECT = """
project: bench
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}
spark: {master: "local[2]", conf: {spark.driver.memory: 4g, spark.sql.shuffle.partitions: "16"}}
people: single-user
limits: {max_partitions: 50000}
chunk_bytes: CHUNK
"""
PRODUCT = """
product: bench.daily
owner: bench
target:
  table: lake.bench.daily
  partition: {column: day, grain: day}
  key: [day, account]
transform: {call: "transforms.daily:build", version: 1.0.0}
inputs:
  events: {table: lake.bench.events, partition: day}
checks:
  - {metric: rowCount, mustBeGreaterThan: 0}
  - {metric: nullValues, column: account, mustBe: 0}
  - {name: no_negative, expression: "total < 0", mustBe: 0}
reconcile:
  - {name: amount, input: events, source: "sum(amount)", target: "sum(total)", tolerance: 0}
"""
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, events):
    return events.groupBy("day", "account").agg(
        F.sum("amount").cast("decimal(18,2)").alias("total"),
        F.count("*").alias("n"),
        F.min("amount").alias("low"),
        F.max("amount").alias("high"),
    )
"""


@dataclass
class Lake:
    """A project directory, its session and its client."""

    root: Path
    client: Client
    spark: SparkSession
    days: tuple[str, ...]

    def governed(self, *, validate: bool = True) -> dict[str, str]:
        """Plan, approve, run, validate, publish, all in this session; answers the run id."""
        client = self.client
        plan = self.plan()
        client.approve(plan.id, digest=plan.digest)
        client.run(plan.id)
        if validate:
            client.validate(plan.id)
            client.publish(plan.id)
        return {"run": plan.id}

    def plan(self) -> PlanView:
        """Every day of the lake."""
        return self.client.plan("bench.daily", partitions=list(self.days), reason="bench")

    def bare(self) -> None:
        """The same transform as one job, written over the same partitions with the same write options."""
        frame: DataFrame = self.built()
        options = {"fanout-enabled": "false", "advisory-partition-size": str(64 * 1024 * 1024)}
        frame.writeTo(TABLE).options(**options).overwritePartitions()

    def built(self) -> DataFrame:
        """The transform's output over the whole source."""
        from errata.engines.spark.transforms import load_transform
        from errata.project.code import zip_code

        content, digest = zip_code(self.root)
        build = load_transform(content, digest, "transforms.daily:build", self.root / ".errata/cache")
        frame: DataFrame = build(None, self.spark.table("lake.bench.events"))
        return frame


def make(root: Path, *, days: int, rows_per_day: int, accounts: int, chunk: str) -> Lake:
    """Events by day in an Iceberg table, and a target that holds a first, wrong version of every day."""
    _write(root / "errata.yaml", PROJECT.replace("CHUNK", chunk))
    _write(root / "products/daily.yaml", PRODUCT)
    _write(root / "transforms/daily.py", TRANSFORM)
    client = errata.open(str(root))
    spark = client._desk.engines.runtime.session  # noqa: SLF001
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    spark.sql(
        "CREATE TABLE lake.bench.events (day date, account bigint, amount decimal(12,2), note string) USING iceberg "
        "PARTITIONED BY (day) TBLPROPERTIES ('write.spark.fanout.enabled'='false')"
    )
    spark.sql(
        f"CREATE TABLE {TABLE} (day date, account bigint, total decimal(18,2), n bigint, low decimal(12,2), "
        f"high decimal(12,2)) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('commit.retry.num-retries'='30', 'write.spark.fanout.enabled'='false')"
    )
    spark.range(days * rows_per_day).selectExpr(
        f"date_add(date'{FIRST}', cast(id div {rows_per_day} as int)) AS day",
        f"pmod(xxhash64(id), {accounts}) AS account",
        "cast(pmod(xxhash64(id, 1), 100000) / 100 AS decimal(12,2)) AS amount",
        "concat('note ', id) AS note",
    ).writeTo("lake.bench.events").option("fanout-enabled", "false").append()
    lake = Lake(root, client, spark, tuple((FIRST + timedelta(days=n)).isoformat() for n in range(days)))
    lake.bare()
    return lake


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(textwrap.dedent(text).lstrip(), "utf-8")
