"""The text of a row: what it is, and the SQL that writes it in three dialects."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.copy.row_text import (
    ComparedColumn,
    Dialect,
    build_row_hash,
    build_sums_query,
    find_type_refusal,
    hash_row,
    is_approximate,
    quote_name,
    sum_hashes,
    write_row_text,
)

NINES = "9" * 19
GOLDENS = Path(__file__).parent / "goldens"
COLUMNS = (
    ComparedColumn("business_date", "date"),
    ComparedColumn("at", "timestamptz"),
    ComparedColumn("local_at", "timestamp"),
    ComparedColumn("amount", "decimal(12, 2)"),
    ComparedColumn("paid", "boolean"),
    ComparedColumn("units", "int"),
    ComparedColumn("id", "long"),
    ComparedColumn("note", "string"),
    ComparedColumn("rate", "double"),
)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_sql_of_the_sums_is_the_reviewed_one(dialect: Dialect) -> None:
    """What a warehouse runs is on record, letter by letter."""
    day = quote_name(dialect, "business_date")
    query = build_sums_query(dialect, "fin.daily_revenue", COLUMNS, day, f"{day} >= DATE'2026-01-01'")
    golden = GOLDENS / f"sums-{dialect}.sql"
    if os.environ.get("ERRATA_GOLDENS") == "write":
        golden.write_text(query + "\n", "utf-8")
    assert query + "\n" == golden.read_text("utf-8")


def test_the_text_of_a_row_tells_null_from_text_and_columns_from_each_other() -> None:
    """Lengths separate columns, so that no value can look like a separator, and NULL is not the text N."""
    kinds = ("string", "string")
    rows = [
        ("a", "b"),
        ("ab", ""),
        ("", "ab"),
        (None, "ab"),
        ("N", "ab"),
        ("1:a", "b"),
        ("a", None),
        ("aN", ""),
        (None, None),
    ]
    assert len({write_row_text(kinds, row) for row in rows}) == len(rows)


@given(st.lists(st.lists(st.none() | st.text(max_size=5), min_size=3, max_size=3), min_size=2, max_size=2))
def test_different_rows_have_different_text(rows: list[list[str | None]]) -> None:
    """Two rows have one text only if they are equal."""
    one, other = (write_row_text(("string",) * 3, row) for row in rows)
    assert (one == other) == (rows[0] == rows[1])


@pytest.mark.parametrize(
    "kind,value,text",
    [
        ("date", date(1899, 12, 31), "10:1899-12-31"),
        ("timestamptz", datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "2:-1"),
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1), "7:1000000"),  # noqa: DTZ001 - a timestamp without zone
        ("decimal(12, 2)", Decimal("1.1"), "4:1.10"),
        ("decimal(12, 2)", Decimal("-0.05"), "5:-0.05"),
        ("decimal(12, 2)", Decimal("-0"), "4:0.00"),
        ("decimal(38, 0)", Decimal("1E+3"), "4:1000"),
        ("decimal(38, 19)", Decimal(f"-{NINES}.{NINES}"), f"40:-{NINES}.{NINES}"),
        ("long", -(2**63), "20:-9223372036854775808"),
        ("boolean", False, "5:false"),
        ("string", "e\u0301😀", "3:e\u0301😀"),
        ("string", "", "0:"),
    ],
)  # fmt: skip
def test_values_have_one_text(kind: str, value: object, text: str) -> None:
    """The same as the three dialects write."""
    assert write_row_text((kind,), (value,)) == text


def test_floating_point_columns_are_not_part_of_the_hash() -> None:
    """Engines write them differently; they are compared by their sums."""
    assert is_approximate("double")
    assert is_approximate("float")
    assert (
        hash_row(("int", "double"), (1, -0.0))
        == hash_row(("int", "double"), (1, float("nan")))
        == hash_row(("int",), (1,))
    )


@pytest.mark.parametrize(
    "kind", ["binary", "array<int>", "map<string,int>", "struct<a:int>", "uuid", "time", "fixed[16]", "timestamp_ns"]
)
def test_types_without_a_common_text_are_refused_with_the_reason(kind: str) -> None:
    """A column that cannot be compared is refused by name, never left out in silence."""
    assert find_type_refusal(kind)
    with pytest.raises(ValueError, match="column payload of type"):
        build_row_hash(Dialect.SPARK, (ComparedColumn("id", "long"), ComparedColumn("payload", kind)))


def test_a_row_twice_is_not_a_row_once() -> None:
    """Sums count repetitions, and do not depend on the order."""
    one, other = hash_row(("int",), (1,)), hash_row(("int",), (2,))
    assert sum_hashes([one, other]) == sum_hashes([other, one]) != sum_hashes([one, one, other])


def test_sums_are_exact_beyond_64_bits() -> None:
    """Two rows with the largest hash add up to more than a machine word."""
    assert sum_hashes(["f" * 32] * 2).upper == 2 * (2**64 - 1)
