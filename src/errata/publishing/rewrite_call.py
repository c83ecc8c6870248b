"""The statement with which Spark rewrites the files of partitions, for people to run. Pure.

Values stand as typed literals in a condition, which itself is a text literal of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from errata.errors import UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain, fold, shift, start_of, value_of

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def rewrite_call(target: TargetPin, partitions: Sequence[str]) -> str:
    """The call that rewrites every file of these partitions: also one that needs no compaction."""
    catalog, _, table = target.table.partition(".")
    where = _text(" OR ".join(_terms(target, partitions)), quote='"')
    arguments = f"table => {_text(table)}, where => {where}, options => map('rewrite-all', 'true')"
    return f"CALL {_name(catalog)}.system.rewrite_data_files({arguments})"


def _terms(target: TargetPin, partitions: Sequence[str]) -> Iterator[str]:
    column, kind, grain = _name(target.column), target.column_type, target.grain
    named = [name for name in partitions if name != NULL]
    if len(named) < len(partitions):
        yield f"{column} IS NULL"
    if not grain.is_time:
        for name in named:
            value = value_of(name) or ""
            yield f"{column} = {value if kind in ('int', 'long') else _text(value)}"
        return
    for first, last in fold(grain, named):
        if kind == "string":
            yield f"{column} >= {_text(first)} AND {column} <= {_text(last)}"
        else:
            end = _after(grain, last)
            until = f" AND {column} < {_instant(kind, end)}" if end else ""
            yield f"{column} >= {_instant(kind, start_of(grain, first))}{until}"


def _after(grain: Grain, last: str) -> datetime | None:
    try:
        return start_of(grain, shift(grain, last, 1))
    except (UsageError, OverflowError, ValueError):
        return None  # nothing comes after 9999-12-31


def _instant(kind: str, moment: datetime) -> str:
    day, clock = moment.date().isoformat(), moment.time().isoformat("seconds")
    return {
        "date": f"date'{day}'",
        "timestamp": f"timestamp_ntz'{day} {clock}'",
        "timestamptz": f"timestamp'{day} {clock}Z'",
    }[kind]


def _name(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "`" + text.replace("`", "``") + "`"


def _text(value: str, quote: str = "'") -> str:
    return quote + value.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote
