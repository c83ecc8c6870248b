"""Copies in warehouses as sources of recordings: the name, and the query that reads their rows. Pure."""

from __future__ import annotations

from errata.model.copy.row_text import Dialect, quote_name
from errata.model.copy.table import CopyTable

_TIMES = ("date", "timestamp", "timestamptz")


def name_copy_source(copy: str) -> str:
    """What recordings of a copy are filed under; a colon would be trouble in paths.

    >>> name_copy_source("pg:fin.sales")
    'copy.pg.fin.sales'
    """
    return f"copy.{copy.replace(':', '.')}"


def find_copy_flaw(copy: CopyTable) -> str:
    """Why the rows of a copy cannot be recorded; empty if they can."""
    if not copy.grain.is_time or copy.partition.type not in _TIMES:
        return f"its partitions are not found by time: {copy.partition.name} is {copy.partition.type}"
    if any("{" in name or "}" in name for name in (copy.table, *(one.name for one in copy.columns))):
        return "a name with braces cannot be written in a query"
    return ""


def build_copy_query(copy: CopyTable, dialect: Dialect) -> str:
    """The rows of a copy in a window, by the names of the lake, in an order that does not change."""
    table = ".".join(quote_name(dialect, part) for part in copy.table.split("."))
    at = quote_name(dialect, copy.partition.name)
    chosen = ", ".join(f"{quote_name(dialect, one.name)} AS {quote_name(dialect, one.source)}" for one in copy.columns)
    order = ", ".join(quote_name(dialect, one.name) for one in copy.columns)
    # names are quoted, and the ends of the window are literals that Errata writes
    return f"SELECT {chosen} FROM {table} WHERE {at} >= {{start}} AND {at} < {{end}} ORDER BY {order}"  # noqa: S608
