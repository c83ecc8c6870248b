"""Partitions of a copy in SQL: which rows they have, and what the partition of a row is called. Pure."""

from __future__ import annotations

from collections.abc import Collection

from errata.errors import EngineError, UsageError
from errata.model.copy.row_text import Dialect, quote_name
from errata.model.copy.table import CopyTable
from errata.model.partition import (
    NULL,
    Grain,
    next_start,
    parse_partition,
    start_of,
    value_from_text,
    value_to_text,
)
from errata.model.partition_sql import fold_values

_FORMATS = {Grain.HOUR: 'YYYY-MM-DD"T"HH24', Grain.DAY: "YYYY-MM-DD", Grain.MONTH: "YYYY-MM", Grain.YEAR: "YYYY"}


def build_scope(dialect: Dialect, copy: CopyTable, partitions: Collection[str]) -> str:
    """SQL condition for these partitions; neighbours are one range, which an index can find.

    >>> from errata.model.copy.table import CopyColumn
    >>> day = CopyColumn("day", "DAY", "date")
    >>> copy = CopyTable("pg", "t", (day,), day, Grain.DAY)
    >>> build_scope(Dialect.POSTGRES, copy, ["2026-01-03", "2026-01-04", "null"])
    '"DAY" is null or ("DAY" >= date \\'2026-01-03\\' and "DAY" < date \\'2026-01-05\\')'
    >>> build_scope(Dialect.POSTGRES, copy, [])
    'false'
    """
    column, kind, wanted = quote_name(dialect, copy.partition.name), copy.partition.type, set(partitions)
    terms = [f"{column} is null"] if NULL in wanted else []
    for first, last in fold_values(kind, copy.grain, wanted - {NULL}):
        if copy.grain.is_time and kind != "string":
            low, high = start_of(copy.grain, first).isoformat(" ")[:19], next_start(copy.grain, last)
            low, high = (_write_instant(dialect, kind, instant) for instant in (low, high))
            terms.append(f"({column} >= {low} and {column} < {high})")
        else:
            low, high = (_write_value(dialect, kind, copy.grain, name) for name in (first, last))
            terms.append(f"{column} = {low}" if first == last else f"{column} between {low} and {high}")
    return " or ".join(terms) or "false"


def build_partition_text(dialect: Dialect, copy: CopyTable) -> str:
    """SQL expression of the partition of a row, as :func:`read_partition` reads it."""
    column, kind = quote_name(dialect, copy.partition.name), copy.partition.type
    if not copy.grain.is_time or kind == "string":
        return column if kind == "string" else f"cast({column} as varchar)"
    if dialect is Dialect.SNOWFLAKE:
        # the cast changes nothing; the emulator needs to know the type to use the format
        casts = {"date": f"{column}::date", "timestamp": f"{column}::timestamp_ntz"}
        column = casts.get(kind, f"convert_timezone('UTC', {column})")
    elif kind == "date" and copy.grain is Grain.DAY:
        return f"{column}::text"
    elif kind == "timestamptz":
        column = f"{column} at time zone 'UTC'"
    function = "to_char" if dialect is Dialect.POSTGRES else "to_varchar"
    return f"{function}({column}, '{_FORMATS[copy.grain]}')"


def read_partition(grain: Grain, text: str | None) -> str:
    """The partition that a text from the warehouse means; raises ``EngineError`` for one that cannot be named.

    >>> read_partition(Grain.DAY, "2026-01-03"), read_partition(Grain.VALUE, "null"), read_partition(Grain.DAY, None)
    ('2026-01-03', '"null"', 'null')
    """
    if text is None:
        return NULL
    if not grain.is_time:
        return value_to_text(text)
    try:
        return parse_partition(grain, text)
    except UsageError:
        raise EngineError(f"the copy has rows of a {grain} that no partition can be named after") from None


def _write_instant(dialect: Dialect, kind: str, instant: str) -> str:
    if kind == "date":
        return f"date '{instant.partition(' ')[0]}'"
    # in Snowflake, what a plain timestamp is depends on a setting of the session
    is_snowflake = dialect is Dialect.SNOWFLAKE
    if kind == "timestamp":
        return f"cast('{instant}' as {'timestamp_ntz' if is_snowflake else 'timestamp'})"
    return f"cast('{instant}+00:00' as {'timestamp_tz' if is_snowflake else 'timestamptz'})"


def _write_value(dialect: Dialect, kind: str, grain: Grain, name: str) -> str:
    value = name if grain.is_time else value_from_text(name) or ""
    if kind in ("int", "long"):
        return str(int(value))
    return ("date " if kind == "date" else "") + quote_text(dialect, value)


def quote_text(dialect: Dialect, value: str) -> str:
    """A text literal. In Snowflake a backslash escapes the next character; in the sessions with PostgreSQL it does not.

    >>> [quote_text(dialect, "it's" + chr(92)).count(chr(92)) for dialect in (Dialect.POSTGRES, Dialect.SNOWFLAKE)]
    [1, 2]
    """
    escaped = value.replace("\\", "\\\\") if dialect is Dialect.SNOWFLAKE else value
    return "'" + escaped.replace("'", "''") + "'"
