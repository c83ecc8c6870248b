"""The diff counts what a person would count, by key where it can and by row where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.diff.pairs import Pairs
from errata.engines.spark.inputs.frames import read_snapshot
from errata.engines.spark.measure.measurer import SparkMeasurer
from errata.gate.measure.scan_plan import compile_plan
from errata.model.diff import MASK, ChangePattern, ColumnChange, Diff, PartitionDiff, SchemaDiff, TopValue
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import Comparison
from unit.gate.manifests import manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def _run(key: tuple[str, ...] = ("day", "k"), **changes: Any) -> Manifest:
    target = target_pin("lake.diffed", "day", "string", Grain.VALUE, COLUMNS, key=key)
    return manifest(target=target, partitions=DAYS, lineage_columns=("run",), **changes)


def _part(day: str) -> bytes:
    raise AssertionError(day)


@pytest.fixture(scope="module")
def found(base_spark: SparkSession, ids: tuple[str, str]) -> Diff:
    """Everything compared, with four sampled rows."""
    return SparkMeasurer(base_spark, _part).diff(_run(), ids[1], ids[0], DAYS, 4)


def test_rows_are_counted_by_key_and_whole_where_keys_repeat(found: Diff) -> None:
    """NULL keys pair, NULL and NaN compare as values, lineage does not count, repeated keys do not multiply."""
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


def test_columns_have_change_counts_and_exact_sums(found: Diff) -> None:
    """A cent shows in the sums, integers beyond 2^53 add up, and a column that did not change says so."""
    assert found.partitions[0].columns == {
        "amount": ColumnChange(3, "21.00", "17.51"),
        "n": ColumnChange(1, str(2**60 + 8), str(2**60 + 3)),
        "x": ColumnChange(0, "nan", "nan"),
        "m": ColumnChange(0),
    }
    assert found.columns["amount"] == ColumnChange(3, "22.00", "18.51", median_percent="0.10")


def test_samples_show_changed_columns_only_in_key_order(found: Diff) -> None:
    """One row of each kind comes first, removed ones at the top; of changed rows only what changed is shown."""
    assert [row.change for row in found.sample] == ["removed", "added", "changed", "changed"]
    assert found.sample[0].before == {"amount": "7.00", "m": None, "n": str(2**60), "x": "0.0"}
    assert [(row.key["k"], dict(row.before), dict(row.after)) for row in found.sample[2:]] == [
        (None, {"amount": "3.00"}, {"amount": "4.00"}),
        ("cent", {"amount": "10.00"}, {"amount": "10.01"}),
    ]


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_a_small_sample_is_the_beginning_of_a_larger_one(
    spark: SparkSession, ids: tuple[str, str], found: Diff, wanted: int
) -> None:
    """Also where a kind has to be looked for in another partition than the first."""
    assert SparkMeasurer(spark, _part).diff(_run(), ids[1], ids[0], DAYS, wanted).sample == found.sample[:wanted]


def test_columns_that_change_together_are_counted(found: Diff) -> None:
    """Rows by exactly the columns that changed in them; a partition whose keys repeat has no pairs to count."""
    assert found.together == (ChangePattern(("amount",), 2), ChangePattern(("amount", "n"), 1))
    assert {p.partition: p.columns["amount"].changed for p in found.partitions if p.columns} == {
        "changed": 3, "emptied": 0, "filled": 0,
    }  # fmt: skip


@pytest.mark.parametrize("amount, within", [("0.01", 1), ("0.1%", 1), ("1", 2)])
def test_a_tolerance_holds_for_its_column_alone(
    spark: SparkSession, ids: tuple[str, str], amount: str, within: int
) -> None:
    """A movement up to the amount is no change and is counted; NULL is near nothing, and other columns stay exact."""
    run = _run(tolerance={"amount": amount, "x": "9"})
    pairs = Pairs(*_frames(spark, ids), run.target, ["day", "k", "amount", "n", "x"], run.tolerance)
    counted = pairs.count(["changed"])
    part = counted.partitions["changed"]
    assert (part.changed, part.unchanged, part.within) == (3 - within, 1 + within, within)
    assert (part.columns["amount"].within, part.columns["x"].within, part.columns["n"].changed) == (within, 0, 1)
    assert sum(one.rows for one in counted.together) == 3 - within


def test_a_sampled_median_looks_at_the_same_keys_every_time(spark: SparkSession, ids: tuple[str, str]) -> None:
    """One key in so many, by its hash: both sides of a row are in or out together, and nothing counts as added."""
    pairs = Pairs(*_frames(spark, ids), _run().target, ["day", "k", "amount"])
    few = [row["k1"] for row in pairs.pair_rows(["changed"], 2).where("status = 'changed'").orderBy("k1").collect()]
    again = [row["k1"] for row in pairs.pair_rows(["changed"], 2).where("status = 'changed'").orderBy("k1").collect()]
    every = pairs.pair_rows(["changed"], 2).collect()
    assert few == again
    assert 0 < len(every) < 6
    assert {row["k1"] for row in every if row["status"] in ("added", "removed")} <= {"new", "gone"}


def _frames(spark: SparkSession, ids: tuple[str, str]) -> tuple[DataFrame, DataFrame]:
    return read_snapshot(spark, "lake.diffed", ids[0], 1), read_snapshot(spark, "lake.diffed", ids[1], 1)


def test_distributions_have_both_sides(found: Diff) -> None:
    """Numbers have ends, quantiles and mean, text its frequent values, and NULL is counted, over what differs only."""
    spread = found.distributions
    assert set(spread) == {"k", "amount", "n", "x", "m"}
    before, after = spread["amount"].before, spread["amount"].after
    assert (before.rows, before.nulls, before.minimum, before.maximum) == (9, 1, "1.00", "10.00")
    assert (after.rows, after.nulls, after.minimum, after.maximum) == (9, 0, "0.50", "10.01")
    assert Decimal(before.mean or 0) == Decimal(25) / 8
    assert (before.quantiles["0.5"], after.quantiles["0.95"]) == ("1.00", "10.01")
    text = spread["k"]
    assert (text.kind, text.exact, text.before.nulls, text.before.distinct) == ("text", True, 1, 6)
    assert text.before.top[0] == TopValue("a", 3)
    assert {top.value: top.rows for top in text.after.top}["b"] == 2
    assert spread["m"].kind == "other"


@pytest.mark.slow
def test_two_partitions_take_as_many_jobs_as_one(spark: SparkSession, ids: tuple[str, str]) -> None:
    """One query pairs, one profiles, one samples; only columns that moved are profiled where no row came or went."""
    spark.sql("CREATE TABLE lake.moved (day string, k string, a int, b int) USING iceberg PARTITIONED BY (day)")
    spark.sql("INSERT INTO lake.moved VALUES ('d', 'x', 1, 1), ('d', 'y', 2, 1), ('e', 'x', 1, 1)")
    spark.sql("INSERT OVERWRITE lake.moved VALUES ('d', 'x', 1, 1), ('d', 'y', 3, 1), ('e', 'x', 2, 1)")
    made = spark.sql("SELECT snapshot_id FROM lake.moved.snapshots ORDER BY committed_at").collect()
    columns = {"day": "string", "k": "string", "a": "int", "b": "int"}
    run = manifest(
        target=target_pin("lake.moved", "day", "string", Grain.VALUE, columns, key=("k",)), partitions=("d", "e")
    )
    jobs = []
    for partitions in (["d"], ["d", "e"]):
        group = f"diff-jobs-{len(partitions)}"
        spark.sparkContext.setJobGroup(group, group)
        found = SparkMeasurer(spark, _part).diff(run, str(made[-1][0]), str(made[0][0]), partitions, 2)
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))
        assert set(found.distributions) == {"a"}
        assert found.columns["a"].median_percent == "50.00"
    assert jobs[0] == jobs[1]
    spark.sql("DROP TABLE lake.moved PURGE")


def test_classified_values_do_not_leave_the_engine(spark: SparkSession, ids: tuple[str, str]) -> None:
    """That they changed is told and NULL stays NULL; no value, sum, end or frequent value is, of pairs or rows."""
    run = _run(classified=("amount", "k"))
    found = SparkMeasurer(spark, _part).diff(run, ids[1], ids[0], ["changed", "repeated"], 20)
    assert found.masked == ("amount", "k")
    told = repr(found)
    assert not [value for value in ("10.0", "0.50", "7.00", "'cent'", "'gone'", "21.00", "17.51") if value in told]
    assert found.columns["amount"] == ColumnChange(3)
    changed = [row for row in found.sample if row.change == "changed"]
    assert [(row.key["k"], row.before["amount"], row.after["amount"]) for row in changed] == [
        (None, MASK, MASK), (MASK, MASK, MASK), (MASK, None, MASK),
    ]  # fmt: skip
    assert {row.partition for row in found.sample} == {"changed", "repeated"}


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


@pytest.mark.slow
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
