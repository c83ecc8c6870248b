"""Spark agrees with the model about which partition a row is in."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.columns import in_partitions, partition_text, partition_unit
from errata.errors import UsageError
from errata.model.calendar_math import format_stored_ordinal, ordinal_at
from errata.model.partition import NULL, Grain, expand_range, from_ordinal, value_from_text, value_to_text
from errata.model.partition_sql import build_partition_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AWKWARD = ["EU", "null", '"null"', '"', "a b", "é", '"é\u007f\t\n\x01\\', '"😀/', "NULL", "", "%20=+", "it's", "`x`"]


def _texts(spark: SparkSession, values: list[Any], ddl: str, kind: str, grain: Grain) -> list[str]:
    rows = spark.createDataFrame([(n, v) for n, v in enumerate(values)], f"n int, `p.x` {ddl}")
    return [row[0] for row in rows.orderBy("n").select(partition_text("p.x", kind, grain)).collect()]


def test_text_of_strings_is_the_models(spark: SparkSession) -> None:
    """Strings that would read as NULL are quoted exactly as the model quotes them."""
    found = _texts(spark, [*AWKWARD, None], "string", "string", Grain.VALUE)
    assert found == [value_to_text(v) for v in [*AWKWARD, None]]


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


def test_text_of_any_year_is_the_one_that_metadata_has(spark: SparkSession) -> None:
    """Rows and files of years that no date can name have the same partition, whichever side looks."""
    days = (20_454_000, 2_932_897, -719_600, -719_163)
    for grain in GRAINS:
        for kind, of in (("timestamptz", "timestamp_seconds(n * 86400L)"), ("date", "date_from_unix_date(n)")):
            if grain is Grain.HOUR and kind == "date":
                continue
            rows = spark.createDataFrame([(n, day) for n, day in enumerate(days)], "at int, n int").orderBy("at")
            found = rows.selectExpr("at", f"{of} p").select(partition_text("p", kind, grain)).collect()
            assert [row[0] for row in found] == [
                format_stored_ordinal(grain, ordinal_at(grain, day * 86_400)) for day in days
            ]


def test_contiguous_days_become_one_range() -> None:
    """1,825 neighbouring days are two comparisons, not 1,825 literals; a hole makes two ranges."""
    days = expand_range(Grain.DAY, "2021-01-01", "2026-01-01")
    text = build_partition_filter("d", "date", Grain.DAY, days)
    assert text.count(">=") == 1
    assert text.count("2021") == 1
    assert build_partition_filter("d", "date", Grain.DAY, days[:5] + days[6:]).count(">=") == 2


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
    never = spark.sql("SELECT explode(array(date'9999-12-30', date'9999-12-31', date'+10000-01-01')) p")
    assert never.where(in_partitions("p", "date", Grain.DAY, ["9999-12-31"])).count() == 1
    assert never.where(in_partitions("p", "date", Grain.DAY, [])).count() == 0
    late = spark.sql("SELECT explode(array(timestamp'9999-12-31 23:59:59.999999', timestamp'+10000-01-01')) p")
    for kind, grain, name in (("timestamptz", Grain.YEAR, "9999"), ("timestamp", Grain.HOUR, "9999-12-31T23")):
        rows = late if kind == "timestamptz" else late.selectExpr("cast(p as timestamp_ntz) p")
        assert rows.where(in_partitions("p", kind, grain, [name])).count() == 1


def test_scope_by_value_takes_exactly_its_values(spark: SparkSession) -> None:
    """Values are compared as values: the string "null" is not NULL, and whole numbers fold into ranges."""
    rows = spark.createDataFrame([(v,) for v in [*AWKWARD, None]], "p string")
    texts = [value_to_text(value) for value in [*AWKWARD, None]]
    found = rows.select("p", *(in_partitions("p", "string", Grain.VALUE, [text]) for text in texts)).collect()
    for row in found:
        assert [text for text, hit in zip(texts, row[1:], strict=True) if hit] == [value_to_text(row["p"])]
    assert [value_from_text(text) for text in texts] == [*AWKWARD, None]
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


MANY = 2_000
SCATTERED = {
    "hours": ("timestamptz", Grain.HOUR, lambda n: from_ordinal(Grain.HOUR, 2 * n - MANY), "timestamp_seconds(n*3600)"),
    "days": ("date", Grain.DAY, lambda n: from_ordinal(Grain.DAY, 2 * n - MANY), "date_from_unix_date(n)"),
    "days of instants": (
        "timestamp",
        Grain.DAY,
        lambda n: from_ordinal(Grain.DAY, 2 * n - MANY),
        "cast(timestamp_seconds(n * 86400) as timestamp_ntz)",
    ),
    "months": ("date", Grain.MONTH, lambda n: from_ordinal(Grain.MONTH, 2 * n - MANY), "add_months('1970-01-01', n)"),
    "years": ("date", Grain.YEAR, lambda n: from_ordinal(Grain.YEAR, 2 * n - 1900), "add_months('1970-01-01', 12*n)"),
    "longs": ("long", Grain.VALUE, lambda n: str(2 * n - MANY), "cast(n as bigint)"),
    "texts": ("string", Grain.VALUE, lambda n: f"it's {2 * n - MANY}", "concat('it\\'s ', n)"),
    "days as texts": (
        "string",
        Grain.DAY,
        lambda n: from_ordinal(Grain.DAY, 2 * n - MANY),
        "cast(date_from_unix_date(n) as string)",
    ),
}


@pytest.mark.parametrize(
    "name, many",
    [
        *((name, 100) for name in SCATTERED),
        *((name, MANY) for name in ("days", "texts")),
        *(pytest.param(name, MANY, marks=pytest.mark.slow) for name in SCATTERED if name not in ("days", "texts")),
    ],
)
def test_many_scattered_partitions_are_taken_exactly(spark: SparkSession, name: str, many: int) -> None:
    """In groups, and where ranges only cover them: the partitions in between are left out, and NULL stays a choice."""
    kind, grain, text, sql = SCATTERED[name]
    first = -1900 if grain is Grain.YEAR else -MANY
    wanted = [text(n) for n in range(many)]
    # each value that is asked for, and the one beside it that is not
    rows = spark.range(first, first + 2 * many).selectExpr("cast(id as int) n").selectExpr("n", f"{sql} p")
    rows = rows.union(spark.sql("SELECT null, null"))
    found = rows.where(in_partitions("p", kind, grain, wanted))
    assert sorted(row["n"] for row in found.collect()) == list(range(first, first + 2 * many, 2))
    with_null = rows.where(in_partitions("p", kind, grain, [*wanted, NULL]))
    assert with_null.count() == many + 1


@pytest.mark.parametrize("many", [50, 600])
def test_values_whose_text_is_quoted_are_found_among_many_others(spark: SparkSession, many: int) -> None:
    """A range of values begins and ends by value: ``null`` and ``""`` have quoted names, which sort elsewhere."""
    values = [*AWKWARD, *(f"{letter}{n}" for n in range(many // 2) for letter in "Az")]
    rows = spark.createDataFrame([(value,) for value in [*values, "between"]], "p string")
    found = rows.where(in_partitions("p", "string", Grain.VALUE, [value_to_text(value) for value in values])).collect()
    assert sorted(row["p"] for row in found) == sorted(values)


@pytest.mark.slow
def test_fifty_thousand_scattered_partitions_are_one_readable_plan(spark: SparkSession) -> None:
    """A scope of every other day or of 50,000 values is parsed, planned and read in seconds, not minutes."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.scattered")
    spark.sql("CREATE OR REPLACE TABLE lake.scattered.t (d date, a string) USING iceberg PARTITIONED BY (d)")
    spark.sql("INSERT INTO lake.scattered.t VALUES (date'1970-01-01', 'a0'), (date'1970-01-02', 'a1'), (null, null)")
    table = spark.table("lake.scattered.t")
    days = [from_ordinal(Grain.DAY, 2 * n) for n in range(50_000)]
    began = time.monotonic()
    assert [row["a"] for row in table.where(in_partitions("d", "date", Grain.DAY, days)).collect()] == ["a0"]
    values = [f"a{2 * n}" for n in range(50_000)]
    assert [row["a"] for row in table.where(in_partitions("a", "string", Grain.VALUE, values)).collect()] == ["a0"]
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("spec", ["a", pytest.param("truncate(2, a)", marks=pytest.mark.slow)])
def test_values_can_be_read_beside_a_null_partition(spark: SparkSession, spec: str) -> None:
    """Several values of a text column are read although the table has a NULL partition, on which Iceberg's IN fails."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.beside_null")
    spark.sql(f"CREATE OR REPLACE TABLE lake.beside_null.t (a string) USING iceberg PARTITIONED BY ({spec})")
    spark.sql("INSERT INTO lake.beside_null.t VALUES ('a0xx'), ('a1'), ('a2'), (null)")
    for wanted in (
        ["a0xx", "a1"],
        ["a0xx", "a1", NULL],
        ["a1", NULL],
        *([f"a{n}" for n in range(many)] for many in (100, MANY)),
    ):
        rows = spark.table("lake.beside_null.t").where(in_partitions("a", "string", Grain.VALUE, wanted)).collect()
        held = {"a0xx", "a1", "a2", None} & {value_from_text(text) for text in wanted}
        assert {row["a"] for row in rows} == held


def test_grain_and_type_must_fit(spark: SparkSession) -> None:
    """An integer has no time grain and an instant has no value grain."""
    with pytest.raises(UsageError, match="grain day was refused"):
        partition_text("p", "int", Grain.DAY)
    with pytest.raises(UsageError, match="has a time grain"):
        in_partitions("p", "timestamptz", Grain.VALUE, [str(datetime(2026, 1, 1, tzinfo=UTC))])
