"""Build the Spark statement that rewrites the files of partitions, for people to run. Pure.

Partition values are typed literals in a condition, which in turn is a string literal of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from errata.errors import UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain, fold_ranges, shift_partition, start_of, value_from_text

_PLAIN_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def build_rewrite_call(target: TargetPin, partitions: Sequence[str]) -> str:
    """Call that rewrites every file of these partitions, including those that need no compaction."""
    catalog, _, table = target.table.partition(".")
    where = _quote_text(" OR ".join(_iterate_conditions(target, partitions)), quote='"')
    arguments = f"table => {_quote_text(table)}, where => {where}, options => map('rewrite-all', 'true')"
    return f"CALL {_quote_name(catalog)}.system.rewrite_data_files({arguments})"


def _iterate_conditions(target: TargetPin, partitions: Sequence[str]) -> Iterator[str]:
    column, kind, grain = _quote_name(target.column), target.column_type, target.grain
    named = [name for name in partitions if name != NULL]
    if len(named) < len(partitions):
        yield f"{column} IS NULL"
    if not grain.is_time:
        for name in named:
            value = value_from_text(name) or ""
            yield f"{column} = {value if kind in ('int', 'long') else _quote_text(value)}"
        return
    for first, last in fold_ranges(grain, named):
        if kind == "string":
            yield f"{column} >= {_quote_text(first)} AND {column} <= {_quote_text(last)}"
        else:
            end = _find_end(grain, last)
            until = f" AND {column} < {_instant_literal(kind, end)}" if end else ""
            yield f"{column} >= {_instant_literal(kind, start_of(grain, first))}{until}"


def _find_end(grain: Grain, last: str) -> datetime | None:
    try:
        return start_of(grain, shift_partition(grain, last, 1))
    except (UsageError, OverflowError, ValueError):
        return None  # nothing comes after 9999-12-31


def _instant_literal(kind: str, moment: datetime) -> str:
    day, clock = moment.date().isoformat(), moment.time().isoformat("seconds")
    return {
        "date": f"date'{day}'",
        "timestamp": f"timestamp_ntz'{day} {clock}'",
        "timestamptz": f"timestamp'{day} {clock}Z'",
    }[kind]


def _quote_name(text: str) -> str:
    return text if _PLAIN_IDENTIFIER.fullmatch(text) else "`" + text.replace("`", "``") + "`"


def _quote_text(value: str, quote: str = "'") -> str:
    return quote + value.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote
