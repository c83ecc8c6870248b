"""The text and the hash of a row, equal in Python, Spark, PostgreSQL and Snowflake. Pure.

The text of a row is the text of its columns, one after the other: ``N`` for NULL, otherwise the number of characters, a
colon and the value. The hash is the MD5 of its UTF-8 form. Rows of a partition are compared by their number and by the
sums of the two unsigned 64-bit halves of their hashes, so that order does not matter and a row that is there twice
counts twice. This finds accidents; it does not stop someone who computes rows with a wanted sum.

Spark has to run with ANSI mode, without which it writes a decimal zero as ``0E-18``, and in UTC, which a timestamp
without zone is taken for. PostgreSQL has to be version 14 or newer, where ``extract`` is exact, and write dates in the
ISO style.

>>> write_row_text(("int", "string", "boolean"), (7, "né", None))
'1:72:néN'
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from errata.model.types import normalize_type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = frozenset({"boolean", "int", "long", "date", "timestamp", "timestamptz", "decimal", "string"})
_APPROXIMATE = frozenset({"float", "double"})
_REASONS = {
    "binary": "engines write bytes as text in different ways",
    "array": "engines write lists as text in different ways",
    "map": "engines write maps as text in different ways, and a map has no order",
    "struct": "engines write structs as text in different ways",
}
_HEX = "0123456789abcdef"
_ONES = 0x11111111
"""Positions begin with one: what eight digits then count too much."""


class Dialect(StrEnum):
    """An SQL in which the hash of a row can be written."""

    SPARK = "spark"
    POSTGRES = "postgres"
    SNOWFLAKE = "snowflake"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column by its name in one engine, and its type in the lake."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class RowSums:
    """What the rows of a partition are compared by, apart from columns of floating-point numbers."""

    rows: int = 0
    upper: int = 0
    lower: int = 0


def find_type_refusal(kind: str) -> str | None:
    """Why rows with a column of this type cannot be compared in all engines; None: they can.

    >>> find_type_refusal("decimal(12, 2)"), find_type_refusal("array<long>")
    (None, 'engines write lists as text in different ways')
    """
    name = _find_kind(kind)
    if name in _EXACT or name in _APPROXIMATE:
        return None
    return _REASONS.get(name, "it has no text that is known to be the same in all engines")


def is_approximate(kind: str) -> bool:
    """Whether a column of this type is compared by its sum within a tolerance, because engines write its values
    differently: minus zero is ``-0`` in PostgreSQL and ``-0.0`` in Spark.

    >>> is_approximate("double"), is_approximate("decimal(38, 18)")
    (True, False)
    """
    return _find_kind(kind) in _APPROXIMATE


def _find_kind(kind: str) -> str:
    return (normalize_type(kind) or kind).partition("(")[0].partition("<")[0]


# --------------------------------------------------------------------------------------------------------- in Python


def write_row_text(kinds: Sequence[str], values: Sequence[Any]) -> str:
    """The text of a row whose columns have these types."""
    texts = (_write_value(kind, value) for kind, value in zip(kinds, values, strict=True) if not is_approximate(kind))
    return "".join("N" if text is None else f"{len(text)}:{text}" for text in texts)


def hash_row(kinds: Sequence[str], values: Sequence[Any]) -> str:
    """The hash of a row, as 32 hexadecimal digits."""
    return hashlib.md5(write_row_text(kinds, values).encode(), usedforsecurity=False).hexdigest()


def sum_hashes(hashes: Iterable[str]) -> RowSums:
    """What the rows with these hashes are compared by.

    >>> sum_hashes(["00000000000000010000000000000002"] * 2)
    RowSums(rows=2, upper=2, lower=4)
    """
    rows = upper = lower = 0
    for one in hashes:
        rows, upper, lower = rows + 1, upper + int(one[:16], 16), lower + int(one[16:], 16)
    return RowSums(rows, upper, lower)


def _write_value(kind: str, value: Any) -> str | None:
    if value is None:
        return None
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            # a timestamp without zone counts as UTC, as in every engine
            instant = value if value.tzinfo else value.replace(tzinfo=UTC)
            return str((instant - _EPOCH) // timedelta(microseconds=1))
        case date():
            return value.isoformat()
        case Decimal():
            return _write_decimal(kind, value)
        case _:
            return str(value)


def _write_decimal(kind: str, value: Decimal) -> str:
    scale = int(kind.rpartition(",")[2].rstrip(") "))
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        raise ValueError(f"{value} does not fit {kind}")
    # by digits, because the arithmetic of decimals would round to its context
    whole = int("".join(map(str, digits)) or "0") * 10 ** (exponent + scale)
    text = str(whole).rjust(scale + 1, "0")
    return ("-" if sign and whole else "") + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)


# ------------------------------------------------------------------------------------------------------------- in SQL


def build_row_text(dialect: Dialect, columns: Sequence[ComparedColumn]) -> str:
    """SQL expression of the text of a row.

    >>> build_row_text(Dialect.POSTGRES, [ComparedColumn("note", "string")])
    'coalesce(length("note")::text||\\':\\'||"note",\\'N\\')'
    """
    return _join_texts(
        dialect, [_build_value(dialect, column) for column in columns if not is_approximate(column.type)]
    )


def build_row_hash(dialect: Dialect, columns: Sequence[ComparedColumn]) -> str:
    """SQL expression of the hash of a row."""
    return f"md5({build_row_text(dialect, columns)})"


def build_sums_query(
    dialect: Dialect,
    source: str,
    columns: Sequence[ComparedColumn],
    partition: str,
    condition: str = "",
    own_hash: str = "",
) -> str:
    """Query of the sums of each partition that a condition selects; ``source`` and ``partition`` are SQL.

    Its columns are the partition, the number of rows, the sums of the upper and the lower halves of the hashes, and for
    each floating-point column its sum and the number of its values. With the expression of a hash that the warehouse
    has itself, the sum of that comes last.
    """
    exact = [column for column in columns if not is_approximate(column.type)]
    approximate = [quote_name(dialect, column.name) for column in columns if is_approximate(column.type)]
    doubles = [f"v{number}" for number in range(len(approximate))]
    texts = [f"c{number}" for number in range(len(exact))]
    # each value is written as text once; then the rows are hashed; then the hashes are added
    inner = [f"{partition} as part"]
    inner += [f"{_build_value(dialect, column)} as {text}" for column, text in zip(exact, texts, strict=True)]
    inner += [f"{name} as {value}" for name, value in zip(approximate, doubles, strict=True)]
    inner += [f"{own_hash} as own"] if own_hash else []
    own = ["own"] if own_hash else []
    hashed = ["part", f"md5({_join_texts(dialect, texts)}) as h", *doubles, *own]
    outer = ["part", "count(*) as row_count"]
    outer += [f"{_build_half_sum(dialect, first)} as {name}" for first, name in ((1, "upper_sum"), (17, "lower_sum"))]
    for number, value in enumerate(doubles):
        outer += [f"sum({_cast_double(dialect, value)}) as sum{number}", f"count({value}) as count{number}"]
    outer += ["sum(own) as own_sum"] if own_hash else []
    where = f" where {condition}" if condition else ""
    # PostgreSQL would put the inner expressions wherever they are used, and write and hash each row several times
    fence = " offset 0" if dialect is Dialect.POSTGRES else ""
    # names are quoted, conditions are built from typed values
    written = f"select {', '.join(inner)} from {source}{where}{fence}"  # noqa: S608
    rows = f"select {', '.join(hashed)} from ({written}) w{fence}"  # noqa: S608
    return f"select {', '.join(outer)} from ({rows}) r group by part"  # noqa: S608


def quote_name(dialect: Dialect, name: str) -> str:
    """One identifier, quoted.

    >>> quote_name(Dialect.SPARK, "a`b"), quote_name(Dialect.SNOWFLAKE, 'A"B')
    ('`a``b`', '"A""B"')
    """
    mark = "`" if dialect is Dialect.SPARK else '"'
    return mark + name.replace(mark, mark * 2) + mark


def _join_texts(dialect: Dialect, texts: Sequence[str]) -> str:
    """SQL expression of values, given as text, one after the other: each with its length, or N for NULL."""
    if dialect is Dialect.SPARK:
        parts = [f"coalesce(concat(cast(char_length({text}) as string), ':', {text}), 'N')" for text in texts]
        return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    cast = "text" if dialect is Dialect.POSTGRES else "varchar"
    return "||".join(f"coalesce(length({text})::{cast}||':'||{text},'N')" for text in texts)


def _build_value(dialect: Dialect, column: ComparedColumn) -> str:
    """SQL expression of a value as text, NULL for NULL; one branch for each type, one line for each dialect."""
    if refusal := find_type_refusal(column.type):
        raise ValueError(f"column {column.name} of type {column.type}: {refusal}")
    name, kind = quote_name(dialect, column.name), normalize_type(column.type) or column.type
    match kind.partition("(")[0]:
        case "string":
            return name
        case "date":
            spark, postgres, snowflake = (
                f"date_format({name}, 'yyyy-MM-dd')",
                f"{name}::text",
                f"to_varchar({name},'YYYY-MM-DD')",
            )
        case "timestamp" | "timestamptz":
            spark, postgres, snowflake = (
                f"cast(unix_micros(cast({name} as timestamp)) as string)",
                f"((extract(epoch from {name})*1000000)::bigint)::text",
                f"date_part(epoch_microsecond,{name})::varchar",
            )
        case "decimal":
            size = kind.removeprefix("decimal").replace(" ", "")
            spark, postgres, snowflake = (
                f"cast(cast({name} as decimal{size}) as string)",
                f"{name}::numeric{size}::text",
                f"({name}::number{size})::varchar",
            )
        case "boolean":
            postgres = snowflake = f"case when {name} then 'true' when not {name} then 'false' end"
            spark = f"cast({name} as string)"
        case _:
            spark, postgres, snowflake = f"cast({name} as string)", f"{name}::text", f"{name}::varchar"
    return {Dialect.SPARK: spark, Dialect.POSTGRES: postgres, Dialect.SNOWFLAKE: snowflake}[dialect]


def _build_half_sum(dialect: Dialect, first: int) -> str:
    """Sum of the 16 hexadecimal digits of ``h`` from this one on, as an exact number."""
    if dialect is Dialect.SPARK:
        return f"sum(cast(conv(substr(h, {first}, 16), 16, 10) as decimal(20,0)))"
    if dialect is Dialect.POSTGRES:
        # a whole number of 64 bits has a sign: those below zero are too small by two to the power of 64
        half = f"('x'||substr(h,{first},16))::bit(64)::bigint"
        return f"sum({half})+count(*) filter (where substr(h,{first},1) collate \"C\">='8')*18446744073709551616"
    # Snowflake's functions for this are missing in the emulator that the tests run on, so the digits are decoded one by
    # one. The cast is inside the sum: the emulator adds anything else as floating-point numbers.
    quarters = (
        "sum(({})::number(38,0))".format(
            "+".join(f"position(substr(h,{start + at},1),'{_HEX}')*{16 ** (7 - at)}" for at in range(8)) + f"-{_ONES}"
        )
        for start in (first, first + 8)
    )
    return "({}*4294967296+{})".format(*quarters)


def _cast_double(dialect: Dialect, value: str) -> str:
    return f"cast({value} as double)" if dialect is Dialect.SPARK else f"{value}::double precision"
