"""The hash of a row and the sums of a partition are the same in Python, Spark, PostgreSQL and fakesnow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from errata.model.copy.row_text import (
    ComparedColumn,
    Dialect,
    build_row_hash,
    build_sums_query,
    hash_row,
    quote_name,
    sum_hashes,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.fakesnow import FakeSnowflake
    from support.postgres import PostgresServer

# not decimal(38, 0), which fakesnow keeps in 64 bits
KINDS = {
    "PART": "int", "N": "long", "D": "date", "AT": "timestamptz", "LOCAL_AT": "timestamp", "BIG": "decimal(38, 18)",
    "MONEY": "decimal(12, 2)", "WHOLE": "decimal(37, 0)", "OK": "boolean", "I": "int", "L": "long", "S": "string",
    "F": "double",
}  # fmt: skip
COLUMNS = [ComparedColumn(name, kind) for name, kind in KINDS.items()]
ARROW = {
    "int": pa.int32(), "long": pa.int64(), "date": pa.date32(), "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp": pa.timestamp("us"), "decimal(38, 18)": pa.decimal128(38, 18), "decimal(12, 2)": pa.decimal128(12, 2),
    "decimal(37, 0)": pa.decimal128(37, 0), "boolean": pa.bool_(), "string": pa.string(), "double": pa.float64(),
}  # fmt: skip
POSTGRES = {"long": "bigint", "double": "double precision", "string": "text"}
SNOWFLAKE = {"timestamptz": "timestamp_tz", "timestamp": "timestamp_ntz", "string": "varchar", "double": "float"}
PARQUET = "file_format = (type = parquet use_logical_type = true) match_by_column_name = case_insensitive"
PARTITIONS = 5
FIRST, LAST = datetime(1899, 1, 1), datetime(2446, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - without zone


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.one_of(st.sampled_from([0, 1, -1, most, -most]), st.integers(-most, most)).map(
        lambda whole: Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))
    )


# NUL is not a character of PostgreSQL's text, half a surrogate pair none of Unicode
TEXTS = st.one_of(
    st.sampled_from(
        ["", "N", "1:N", "|", ",", "\t\n\r", "e\u0301", "é", "👩🏽\u200d🚀", "\u200f", " a ", "x" * 20_000, "\\", "'"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
)
TIMES = st.one_of(
    st.sampled_from([FIRST, LAST, datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)]),  # noqa: DTZ001
    st.datetimes(FIRST, LAST),
)
ROWS = st.tuples(
    *(
        st.none() | values
        for values in (
            st.dates(date(1899, 1, 1), date(2446, 12, 31)), TIMES.map(lambda at: at.replace(tzinfo=UTC)), TIMES,
            _decimals(38, 18), _decimals(12, 2), _decimals(37, 0), st.booleans(),
            st.sampled_from([-(2**31), 2**31 - 1, 0]) | st.integers(-(2**31), 2**31 - 1),
            st.sampled_from([-(2**63), 2**63 - 1, 0]) | st.integers(-(2**63), 2**63 - 1), TEXTS,
            st.sampled_from([0.0, -0.0, 0.1, -1e-9]) | st.floats(-1e9, 1e9),
        )
    )
)  # fmt: skip


def draw_rows(number: int) -> list[tuple[Any, ...]]:
    """Rows that Hypothesis chose, numbered."""
    rows: list[tuple[Any, ...]] = []

    @settings(max_examples=number, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(ROWS)
    def collect(row: tuple[Any, ...]) -> None:
        at = len(rows)
        rows.append((at % PARTITIONS, at, *row))

    collect()
    return rows


def expect_sums(rows: Sequence[tuple[Any, ...]]) -> dict[int, tuple[int, ...]]:
    """Number of rows and both sums of each partition, from Python."""
    kinds = tuple(KINDS.values())
    hashes: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        hashes[row[0]].append(hash_row(kinds, row))
    return {part: (one.rows, one.upper, one.lower) for part, one in ((p, sum_hashes(h)) for p, h in hashes.items())}


def assert_equal(rows: Sequence[tuple[Any, ...]], hashes: dict[int, str], sums: Sequence[Sequence[Any]]) -> None:
    """Every row, every partition, and the sums of floating-point numbers within a tolerance."""
    kinds = tuple(KINDS.values())
    wrong = [row for row in rows if hashes[row[1]] != hash_row(kinds, row)]
    assert not wrong, f"{len(wrong)} of {len(rows)} rows have another hash, such as {wrong[0]}"
    assert {int(row[0]): tuple(int(value) for value in row[1:4]) for row in sums} == expect_sums(rows)
    for part, *_, total, number in sums:
        floats = [row[-1] for row in rows if row[0] == part and row[-1] is not None]
        assert int(number) == len(floats)
        assert float(total) == pytest.approx(sum(floats), rel=1e-9)


def write_parquet(rows: Sequence[tuple[Any, ...]], path: Path) -> Path:
    """The rows as a Parquet file."""
    columns = [
        pa.array(values, ARROW[kind]) for kind, values in zip(KINDS.values(), zip(*rows, strict=True), strict=True)
    ]
    pq.write_table(pa.table(columns, names=list(KINDS)), path)
    return path


def build_queries(dialect: Dialect, table: str) -> tuple[str, str]:
    """The query of the hashes by number, and that of the sums by partition."""
    number = quote_name(dialect, "N")
    hashes = f"select {number}, {build_row_hash(dialect, COLUMNS)} from {table}"
    return hashes, build_sums_query(dialect, table, COLUMNS, quote_name(dialect, "PART"))


def check_spark(rows: Sequence[tuple[Any, ...]], spark: SparkSession, directory: Path) -> None:
    spark.read.parquet(str(write_parquet(rows, directory / "rows.parquet"))).createOrReplaceTempView("hashed")
    hashes, sums = build_queries(Dialect.SPARK, "hashed")
    assert_equal(rows, dict(map(tuple, spark.sql(hashes).collect())), spark.sql(sums).collect())


def check_postgres(rows: Sequence[tuple[Any, ...]], postgres: PostgresServer, database: str) -> None:
    import psycopg

    columns = ", ".join(f'"{name}" {POSTGRES.get(kind, kind)}' for name, kind in KINDS.items())
    with psycopg.connect(postgres.url(database).replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute(f"create table hashed ({columns})".encode())
        with conn.cursor().copy("copy hashed from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        hashes, sums = build_queries(Dialect.POSTGRES, "hashed")
        found = conn.execute(hashes.encode()).fetchall()
        assert_equal(rows, dict(found), conn.execute(sums.encode()).fetchall())


def check_snowflake(rows: Sequence[tuple[Any, ...]], fakesnow: FakeSnowflake, database: str, directory: Path) -> None:
    file = write_parquet(rows, directory / "rows.parquet")
    columns = ", ".join(
        f'"{name}" {SNOWFLAKE.get(kind, kind).replace("decimal", "number")}' for name, kind in KINDS.items()
    )
    with fakesnow.connect(database=database, schema="PUBLIC") as conn:
        cursor = conn.cursor()
        for statement in (
            f"create table hashed ({columns})",
            "create stage loaded",
            f"put 'file://{file}' @loaded auto_compress = false",
            f"copy into hashed from @loaded {PARQUET}",
        ):
            cursor.execute(statement)
        hashes, sums = build_queries(Dialect.SNOWFLAKE, "hashed")
        found = cursor.execute(hashes).fetchall()
        assert_equal(rows, dict(found), cursor.execute(sums).fetchall())


@pytest.fixture(scope="module")
def few_rows() -> list[tuple[Any, ...]]:
    return draw_rows(300)


@pytest.fixture(scope="module")
def many_rows() -> list[tuple[Any, ...]]:
    # Hypothesis chooses values, a shuffle of columns makes many rows of them
    import random

    chosen, dice = draw_rows(2_000), random.Random(18)  # noqa: S311 - no secret
    values = [[row[at] for row in chosen] for at in range(2, len(KINDS))]
    return [(at % PARTITIONS, at, *(dice.choice(column) for column in values)) for at in range(100_000)]


@pytest.mark.spark
def test_spark_has_the_same_hashes(few_rows: list[tuple[Any, ...]], spark: SparkSession, tmp_path: Path) -> None:
    """Rows that Hypothesis chose hash in Spark as in Python."""
    check_spark(few_rows, spark, tmp_path)


def test_postgres_has_the_same_hashes(few_rows: list[tuple[Any, ...]], postgres: PostgresServer, database: str) -> None:
    """Rows that Hypothesis chose hash in PostgreSQL as in Python."""
    check_postgres(few_rows, postgres, database)


def test_snowflake_has_the_same_hashes(
    few_rows: list[tuple[Any, ...]], fakesnow: FakeSnowflake, snowflake_database: str, tmp_path: Path
) -> None:
    """Rows that Hypothesis chose hash in the emulator as in Python, after a load from Parquet."""
    check_snowflake(few_rows, fakesnow, snowflake_database, tmp_path)


@pytest.mark.slow
def test_a_hundred_thousand_rows_have_the_same_hashes_in_three_engines(
    many_rows: list[tuple[Any, ...]],
    spark: SparkSession,
    postgres: PostgresServer,
    database: str,
    fakesnow: FakeSnowflake,
    snowflake_database: str,
    tmp_path: Path,
) -> None:
    """Also when sums are far beyond 64 bits."""
    check_spark(many_rows, spark, tmp_path)
    check_postgres(many_rows, postgres, database)
    check_snowflake(many_rows, fakesnow, snowflake_database, tmp_path)


def test_an_hour_in_another_zone_is_the_same_instant(fakesnow: FakeSnowflake, snowflake_database: str) -> None:
    """A timestamp with a zone is hashed by its instant, in whichever zone it is shown."""
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    column = [ComparedColumn("AT", "timestamptz")]
    shown = (at + timedelta(hours=2)).isoformat(" ").replace("+00:00", "+02:00")
    query = f"select {build_row_hash(Dialect.SNOWFLAKE, column)} from (select '{shown}'::timestamp_tz as \"AT\")"
    (found,) = fakesnow.execute(query, database=snowflake_database, schema="PUBLIC")
    assert found[0] == hash_row(("timestamptz",), (at,))
