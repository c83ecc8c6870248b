"""Partition shapes: hidden transforms, several fields, NULL, a table without snapshots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.world import PRODUCT_FILE, TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]

HIDDEN = (
    PRODUCT_FILE.replace("{column: day, grain: day}", "{column: ts, grain: day}")
    .replace("key: [day, account]", "key: [ts, account]")
    .replace("columns: [day, account]", "columns: [ts, account]")
)
HIDDEN_TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    rows = raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
    return rows.withColumn("ts", F.to_timestamp("day")).drop("day")
"""


def test_several_partition_fields_are_one_partition_of_the_product(make_world: Make) -> None:
    """With (bucket, day) the day is found by column and transform, not by position."""
    world = make_world(days=3, spec="bucket(2, account), day")
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    assert [r for r in world.rows() if r[0] in world.days[:2]] == world.expected(world.days[:2])
    assert [r for r in world.rows() if r[0] == world.days[2]] == world.wrong([world.days[2]])
    world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    assert [r for r in world.rows() if r[0] == world.days[0]] == world.wrong([world.days[0]])


def test_a_table_without_a_snapshot_can_be_filled(world_at: WorldAt) -> None:
    """The first snapshot of main is an empty one; the run fills the gap and can be taken back to nothing."""
    world, run = world_at("published", days=2, history=False)
    assert world.rows() == world.expected()
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == []


@pytest.mark.parametrize("transform", ["days", pytest.param("months", marks=pytest.mark.slow)])
def test_hidden_partitions_by_time_are_corrected_and_conflicts_found(make_world: Make, transform: str) -> None:
    """``days(ts)`` and ``months(ts)``: scope is a range on the column, and a live append inside it is a conflict."""
    from errata.errors import PublishConflict

    product = (
        HIDDEN
        if transform == "days"
        else HIDDEN.replace("grain: day", "grain: month")
        .replace('files: "raw/day={day}/*.parquet"\n    partition: day', 'files: "raw/day=*/*.parquet"')
        .replace(
            'reconcile:\n  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', ""
        )
    )
    text = HIDDEN_TRANSFORM
    if transform == "months":
        text = text.replace(
            "raw.groupBy",
            'raw.withColumn("day", F.regexp_extract(F.col("_metadata.file_path"), "day=([0-9-]+)", 1)).groupBy',
        )
    world = make_world(days=3, product=product, transform=text, history=False)
    world.sql(f"DROP TABLE {TABLE}")
    world.sql(
        f"CREATE TABLE {TABLE} (ts timestamp, account string, gross decimal(12,2), n bigint, "
        f"produced_by_run_id string, restatement_reason string) USING iceberg PARTITIONED BY ({transform}(ts))"
    )
    world.sql(
        f"INSERT INTO {TABLE} VALUES (timestamp'2026-01-01 00:00:00', 'a0', 9, 9, null, null), "
        "(timestamp'2026-02-03 23:59:59', 'a0', 9, 9, null, null)"
    )
    scope = f"{world.days[0]}..{world.days[2]}" if transform == "days" else "2026-01"
    run = world.to("validated", scope)
    world.client.publish(run, as_="bo")
    found = world.sql(
        f"SELECT cast(ts as date) d, account, gross, n FROM {TABLE} WHERE ts < '2026-02-01' ORDER BY 1, 2"
    )
    assert [(str(r.d), r.account, r.gross, r.n) for r in found] == world.expected()
    assert world.sql(f"SELECT count(*) c FROM {TABLE} WHERE ts >= '2026-02-01'")[0].c == 1
    world.sql(f"INSERT INTO {TABLE} VALUES (timestamp'2026-01-02 12:00:00', 'live', 1, 1, null, null)")
    with pytest.raises(PublishConflict):
        world.client.rollback(run, reason="undo", as_="bo")


def test_the_null_partition_can_be_named(make_world: Make) -> None:
    """Rows without a value are a partition like any other, written ``null``."""
    product = (
        PRODUCT_FILE.replace("{column: day, grain: day}", "{column: account, grain: value}")
        .replace(
            '    files: "raw/day={day}/*.parquet"\n    partition: day',
            "    table: lake.fin.events\n    partition: account",
        )
        .replace("  - {metric: nullValues, column: account, mustBe: 0}\n", "")
        .replace("sum(amount)", "sum(gross)")
    )
    transform = "def build(ctx, raw):\n    return raw.select('day', 'account', 'gross', 'n')\n"
    world = make_world(days=1, spec="account", product=product, transform=transform)
    world.sql(
        "CREATE TABLE lake.fin.events (day date, account string, gross decimal(12,2), n bigint) "
        "USING iceberg PARTITIONED BY (account)"
    )
    world.sql("INSERT INTO lake.fin.events VALUES (date'2026-01-01', null, 5, 1), (date'2026-01-01', 'a0', 6, 1)")
    world.sql(f"INSERT INTO {TABLE} VALUES (date'2026-01-01', null, 50, 1, null, null)")
    run = world.to("published", "null")
    got = {r.account: r.gross for r in world.sql(f"SELECT account, gross FROM {TABLE}")}
    assert got[None] == 5
    assert got["a0"] != 6
    assert world.client.status(run).partitions[0].partition == "null"


BY_ACCOUNT = (
    PRODUCT_FILE.replace("{column: day, grain: day}", "{column: account, grain: value}")
    .replace(
        '    files: "raw/day={day}/*.parquet"\n    partition: day', "    table: lake.fin.events\n    partition: account"
    )
    .replace("  - {metric: nullValues, column: account, mustBe: 0}\n", "")
    .replace("sum(amount)", "sum(gross)")
)


@pytest.mark.parametrize("spec", ["account", pytest.param("truncate(1, account)", marks=pytest.mark.slow)])
def test_several_text_values_are_corrected_and_restored_beside_a_null_partition(make_world: Make, spec: str) -> None:
    """Rows without a value in source and target do not keep two accounts from being computed, undone and restored."""
    transform = "def build(ctx, raw):\n    return raw.select('day', 'account', 'gross', 'n')\n"
    world = make_world(days=1, spec=spec, product=BY_ACCOUNT, transform=transform)
    world.sql(
        "CREATE TABLE lake.fin.events (day date, account string, gross decimal(12,2), n bigint) USING iceberg "
        f"PARTITIONED BY ({spec})"
    )
    listed = "(date'2026-01-01', 'a0', 6, 1), (date'2026-01-01', 'a1', 7, 1), (date'2026-01-01', null, 5, 1)"
    world.sql(f"INSERT INTO lake.fin.events VALUES {listed}")
    world.sql(f"INSERT INTO {TABLE} VALUES (date'2026-01-01', null, 50, 1, null, null)")

    def gross() -> dict[str | None, int]:
        return {row["account"]: int(row["gross"]) for row in world.sql(f"SELECT account, gross FROM {TABLE}")}

    before, start = gross(), world.snapshot()
    run = world.to("published", "a0,a1")
    assert gross() == before | {"a0": 6, "a1": 7}
    world.client.rollback(run, reason="undo", as_="bo")
    assert gross() == before
    world.sql(f"UPDATE {TABLE} SET gross = 1")
    world.to("published", "null,a0,a1", restore=str(start), reason="bring back")
    assert gross() == dict.fromkeys(before, 1) | {name: before[name] for name in (None, "a0", "a1")}
