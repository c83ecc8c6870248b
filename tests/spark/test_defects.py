"""Planted defects: each is caught by the rule that is meant for it, and would pass every weaker one.

Every day carries one defect, so one look of the gate answers for all of them; what a day is expected to be caught by is
the exact set of rules that do not say ok.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import ErrataError
from support.world import FIRST, PRODUCT, TABLE, World

Make = Callable[..., World]

CAUGHT = {
    "nothing": set(),
    "one row twice, with an amount of zero": {"one row per key", "events"},
    "one amount off by a cent": {"gross", "gross by currency", "gross by account"},
    "a NULL in the wrong column": {"currency is known"},
    "a day's rows on the day after": {"empty", "events", "gross", "gross by currency", "gross by account"},
    "the day that got them": {"bounds", "events", "gross", "gross by currency", "gross by account", "gross moved"},
    "one currency missing, its amounts in another": {"gross by currency"},
    "sums kept, rows redistributed": {"gross by account"},
    "a constant column": {"spread of rates"},
    "a currency nobody knows": {"currency is listed"},
}
DEFECTS = {name: (FIRST + timedelta(days=n)).isoformat() for n, name in enumerate(CAUGHT)}

PRODUCT_FILE = """
product: fin.sales
owner: finance
target:
  table: lake.fin.sales
  partition: {column: day, grain: day}
  key: [day, account, currency]
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw: {files: "raw/day={day}/*.parquet", partition: day}
  currencies: {table: lake.fin.currencies}
checks:
  - {name: one row per key, metric: duplicateValues, columns: [day, account, currency], mustBe: 0}
  - {name: currency is known, metric: nullValues, column: currency, mustBe: 0}
  - name: currency is listed
    metric: missingReferences
    column: currency
    references: {input: currencies, columns: [code]}
    mustBe: 0
  - {name: bounds, metric: timestampBounds, column: at, mustBe: 0}
  - {name: all rows of the run, metric: rowCount, per: run, mustBeGreaterThan: 10}
reconcile:
  - {name: events, input: raw, source: "count(*)", target: "sum(n)"}
  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)"}
  - {name: gross of the run, input: raw, source: "sum(amount)", target: "sum(gross)", per: run, tolerance: 1%}
  - {name: gross by currency, input: raw, source: "sum(amount)", target: "sum(gross)", by: [currency]}
  - {name: gross by account, input: raw, source: "sum(amount)", target: "sum(gross)", by: [account]}
compare:
  - {name: gross moved, metric: "sum(gross)", warn: 5%, block: 50%}
  - {name: spread of rates, metric: "max(rate) - min(rate)", block: 50%}
"""

TRANSFORM = """
from pyspark.sql import functions as F

DEFECTS = {}


def build(ctx, raw, currencies):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    rows = raw.groupBy("day", "account", "currency").agg(
        gross, F.count("*").alias("n"), *(F.max(name).alias(name) for name in ("rate", "note", "at"))
    )

    def on(name):
        return F.col("day") == F.lit(DEFECTS[name]).cast("date")

    def change(column, name, where, value):
        return rows.withColumn(column, F.when(on(name) & where, value).otherwise(F.col(column)))

    account, first = F.col("account"), F.col("account").endswith("-0")
    zero = rows.where(on("one row twice, with an amount of zero") & (F.col("gross") == 0))
    rows = rows.unionByName(zero)
    rows = change("gross", "one amount off by a cent", first, F.expr("cast(gross + 0.01 as decimal(12,2))"))
    swapped = on("a NULL in the wrong column") & (F.col("gross") == 0)
    rows = rows.withColumn("note", F.when(swapped, F.col("currency")).otherwise(F.col("note")))
    rows = rows.withColumn("currency", F.when(swapped, F.lit(None)).otherwise(F.col("currency")))
    rows = change("day", "a day's rows on the day after", F.lit(True), F.date_add("day", 1))
    rows = change("currency", "one currency missing, its amounts in another", F.col("currency") == "GBP", F.lit("EUR"))
    ten = F.when(first, F.lit(10)).when(account.endswith("-1"), F.lit(-10)).otherwise(F.lit(0))
    rows = change("gross", "sums kept, rows redistributed", F.col("currency") == "EUR",
                  (F.col("gross") + ten).cast("decimal(12,2)"))
    rows = change("rate", "a constant column", F.lit(True), F.lit(1.5))
    return change("currency", "a currency nobody knows", F.col("gross") == 0, F.lit("XXX"))
"""


def write_raw(root: Path, day: str) -> None:
    """Five accounts of the day's own in three currencies; one amount is zero, so that no sum can tell its row."""
    accounts = [f"{day}-{n}" for n in range(5)]
    rows = {
        "account": accounts,
        "currency": ["EUR", "EUR", "GBP", "USD", "JPY"],
        "amount": pa.array([Decimal(d) for d in ("100.00", "80.00", "60.00", "40.00", "0.00")], pa.decimal128(12, 2)),
        "rate": [1.1, 1.2, 1.3, 1.4, 1.5],
        "note": pa.array(["x", "x", "x", "x", None], pa.string()),
        "at": pa.array([date.fromisoformat(day)] * 5, pa.date32()).cast(pa.timestamp("us")),
    }
    place = root / f"raw/day={day}/part-0.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), place)


@pytest.fixture
def defective(make_world: Make) -> World:
    """A lake whose history is right and whose transform is wrong in one way on each day."""
    world = make_world(
        days=0, product=PRODUCT_FILE, transform=TRANSFORM.replace("DEFECTS = {}", f"DEFECTS = {DEFECTS}"), history=False
    )
    world.sql(f"DROP TABLE {TABLE}")
    world.sql(
        f"CREATE TABLE {TABLE} (day date, account string, currency string, gross decimal(12,2), n bigint, rate double, "
        "note string, at timestamp_ntz) USING iceberg PARTITIONED BY (day)"
    )
    world.sql(
        "CREATE TABLE lake.fin.currencies USING iceberg AS SELECT explode(array('EUR','GBP','USD','JPY')) AS code"
    )
    for day in DEFECTS.values():
        write_raw(world.root, day)
    files = world.spark.read.parquet(str(world.root / "raw"))
    right = files.selectExpr("day", "account", "currency", "amount AS gross", "bigint(1) AS n", "rate", "note", "at")
    right.writeTo(TABLE).append()
    return world


def test_every_planted_defect_is_caught_by_the_rule_that_is_meant_for_it_and_by_nothing_weaker(
    defective: World,
) -> None:
    """One trial over all days; sums, counts and shares that a defect does not touch stay quiet about it."""
    view = defective.client.try_out(PRODUCT, list(DEFECTS.values()), as_="ana")
    found: dict[str, set[str]] = {name: set() for name in DEFECTS}
    whole = set()
    for check in view.checks:
        if check.level == "ok":
            continue
        if check.partition in (None, ""):
            whole.add(check.name)
        else:
            found[next(name for name, day in DEFECTS.items() if day == check.partition)].add(check.name)
    assert found == CAUGHT
    assert whole == set(), "totals over the run hide every one of them"


def test_a_truncated_source_file_is_an_error_by_name_and_not_fewer_rows(defective: World) -> None:
    """Half a Parquet file cannot be read, and the message says which."""
    place = defective.root / f"raw/day={DEFECTS['nothing']}/part-0.parquet"
    content = place.read_bytes()
    place.write_bytes(content[: len(content) // 2])
    with pytest.raises(ErrataError) as refused:
        defective.client.try_out(PRODUCT, DEFECTS["nothing"], as_="ana")
    assert place.name in str(refused.value)
