"""Spark agrees with the model about which partition a row is in."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.columns import in_partitions, partition_text, partition_unit
from errata.errors import UsageError
from errata.model.partition import Grain, expand, value_of, value_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AWKWARD = ["EU", "null", '"null"', '"', "a b", "é", '"é\u007f\t\n\x01\\', '"😀/', "NULL", "", "%20=+", "it's", "`x`"]


def _texts(spark: SparkSession, values: list[Any], ddl: str, kind: str, grain: Grain) -> list[str]:
    rows = spark.createDataFrame([(n, v) for n, v in enumerate(values)], f"n int, `p.x` {ddl}")
    return [row[0] for row in rows.orderBy("n").select(partition_text("p.x", kind, grain)).collect()]


def test_text_of_strings_is_the_models(spark: SparkSession) -> None:
    """Strings that would read as NULL are quoted exactly as the model quotes them."""
    found = _texts(spark, [*AWKWARD, None], "string", "string", Grain.VALUE)
    assert found == [value_text(v) for v in [*AWKWARD, None]]


INSTANTS = {
    "2026-01-03 23:30:00": ["2026-01-03T23", "2026-01-03", "2026-01", "2026"],
    "1969-12-31 23:59:59.999999": ["1969-12-31T23", "1969-12-31", "1969-12", "1969"],
    "0999-02-01 00:00:00": ["0999-02-01T00", "0999-02-01", "0999-02", "0999"],
    None: ["null"] * 4,
}
GRAINS = (Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR)


def test_text_of_instants_is_utc(spark: SparkSession) -> None:
    """Instants fall into UTC hours, days, months and years, also before 1970, whatever the grouping value is."""
    rows = spark.createDataFrame(list(enumerate(INSTANTS)), "n int, t string").orderBy("n")
    rows = rows.selectExpr("cast(t as timestamp) timestamptz", "cast(t as timestamp_ntz) timestamp")
    cases = [(kind, grain) for kind in ("timestamptz", "timestamp") for grain in GRAINS]
    units = [partition_unit(kind, kind, grain).alias(f"unit{n}") for n, (kind, grain) in enumerate(cases)]
    direct = [partition_text(kind, kind, grain) for kind, grain in cases]
    by_unit = [
        partition_text(f"unit{n}", "date" if grain is Grain.DAY else "timestamptz", grain)
        for n, (_, grain) in enumerate(cases)
    ]
    found = rows.select("*", *units).select(*direct, *by_unit).collect()
    assert [list(row) for row in found] == [texts * 4 for texts in INSTANTS.values()]


def test_text_of_dates_and_numbers(spark: SparkSession) -> None:
    """Dates and integers are written as the model writes them."""
    assert _texts(spark, [date(2026, 1, 3), None], "date", "date", Grain.DAY) == ["2026-01-03", "null"]
    assert _texts(spark, [date(2026, 1, 3), None], "date", "date", Grain.MONTH) == ["2026-01", "null"]
    assert _texts(spark, [-5, None], "bigint", "long", Grain.VALUE) == ["-5", "null"]


def test_contiguous_days_become_one_range(spark: SparkSession) -> None:
    """1,825 neighbouring days are two comparisons, not 1,825 literals; a hole makes two ranges."""
    days = expand(Grain.DAY, "2021-01-01", "2026-01-01")
    text = str(in_partitions("d", "date", Grain.DAY, days))
    assert text.count(">=") == 1
    assert text.count("2021") == 1
    assert str(in_partitions("d", "date", Grain.DAY, days[:5] + days[6:])).count(">=") == 2


def test_scope_takes_exactly_its_partitions(spark: SparkSession) -> None:
    """Ranges are half-open, NULL is a partition, and the last day there is has no end."""
    stamps = [
        "2026-01-02 23:59:59.999999",
        "2026-01-03 00:00:00",
        "2026-01-04 23:59:59.999999",
        "2026-01-05 00:00:00",
        None,
    ]
    rows = spark.createDataFrame([(t,) for t in stamps], "t string").selectExpr("t", "cast(t as timestamp) p")
    wanted = in_partitions("p", "timestamptz", Grain.DAY, ["2026-01-03", "2026-01-04", "null"])
    assert [row["t"] for row in rows.where(wanted).collect()] == [*stamps[1:3], None]
    never = spark.createDataFrame([(date(9999, 12, 31),), (date(9999, 12, 30),)], "p date")
    assert never.where(in_partitions("p", "date", Grain.DAY, ["9999-12-31"])).count() == 1
    assert never.where(in_partitions("p", "date", Grain.DAY, [])).count() == 0


def test_scope_by_value_takes_exactly_its_values(spark: SparkSession) -> None:
    """Values are compared as values: the string "null" is not NULL, and whole numbers fold into ranges."""
    rows = spark.createDataFrame([(v,) for v in [*AWKWARD, None]], "p string")
    texts = [value_text(value) for value in [*AWKWARD, None]]
    found = rows.select("p", *(in_partitions("p", "string", Grain.VALUE, [text]) for text in texts)).collect()
    for row in found:
        assert [text for text, hit in zip(texts, row[1:], strict=True) if hit] == [value_text(row["p"])]
    assert [value_of(text) for text in texts] == [*AWKWARD, None]
    numbers = spark.range(10).toDF("p")
    assert [r["p"] for r in numbers.where(in_partitions("p", "long", Grain.VALUE, ["1", "2", "3", "7"])).collect()] == [
        1,
        2,
        3,
        7,
    ]


def test_text_columns_may_hold_time_partitions(spark: SparkSession) -> None:
    """A string column with days in it is cut by range and shape."""
    rows = spark.createDataFrame([("2026-01-03",), ("2026-01-03x",), ("2026-01-04",), ("2026-01-05",)], "p string")
    found = rows.where(in_partitions("p", "string", Grain.DAY, ["2026-01-03", "2026-01-04"])).collect()
    assert [row["p"] for row in found] == ["2026-01-03", "2026-01-04"]


def test_grain_and_type_must_fit(spark: SparkSession) -> None:
    """An integer has no time grain and an instant has no value grain."""
    with pytest.raises(UsageError, match="grain day was refused"):
        partition_text("p", "int", Grain.DAY)
    with pytest.raises(UsageError, match="has a time grain"):
        in_partitions("p", "timestamptz", Grain.VALUE, [str(datetime(2026, 1, 1, tzinfo=UTC))])
