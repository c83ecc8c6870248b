"""Inputs with narrower partitions than the product, on Spark and Iceberg: files by hour, and days as text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import ValidationRejected
from support.world import PRODUCT_FILE, World

Make = Callable[..., World]

BY_HOUR = PRODUCT_FILE.replace(
    '    files: "raw/day={day}/*.parquet"\n    partition: day\n',
    '    files: "hours/at={at}/*.parquet"\n    partition: at\n    grain: hour\n    lookback: 2h\n'
    "    columns: {account: string, amount: 'decimal(12,2)'}\n"
    "    rows: [{name: negative, expression: 'amount < 0', action: quarantine}]\n",
)
DAILY = """
from pyspark.sql import functions as F


def build(ctx, raw):
    day = F.to_date("at").alias("day")
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    # look-back rows belong to the day before
    return raw.groupBy(day, "account").agg(gross, F.count("*").alias("n")).where(F.col("day").isin(*ctx.partitions))
"""


def write_hour(root: Path, hour: str, *amounts: str) -> None:
    """Raw events of one hour."""
    kind = pa.decimal128(12, 2)
    table = pa.table(
        {"account": ["a0"] * len(amounts), "amount": pa.array([Decimal(one) for one in amounts], kind)},
        schema=pa.schema([("account", pa.string()), ("amount", kind)]),
    )
    place = root / f"hours/at={hour}/part-0.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place)


@pytest.mark.slow
@pytest.mark.spark
def test_a_day_is_computed_from_hourly_files_and_each_row_is_accounted_for_once(make_world: Make) -> None:
    """The hour comes from the path, look-back rows are read and not counted, and a bad row is set aside by its day."""
    world = make_world(days=2, product=BY_HOUR, transform=DAILY)
    for hour in range(24):
        write_hour(world.root, f"2026-01-01T{hour:02d}", "1.00")
        write_hour(world.root, f"2026-01-02T{hour:02d}", "2.00", *(["-5.00"] if hour == 7 else []))
    plan = world.plan("2026-01-01..2026-01-02", canary=1)
    (raw,) = plan.inputs
    assert (raw.grain, raw.partitions[0], raw.partitions[-1], len(raw.partitions)) == (
        "hour", "2025-12-31T22", "2026-01-02T23", 50,
    )  # fmt: skip
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    found = world.client.validate(plan.id, accept={"quarantine": "refunds"}, as_="bo").checks
    accounts = {one["partition"]: one["message"] for one in found if one["name"] == "accounting"}
    assert accounts["2026-01-01"] == "raw: 24 rows in = 24 used + 0 quarantined + 0 suppressed"
    assert accounts["2026-01-02"] == "raw: 25 rows in = 24 used + 1 quarantined + 0 suppressed"
    reasons = world.client.quarantine(plan.id).reasons
    assert [(one.partitions, one.reason, one.rows) for one in reasons] == [(("2026-01-02",), "negative", 1)]


BY_MONTH = """
product: fin.sales
owner: finance
target: {table: lake.fin.months, partition: {column: month, grain: month}}
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  days: {table: lake.fin.text_days, partition: dt, grain: day, lookback: 1d}
reconcile: [{name: gross, input: days, source: "sum(gross)", target: "sum(gross)", tolerance: 0}]
"""
MONTHLY = """
from pyspark.sql import functions as F


def build(ctx, days):
    month = F.substring("dt", 1, 7).alias("month")
    return days.groupBy(month).agg(F.sum("gross").alias("gross")).where(F.col("month").isin(*ctx.partitions))
"""


@pytest.mark.spark
@pytest.mark.parametrize("is_lossy", [False, True])
def test_a_month_is_reconciled_with_its_days_as_text(make_world: Make, is_lossy: bool) -> None:
    """Text days are cut to the month that they are in, by metadata, by Spark and by the gate."""
    lossy = MONTHLY.replace("days.groupBy", "days.where(\"dt <> '2026-02-02'\").groupBy")
    world = make_world(days=1, product=BY_MONTH, transform=lossy if is_lossy else MONTHLY)
    world.sql("CREATE TABLE lake.fin.months (month string, gross bigint) USING iceberg PARTITIONED BY (month)")
    world.sql("CREATE TABLE lake.fin.text_days (dt string, gross bigint) USING iceberg PARTITIONED BY (dt)")
    days = {"2026-01-30": 1, "2026-01-31": 2, "2026-02-01": 4, "2026-02-02": 8}
    rows = ", ".join(f"('{day}', {n})" for day, n in days.items())
    world.sql(f"INSERT INTO lake.fin.text_days VALUES {rows}")
    plan = world.client.plan("fin.sales", partitions="2026-02", reason="months", as_="ana")
    (source,) = plan.inputs
    assert (source.grain, source.partitions[0], len(source.partitions)) == ("day", "2026-01-31", 29)
    assert (source.rows, source.file_count) == (3, 3)
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    if is_lossy:
        with pytest.raises(ValidationRejected, match="gross"):
            world.client.validate(plan.id, as_="ana")
        return
    world.client.validate(plan.id, as_="ana")
    world.client.publish(plan.id, as_="bo")
    assert [tuple(row) for row in world.sql("SELECT month, gross FROM lake.fin.months")] == [("2026-02", 12)]
