"""Values of key columns as people type them: what fits the column's type is found, anything else is a usage error."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.expressions import EqualTo, IsNull, Or
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from errata.engines.iceberg.metadata.key_values import build_equality, to_key_text
from errata.errors import UsageError

NAME = UUID("12345678-1234-5678-1234-567812345678")
NOON = datetime.fromisoformat("2026-01-17T12:00:00.5")


def column(kind: IcebergType) -> Schema:
    return Schema(NestedField(1, "k", kind))


@pytest.mark.parametrize(
    "kind,value,texts",
    [
        (StringType(), "10,033", ["10,033"]),
        (IntegerType(), -1204, ["-1204", "−1,204", "-1,204"]),
        (LongType(), 2**63 - 1, [str(2**63 - 1)]),
        (DecimalType(9, 2), Decimal("1204.50"), ["1204.50", "1204.5", "1,204.50"]),
        (DecimalType(9, 2), Decimal("-3.00"), ["−3", "-3.00"]),
        (DoubleType(), 0.1, ["0.1", "1e-1"]),
        (BooleanType(), True, ["true", "True"]),
        (BooleanType(), False, ["false"]),
        (DateType(), date(2026, 1, 17), ["2026-01-17"]),
        (TimeType(), time(3, 4, 5), ["03:04:05"]),
        (TimestampType(), NOON, ["2026-01-17T12:00:00.500000", "2026-01-17 12:00:00.5"]),
        (TimestamptzType(), NOON.replace(tzinfo=UTC), ["2026-01-17T12:00:00.5Z", "2026-01-17T14:00:00.5+02:00"]),
        (TimestamptzType(), NOON.replace(tzinfo=UTC), ["2026-01-17T12:00:00.5"]),
        (UUIDType(), NAME, [str(NAME)]),
        (BinaryType(), b"\x00\xff", ["00ff"]),
        (FixedType(2), b"\x00\xff", ["00FF"]),
    ],
    ids=str,
)
def test_what_is_printed_is_read_again(kind: IcebergType, value: Any, texts: list[str]):
    """Every way in which a value is shown stands for that value, and so does the text of a row that was read."""
    for text in (*texts, to_key_text(value) or ""):
        assert build_equality(column(kind), "k", text) == EqualTo("k", value), text  # type: ignore[call-arg]


def test_null_is_what_is_not_there_and_in_text_also_the_word():
    """Rows are shown one by one, so a word that may mean both mixes nothing."""
    nothing = IsNull("k")  # type: ignore[call-arg]
    assert build_equality(column(DateType()), "k", "null") == nothing
    assert build_equality(column(StringType()), "k", None) == nothing
    assert build_equality(column(StringType()), "k", "null") == Or(nothing, EqualTo("k", "null"))  # type: ignore[call-arg]
    assert to_key_text(None) is None


@pytest.mark.parametrize(
    "kind,text",
    [
        (IntegerType(), "2147483648"),
        (IntegerType(), "1,23"),
        (IntegerType(), "1.5"),
        (IntegerType(), "٣"),
        (LongType(), "a1"),
        (DecimalType(9, 2), "1.005"),
        (DecimalType(4, 2), "123.00"),
        (DecimalType(9, 2), "NaN"),
        (DoubleType(), "much"),
        (BooleanType(), "yes"),
        (DateType(), "17.01.2026"),
        (TimestampType(), "2026-01-17T12:00:00Z"),
        (TimestamptzType(), "noon"),
        (UUIDType(), "123"),
        (BinaryType(), "xyz"),
        (ListType(2, StringType()), "[]"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_type_is_a_usage_error(kind: IcebergType, text: str):
    """One sentence that names the column and its type."""
    with pytest.raises(UsageError, match=r"^--key k.* was refused; .*(column is|column of type) "):
        build_equality(column(kind), "k", text)
