"""The diff counts what a person would count, by key where it can and by row where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.measure import SparkMeasurer
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import Comparison
from errata.validator.compile import compile_plan
from errata.validator.ports import ColumnChange, PartitionDiff, SchemaDiff
from unit.validator.manifests import manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "day": "string",
    "k": "string",
    "amount": "decimal(10, 2)",
    "n": "long",
    "x": "double",
    "m": "map<string, int>",
    "run": "string",
}
DDL = "day string, k string, amount decimal(10,2), n bigint, x double, m map<string,int>, run string"
DAYS = ("changed", "emptied", "filled", "repeated", "same")
NAN = float("nan")


def _row(
    day: str,
    k: str | None,
    amount: str | None = "1.00",
    n: int | None = 1,
    x: float = 0.0,
    m: Any = None,
    run: str = "r1",
) -> tuple[Any, ...]:
    return (day, k, None if amount is None else Decimal(amount), n, x, m, run)


BEFORE = [
    _row("same", "a", x=NAN, m={"a": 1, "b": 2}),
    _row("same", "b"),
    _row("changed", "same", x=NAN, m={"a": 1, "b": 2}),
    _row("changed", "cent", "10.00"),
    _row("changed", "null", None, 5),
    _row("changed", "gone", "7.00", 2**60),
    _row("changed", None, "3.00"),
    _row("emptied", "a"),
    _row("repeated", "a"),
    _row("repeated", "a"),
    _row("repeated", "b"),
]
AFTER = [
    _row("same", "b", run="r2"),
    _row("same", "a", x=NAN, m={"b": 2, "a": 1}, run="r2"),
    _row("changed", "same", x=NAN, m={"b": 2, "a": 1}, run="r2"),
    _row("changed", "cent", "10.01"),
    _row("changed", "null", "0.50", None),
    _row("changed", "new", "2.00", 2**60),
    _row("changed", None, "4.00"),
    _row("filled", "a"),
    _row("repeated", "a"),
    _row("repeated", "b", "2.00"),
    _row("repeated", "b", "2.00"),
    _row("outside", "a"),
]


@pytest.fixture(scope="module")
def ids(base_spark: SparkSession) -> Iterator[tuple[str, str]]:
    """The prior and the candidate snapshot."""
    from pyspark.sql import functions

    base_spark.sql(f"CREATE TABLE lake.diffed ({DDL}) USING iceberg PARTITIONED BY (day)")
    base_spark.createDataFrame(BEFORE, DDL).coalesce(1).writeTo("lake.diffed").append()
    everything = functions.lit(True)  # noqa: FBT003 - a literal is a value
    base_spark.createDataFrame(AFTER, DDL).coalesce(1).writeTo("lake.diffed").overwrite(everything)
    found = base_spark.sql("SELECT snapshot_id FROM lake.diffed.snapshots ORDER BY committed_at").collect()
    yield str(found[0][0]), str(found[-1][0])
    base_spark.sql("DROP TABLE lake.diffed PURGE")


def _run(key: tuple[str, ...] = ("day", "k")) -> Manifest:
    target = target_pin("lake.diffed", "day", "string", Grain.VALUE, COLUMNS, key=key)
    return manifest(target=target, partitions=DAYS, lineage_columns=("run",))


def _part(day: str) -> bytes:
    raise AssertionError(day)


def test_rows_are_counted_by_key_and_whole_where_keys_repeat(spark: SparkSession, ids: tuple[str, str]) -> None:
    """NULL keys pair, NULL and NaN compare as values, lineage does not count, repeated keys do not multiply."""
    found = SparkMeasurer(spark, _part).diff(_run(), ids[1], ids[0], DAYS, 10)
    counts = {
        p.partition: (p.before_rows, p.after_rows, p.added, p.removed, p.changed, p.unchanged, p.method)
        for p in found.partitions
    }
    assert counts == {
        "changed": (5, 5, 1, 1, 3, 1, "key"),
        "emptied": (1, 0, 0, 1, 0, 0, "key"),
        "filled": (0, 1, 1, 0, 0, 0, "key"),
        "repeated": (3, 3, 2, 2, 0, 1, "rows"),
        "same": (2, 2, 0, 0, 0, 2, "same"),
    }
    assert found.schema == SchemaDiff()
    assert found.notes == ("the key is not unique in repeated; there, rows are compared whole",)


def test_columns_have_change_counts_and_exact_sums(spark: SparkSession, ids: tuple[str, str]) -> None:
    """A cent shows in the sums, integers beyond 2^53 add up, and a column that did not change says so."""
    found = SparkMeasurer(spark, _part).diff(_run(), ids[1], ids[0], ["changed"], 0)
    assert found.columns == {
        "amount": ColumnChange(3, "21.00", "17.51"),
        "n": ColumnChange(1, str(2**60 + 8), str(2**60 + 3)),
        "x": ColumnChange(0, "nan", "nan"),
        "m": ColumnChange(0),
    }
    assert found.sample == ()


def test_samples_show_changed_columns_only_in_key_order(spark: SparkSession, ids: tuple[str, str]) -> None:
    """Changed rows come first, with old and new of what changed; added and removed rows are whole."""
    found = SparkMeasurer(spark, _part).diff(_run(), ids[1], ids[0], DAYS, 4)
    assert [(row.change, row.key["k"], dict(row.before), dict(row.after)) for row in found.sample[:3]] == [
        ("changed", None, {"amount": "3.00"}, {"amount": "4.00"}),
        ("changed", "cent", {"amount": "10.00"}, {"amount": "10.01"}),
        ("changed", "null", {"amount": None, "n": 5}, {"amount": "0.50", "n": None}),
    ]
    assert found.sample[3].change == "removed"
    assert found.sample[3].before == {"amount": "7.00", "m": None, "n": str(2**60), "x": "0.0"}
    assert len(found.sample) == 4


def test_without_a_key_rows_are_compared_whole(spark: SparkSession, ids: tuple[str, str]) -> None:
    """A change is one row removed and one added, multiplicities count, and samples show both sides."""
    found = SparkMeasurer(spark, _part).diff(_run(key=()), ids[1], ids[0], ["changed", "repeated", "same"], 20)
    assert [(p.partition, p.added, p.removed, p.changed, p.unchanged) for p in found.partitions] == [
        ("changed", 4, 4, 0, 1),
        ("repeated", 2, 2, 0, 1),
        ("same", 0, 0, 0, 2),
    ]
    assert {row.change for row in found.sample} == {"added", "removed"}
    assert "has no key" in found.notes[0]


def test_stored_checksums_spare_the_scan(spark: SparkSession, ids: tuple[str, str]) -> None:
    """With the run's measurements at hand, only the prior output of a partition that did not change is read."""
    run, measurer = _run(), SparkMeasurer(spark, _part)
    measured = measurer.measure(run, compile_plan(run), candidate_snapshot=ids[1], prior_snapshot=ids[0])
    jobs = []
    for known in ((), measured):
        group = f"diff-same-{len(known)}"
        spark.sparkContext.setJobGroup(group, group)
        found = measurer.diff(run, ids[1], ids[0], ["same"], 5, known)
        assert found.partitions == (PartitionDiff("same", 2, 2, 0, 0, 0, 2, method="same"),)
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))
    assert jobs[0] == 2 * jobs[1]


