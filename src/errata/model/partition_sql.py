"""Build the SQL condition that selects partitions, in a form that Iceberg and Parquet can prune by. Pure.

Half-open typed ranges and equalities joined with OR, which Spark's parser turns into a balanced tree. Never
``column IN (…)``: Iceberg 1.11 throws a NullPointerException if a table has a NULL partition besides text partitions.
"""

from __future__ import annotations

from collections.abc import Iterable

from errata.errors import UsageError
from errata.model.partition import NULL, Grain, fold_ranges, next_start, start_of, value_from_text


def build_partition_filter(column: str, column_type: str, grain: Grain, partitions: Iterable[str]) -> str:
    """SQL condition for these partitions of a column; false if there are none.

    >>> build_partition_filter("day", "date", Grain.DAY, ["2026-01-03", "2026-01-04", "null"])
    "`day` IS NULL OR (`day` >= DATE'2026-01-03' AND `day` < DATE'2026-01-05')"
    """
    wanted = set(partitions)
    terms = [f"{quoted(column)} IS NULL"] if NULL in wanted else []
    terms += [
        build_range_filter(column, column_type, grain, *run) for run in fold_values(column_type, grain, wanted - {NULL})
    ]
    return " OR ".join(terms) or "false"


def fold_values(column_type: str, grain: Grain, partitions: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Neighbouring partitions as inclusive (first, last) pairs in the order of their values, without NULL.

    >>> fold_values("int", Grain.VALUE, ["10", "9", "-1", "11"])
    (('-1', '-1'), ('9', '11'))
    >>> fold_values("string", Grain.VALUE, ['"null"', "a", "z"])
    (('a', 'a'), ('"null"', '"null"'), ('z', 'z'))
    """
    if grain.is_time:
        return fold_ranges(grain, partitions)
    if column_type not in ("int", "long"):
        # sort by value, not by text, which may be quoted: callers join neighbours to a range of values
        return tuple((text, text) for text in sorted(partitions, key=lambda text: value_from_text(text) or ""))
    try:
        numbers = sorted({int(text) for text in partitions})
    except ValueError as error:
        found = str(error).rpartition(":")[2].strip()
        raise UsageError(f"a partition was refused; expected whole numbers, found {found}") from None
    found_runs: list[list[int]] = []
    for number in numbers:
        if found_runs and number == found_runs[-1][1] + 1:
            found_runs[-1][1] = number
        else:
            found_runs.append([number, number])
    return tuple((str(first), str(last)) for first, last in found_runs)


def build_range_filter(column: str, column_type: str, grain: Grain, first: str, last: str) -> str:
    """SQL condition for everything from the first to the last partition, both included."""
    name = quoted(column)
    if grain.is_time and column_type != "string":
        end = next_start(grain, last)
        low, high = (
            _format_instant_sql(column_type, start_of(grain, first).isoformat(" ")[:19]),
            _format_instant_sql(column_type, end),
        )
        return f"({name} >= {low} AND {name} < {high})"
    low, high = (
        _format_literal(column_type, text if grain.is_time else value_from_text(text) or "") for text in (first, last)
    )
    return f"{name} = {low}" if first == last else f"{name} BETWEEN {low} AND {high}"


def _format_instant_sql(column_type: str, instant: str) -> str:
    if column_type == "date":
        return f"DATE'{instant.partition(' ')[0]}'"
    return f"TIMESTAMP'{instant}+00:00'" if column_type == "timestamptz" else f"TIMESTAMP_NTZ'{instant}'"


def _format_literal(column_type: str, value: str) -> str:
    match column_type:
        case "int" | "long":
            return str(int(value))
        case "date":
            return f"DATE{_quote_text(value)}"
        case _:
            return _quote_text(value)


def _quote_text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    # Spark SQL substitutes ${env:NAME} in the reader's session, even inside literals
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def quoted(name: str) -> str:
    """One identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(identifier: str) -> str:
    """``catalog.namespace.table`` with every part quoted."""
    return ".".join(map(quoted, identifier.split(".")))
