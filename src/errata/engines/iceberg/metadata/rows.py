"""Read single rows and their origin with pyiceberg: a filter on partition and key prunes to a few files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.metadata.data_files import scan_target
from errata.engines.iceberg.metadata.key_values import build_equality, to_key_text
from errata.engines.iceberg.metadata.partition_fields import find_spec_field
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import EngineError, NotFound, UsageError
from errata.model.calendar_math import first_second
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain, to_ordinal, value_from_text
from errata.model.side_tables import CORRECTION_COLUMNS
from errata.ports.tables import Correction, Key, Origin, RowReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema

_MAX_REQUESTS = 16
"""Maximum number of concurrent requests to the storage."""


class IcebergRowReader:
    """Reads rows of pinned snapshots. Read-only."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def rows(
        self, target: TargetPin, snapshot_id: str | None, partition: str, keys: Sequence[Key], most: int | None = None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """See the port."""
        from pyiceberg.expressions import And

        table = self._tables.load(target.table)
        unknown = sorted({name for key in keys for name in key} - set(target.columns))
        if unknown:
            raise NotFound(f"{target.table} has no column {unknown[0]}; expected one of {', '.join(target.columns)}")
        wanted = And(_build_scope_filter(target, partition), _match_any_key(table.schema(), keys))
        if snapshot_id is None or table.metadata.snapshot_by_id(int(snapshot_id)) is None:
            return None
        found = table.scan(row_filter=wanted, snapshot_id=int(snapshot_id), limit=most).to_arrow().to_pylist()
        return tuple({name: to_key_text(value) for name, value in row.items()} for row in found)

    def corrections(self, table: str, partition: str, keys: Sequence[Key]) -> tuple[Correction, ...]:
        """See the port."""
        from pyiceberg.expressions import And

        try:
            loaded = self._tables.load(table)
        except NotFound:
            return ()
        wanted = And(_build_predicate("==", "partition", partition), _match_any_key(loaded.schema(), keys))
        own = [field.name for field in loaded.schema().fields if field.name not in CORRECTION_COLUMNS]
        found = []
        for row in loaded.scan(row_filter=wanted).to_arrow().to_pylist():
            key = {name: to_key_text(row[name]) for name in own}
            old, new = (_parse_values(row[side], key) for side in ("old", "new"))
            found.append(Correction(row["publication_id"], key, old, new))
        return tuple(found)

    def iterate_corrections(self, table: str, publication_id: str) -> Iterator[Mapping[str, Any]]:
        """See the port."""
        loaded = self._tables.load(table)
        own = [field.name for field in loaded.schema().fields if field.name not in CORRECTION_COLUMNS]
        wanted = _build_predicate("==", "publication_id", publication_id)
        for batch in loaded.scan(row_filter=wanted).to_arrow_batch_reader():
            for row in batch.to_pylist():
                told = {name: to_key_text(row[name]) for name in CORRECTION_COLUMNS}
                yield {"key": {name: to_key_text(row[name]) for name in own}, **told}

    def missing_files(self, target: TargetPin, partitions: Sequence[str]) -> tuple[int, tuple[str, ...]]:
        """See the port."""
        table = self._tables.load(target.table)
        live = scan_target(table, table.metadata.current_snapshot(), target.column, target.grain, partitions)
        listed = {file.path for files in live.expected.values() for file in files}
        paths = sorted(listed | {entry.path for entry in live.shared})
        try:
            with ThreadPoolExecutor(_MAX_REQUESTS) as pool:
                there = list(pool.map(lambda path: table.io.new_input(path).exists(), paths))
        except Exception as problem:  # storage drivers' exceptions have no common base
            raise EngineError(f"files of {target.table} could not be looked for: {problem}") from problem
        return len(paths), tuple(path for path, is_there in zip(paths, there, strict=True) if not is_there)

    def origin(self, target: TargetPin, snapshot_id: str | None, partition: str) -> Origin | None:
        """The newest commit that wrote a live file of this partition."""
        table = self._tables.load(target.table)
        snapshot = table.metadata.snapshot_by_id(int(snapshot_id)) if snapshot_id else None
        if snapshot is None:
            return None
        writers = set()
        for manifest in snapshot.manifests(table.io):
            place = find_spec_field(
                table.specs()[manifest.partition_spec_id], table.schema(), target.column, target.grain
            )
            if place is None:
                continue
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if place.text(entry.data_file.partition[place.position]) == partition:
                    writers.add(entry.snapshot_id)
        known = [found for writer in writers if writer and (found := table.metadata.snapshot_by_id(writer)) is not None]
        if not known:
            return None
        newest = max(known, key=lambda one: one.timestamp_ms)
        summary = newest.summary.additional_properties if newest.summary else {}
        at = datetime.fromtimestamp(newest.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        return Origin(str(newest.snapshot_id), at, summary.get("app-name") or summary.get("spark.app.id") or "live")


def _match_any_key(schema: Schema, keys: Sequence[Key]) -> BooleanExpression:
    from pyiceberg.expressions import And, Or

    fits = [reduce(And, [build_equality(schema, name, value) for name, value in key.items()]) for key in keys]
    return reduce(Or, fits)


def _parse_values(text: str | None, key: Key) -> dict[str, Any] | None:
    """Values of a correction as text, with every digit preserved."""
    if text is None:
        return None
    values = json.loads(text, parse_float=str, parse_int=str)
    return {**key, **{name: None if value is None else str(value) for name, value in values.items()}}


def _build_scope_filter(target: TargetPin, partition: str) -> BooleanExpression:
    from pyiceberg.expressions import And, IsNull

    column = target.column
    if partition == NULL:
        return IsNull(column)  # type: ignore[call-arg]
    if target.column_type in ("string", "int", "long"):
        value = value_from_text(partition) if target.grain is Grain.VALUE else partition
        return _build_predicate(
            "==", column, _parse_whole(column, value or "") if target.column_type in ("int", "long") else value
        )
    number = to_ordinal(target.grain, partition)
    # as numbers, because the end of 9999-12-31 cannot be a Python date
    low, high = (first_second(target.grain, n) for n in (number, number + 1))
    if target.column_type == "date":
        return And(_build_predicate(">=", column, low // 86_400), _build_predicate("<", column, high // 86_400))
    return And(_build_predicate(">=", column, low * 1_000_000), _build_predicate("<", column, high * 1_000_000))


def _parse_whole(column: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII):
        raise UsageError(f"{column}={text!r} was refused; the column holds whole numbers")
    return int(text)


def _build_predicate(operator: str, column: str, value: Any) -> BooleanExpression:
    from pyiceberg import expressions

    kinds: dict[str, Any] = {
        "==": expressions.EqualTo,
        ">=": expressions.GreaterThanOrEqual,
        "<": expressions.LessThan,
    }
    found: BooleanExpression = kinds[operator](column, value)
    return found


_conforms: type[RowReader] = IcebergRowReader