def test_a_table_without_a_past_gains_every_row(spark: SparkSession, ids: tuple[str, str]) -> None:
    """Without a prior snapshot everything is added."""
    found = SparkMeasurer(spark, _part).diff(_run(), ids[1], None, ["changed", "same"], 0)
    assert [(p.before_rows, p.added, p.removed) for p in found.partitions] == [(0, 5, 0), (0, 2, 0)]


def test_a_new_column_is_a_schema_change_not_a_changed_row(spark: SparkSession, ids: tuple[str, str]) -> None:
    """Columns that one side lacks are reported as schema and left out of the comparison."""
    spark.sql("CREATE TABLE lake.grown (day string, k string) USING iceberg PARTITIONED BY (day)")
    spark.sql("INSERT INTO lake.grown VALUES ('same', 'a')")
    spark.sql("ALTER TABLE lake.grown ADD COLUMN extra int")
    spark.sql("INSERT OVERWRITE lake.grown VALUES ('same', 'a', 1)")
    found = [
        str(r[0]) for r in spark.sql("SELECT snapshot_id FROM lake.grown.snapshots ORDER BY committed_at").collect()
    ]
    columns = {"day": "string", "k": "string", "extra": "int"}
    run = manifest(
        target=target_pin("lake.grown", "day", "string", Grain.VALUE, columns, key=("k",)), partitions=("same",)
    )
    measurer = SparkMeasurer(spark, _part)
    diff = measurer.diff(run, found[-1], found[0], ["same"], 5)
    rules = replace(run, compare=(Comparison("e", "sum(extra)"),))
    measured = measurer.measure(rules, compile_plan(rules), candidate_snapshot=found[-1], prior_snapshot=found[0])
    assert {m.scope: Decimal(m.value or "-1") for m in measured if m.name == "compare.e"} == {
        "candidate": 1,
        "prior": 0,
    }
    assert diff.schema == SchemaDiff(added={"extra": "int"})
    assert (diff.partitions[0].unchanged, diff.partitions[0].changed) == (1, 0)
    spark.sql("DROP TABLE lake.grown PURGE")
