"""Correction rows themselves: one for each key that differs, exact values, and the same thing backwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.write.side_tables import ORDER, build_corrections, build_reversals
from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.ports.publish import Stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIN = TargetPin(
    "lake.t", "u", "1", 0, 0, "day", "date", "identity", Grain.DAY,
    {"day": "date", "k": "string", "amount": "decimal(38, 10)", "tags": "map<string,int>", "f": "double"},
    ("day", "k"), "part", {}, 1,
)  # fmt: skip
STAMP = Stamp("bf-1", "bf-1-p1", "FX bug", "2026-03-01T09:00:00+00:00")
COLUMNS = ("amount", "day", "f", "k", "tags")


def side(spark: SparkSession, *rows: str) -> Any:
    """Rows as SQL: key, amount, tags, f."""
    values = ", ".join(f"(date'2026-01-01', {row})" for row in rows)
    typed = "cast(amount as decimal(38,10)) amount, cast(tags as map<string,int>) tags, cast(f as double) f"
    return spark.sql(f"SELECT day, k, {typed} FROM VALUES {values} AS t(day, k, amount, tags, f)")


def test_every_key_that_differs_has_one_row_with_exact_values(spark: SparkSession) -> None:
    """Added, removed, changed; equal values in another order, another zero or another NaN are no change."""
    old = side(
        spark,
        "'same', 1, map('a', 1, 'b', 2), 0.0",
        "'nan', 1, null, double('NaN')",
        "'gone', 2, null, null",
        "'big', 1234567890123456789012345678.0000000001, null, 1",
        "null, 1, null, 1",
    )
    new = side(
        spark,
        "'same', 1, map('b', 2, 'a', 1), -0.0",
        "'nan', 1, null, double('NaN')",
        "'come', null, null, null",
        "'big', 1234567890123456789012345678.0000000002, null, 1",
        "null, 2, null, 1",
    )
    rows = {row["k"]: row for row in build_corrections(old, new, PIN, COLUMNS, STAMP).collect()}
    assert {key: row["kind"] for key, row in rows.items()} == {
        "gone": "removed", "come": "added", "big": "changed", None: "changed",
    }  # fmt: skip
    assert json.loads(rows["big"]["new"])["amount"] == "1234567890123456789012345678.0000000002"
    assert json.loads(rows["come"]["new"]) == {"amount": None, "f": None, "tags": None}
    assert (rows["gone"]["new"], rows["come"]["old"]) == (None, None)
    assert {row["partition"] for row in rows.values()} == {"2026-01-01"}
    assert {(row["run_id"], row["publication_id"], row["reason"]) for row in rows.values()} == {
        ("bf-1", "bf-1-p1", "FX bug")
    }


def test_a_key_that_is_there_twice_is_removed_and_added(spark: SparkSession) -> None:
    """It cannot be paired; rows that stay the same in any order are no change."""
    twice = side(spark, "'a', 1, null, 1", "'a', 2, null, 1", "'b', 1, null, 1", "'b', 2, null, 1")
    other = side(spark, "'a', 2, null, 1", "'a', 1, null, 1", "'b', 3, null, 1")
    found = [(row["k"], row["kind"]) for row in build_corrections(twice, other, PIN, COLUMNS, STAMP).collect()]
    assert sorted(found) == [("b", "added"), ("b", "removed"), ("b", "removed")]


def test_a_correction_taken_back_says_the_opposite(spark: SparkSession) -> None:
    """What was added is removed, and old and new change places."""
    old, new = side(spark, "'x', 1, null, 1", "'y', 1, null, 1"), side(spark, "'x', 2, null, 1", "'z', 1, null, 1")
    told = build_corrections(old, new, PIN, COLUMNS, STAMP)
    back = Stamp("bf-1", "bf-1-r2", "wrong rate", "2026-03-02T09:00:00+00:00")
    found = {row["k"]: row for row in build_reversals(told, PIN.key, back).collect()}
    forth = {row["k"]: row for row in told.collect()}
    assert {key: row["kind"] for key, row in found.items()} == {"x": "changed", "y": "added", "z": "removed"}
    assert all((found[key]["old"], found[key]["new"]) == (forth[key]["new"], forth[key]["old"]) for key in forth)
    assert {row["publication_id"] for row in found.values()} == {"bf-1-r2"}


def test_what_was_told_last_of_a_key_is_what_it_holds(spark: SparkSession) -> None:
    """Of a target that is left alone: the old side is what earlier corrections left, also when that was nothing."""
    target = side(spark, "'back', 1, null, 1", "'again', 1, null, 1", "'kept', 1, null, 1", "'gone', 1, null, 1")
    first = side(spark, "'back', 2, null, 1", "'again', 2, null, 1", "'kept', 2, null, 1", "'come', 2, null, 1")
    second = side(spark, "'back', 1, null, 1", "'again', 3, null, 1", "'kept', 2, null, 1", "'gone', 1, null, 1")
    told = build_corrections(target, first, PIN, COLUMNS, STAMP).withColumn(ORDER, F.lit(1))
    found = build_corrections(target, second, PIN, COLUMNS, STAMP, told)
    amounts = {
        row["k"]: (row["kind"], *(side and json.loads(side)["amount"][0] for side in (row["old"], row["new"])))
        for row in found.collect()
    }
    assert amounts == {
        "back": ("changed", "2", "1"), "again": ("changed", "2", "3"), "gone": ("added", None, "1"),
        "come": ("removed", "2", None),
    }  # fmt: skip
    # after the second, and its reversal, the first holds again: computing it once more changes nothing
    undone = build_reversals(found, PIN.key, STAMP).withColumn(ORDER, F.lit(3))
    history = told.unionByName(found.withColumn(ORDER, F.lit(2))).unionByName(undone)
    assert build_corrections(target, first, PIN, COLUMNS, STAMP, history).collect() == []
