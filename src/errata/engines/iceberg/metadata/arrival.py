"""What tells that an input is complete: the newest value of a column, and row counts that a table announces. No JVM.

The newest value comes from the upper bounds in the manifests; no data file is opened for it. Bounds stay when rows are
deleted. The table of announced row counts is small and is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from errata.errors import UsageError
from errata.model.partition import Grain, name_partition
from errata.text.numbers import format_moment

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_TO_MS = {"date": (86_400_000, 1), "timestamp": (1, 1000), "timestamptz": (1, 1000), "timestamp_ns": (1, 1_000_000),
          "timestamptz_ns": (1, 1_000_000)}  # fmt: skip
"""Factor and divisor from the stored number to milliseconds, of the types that can be a watermark."""
_MS_PER_YEAR = 31_556_952_000


@dataclass(frozen=True, slots=True)
class NewestValue:
    """The newest plausible value of a column, and the others."""

    at_ms: int | None
    ignored: tuple[str, ...]


def find_watermark_problem(table: Table, name: str, column: str) -> str | None:
    """Why a column cannot be a watermark."""
    kinds = {field.name: str(field.field_type) for field in table.schema().fields}
    if column not in kinds:
        return f"{name} has no column {column}"
    return None if kinds[column] in _TO_MS else f"{column} of {name} is {kinds[column]}, expected a date or a timestamp"


def find_newest_value(table: Table, snapshot: Snapshot | None, column: str, latest_ms: int | None) -> NewestValue:
    """The newest value of a column by the bounds of the live files; those after ``latest_ms`` are ignored and named."""
    newest: int | None = None
    ignored: list[tuple[int, str]] = []
    for at_ms, path in _iterate_bounds(table, snapshot, column):
        if latest_ms is not None and at_ms > latest_ms:
            ignored.append((at_ms, path))
        elif newest is None or at_ms > newest:
            newest = at_ms
    return NewestValue(newest, tuple(f"{format_time(at_ms)} in {path}" for at_ms, path in sorted(ignored)))


def format_time(at_ms: int) -> str:
    """A moment as text, also one that no calendar of Python can hold."""
    try:
        return f"{format_moment(datetime.fromtimestamp(at_ms / 1000, UTC).isoformat())} UTC"
    except (OverflowError, ValueError, OSError):
        return f"year {1970 + at_ms // _MS_PER_YEAR}"


def _iterate_bounds(table: Table, snapshot: Snapshot | None, column: str) -> Iterator[tuple[int, str]]:
    from pyiceberg.conversions import from_bytes

    field = table.schema().find_field(column)
    factor, divisor = _TO_MS[str(field.field_type)]
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for live in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = live.data_file
            bound = (file.upper_bounds or {}).get(field.field_id)
            if bound is not None and not int(file.content or 0):
                value: Any = from_bytes(field.field_type, bound)  # type: ignore[arg-type]
                yield value * factor // divisor, file.file_path


def read_announced_rows(
    table: Table, name: str, partition: str, column: str, grain: Grain, partitions: Sequence[str]
) -> Mapping[str, int]:
    """Rows that each of these partitions should have; several rows of one partition are added up."""
    kinds = {field.name: str(field.field_type) for field in table.schema().fields}
    check_announcing_columns(kinds, name, partition, column)
    wanted, found = set(partitions), dict[str, int]()
    for batch in table.scan(selected_fields=(partition, column)).to_arrow_batch_reader():
        for value, rows in zip(*(batch.column(one).to_pylist() for one in (partition, column)), strict=True):
            place = name_partition(value, grain)
            if place in wanted and rows is not None:
                found[place] = found.get(place, 0) + int(rows)
    return found


def check_announcing_columns(kinds: Mapping[str, Any], name: str, partition: str, column: str) -> None:
    """Raise ``UsageError`` unless the table has the partition column of the input, and whole numbers of rows."""
    for wanted in (partition, column):
        if wanted not in kinds:
            raise UsageError(
                f"rows_from {name}.{column} was refused; expected the columns {partition} and {column}, found "
                f"{', '.join(kinds)}",
                state="nothing was planned",
                hint="errata check",
            )
    if kinds[column] not in ("int", "long"):
        raise UsageError(
            f"rows_from {name}.{column} was refused; expected whole numbers, found {kinds[column]}",
            state="nothing was planned",
            hint="errata check",
        )
