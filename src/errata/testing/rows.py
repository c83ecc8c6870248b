"""Read single rows and their origin from tables in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from errata.errors import NotFound, UsageError
from errata.model.manifest import TargetPin
from errata.model.side_tables import CORRECTION_COLUMNS
from errata.ports.tables import Correction, Key, Origin, RowReader
from errata.testing.lake import Lake
from errata.testing.row_values import parse_value
from errata.testing.scope import Scope


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Single rows of tables in memory."""

    lake: Lake

    def rows(
        self, target: TargetPin, snapshot_id: str | None, partition: str, keys: Sequence[Key], most: int | None = None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """See the port."""
        metadata = self.lake.table(target.table).metadata
        unknown = sorted({name for key in keys for name in key} - set(target.columns))
        if unknown:
            raise NotFound(f"{target.table} has no column {unknown[0]}; expected one of {', '.join(target.columns)}")
        wanted = [_parse_key(key, target.columns) for key in keys]
        snapshot = metadata.snapshots.get(snapshot_id or "")
        if snapshot is None:
            return None
        rows = Scope.of_pin(metadata, target).rows(snapshot, [partition])
        found = [row for row in rows if any(_matches(row, key) for key in wanted)]
        return tuple({name: to_key_text(value) for name, value in row.items()} for row in found[:most])

    def corrections(self, table: str, partition: str, keys: Sequence[Key]) -> tuple[Correction, ...]:
        """See the port."""
        if table not in self.lake.tables:
            return ()
        held = self.lake.table(table)
        kinds = {one.name: one.type for one in held.metadata.schema.fields if one.name not in CORRECTION_COLUMNS}
        wanted = [_parse_key(key, kinds) for key in keys]
        found = list[Correction]()
        for row in held.rows():
            if row["partition"] == partition and any(_matches(row, key) for key in wanted):
                key = {name: to_key_text(row[name]) for name in kinds}
                old, new = (_parse_values(row[side], key) for side in ("old", "new"))
                found.append(Correction(row["publication_id"], key, old, new))
        return tuple(found)

    def iterate_corrections(self, table: str, publication_id: str) -> Iterator[Mapping[str, Any]]:
        """See the port."""
        held = self.lake.table(table)
        own = [one.name for one in held.metadata.schema.fields if one.name not in CORRECTION_COLUMNS]
        for row in held.rows():
            if row["publication_id"] == publication_id:
                told = {name: to_key_text(row[name]) for name in CORRECTION_COLUMNS}
                yield {"key": {name: to_key_text(row[name]) for name in own}, **told}

    def missing_files(self, target: TargetPin, partitions: Sequence[str]) -> tuple[int, tuple[str, ...]]:
        """See the port."""
        table = self.lake.table(target.table)
        files = Scope.of_pin(table.metadata, target).files(table.metadata.head, partitions)
        paths = sorted(file.path for file in files)
        return len(paths), tuple(path for path in paths if path in table.lost)

    def origin(self, target: TargetPin, snapshot_id: str | None, partition: str) -> Origin | None:
        """See the port."""
        metadata = self.lake.table(target.table).metadata
        snapshot = metadata.snapshots.get(snapshot_id or "")
        if snapshot is None:
            return None
        scope = Scope.of_pin(metadata, target)
        writers = {file.snapshot_id for file in snapshot.files.values() if scope.only(file) == partition}
        known = [metadata.snapshots[name] for name in writers if name in metadata.snapshots]
        if not known:
            return None
        newest = max(known, key=lambda one: one.sequence)
        at = datetime.fromtimestamp(newest.at_ms / 1000, UTC).isoformat(timespec="seconds")
        return Origin(newest.snapshot_id, at, newest.summary.get("app-name", "live"))


def _parse_key(key: Key, kinds: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in key.items():
        kind = kinds[name]
        try:
            number = kind in ("int", "long") and text not in (None, "null")
            value: Any = None if text is None or (text == "null" and kind != "string") else text
            found[name] = parse_value(int(str(text)) if number else value, kind)
        except (ValueError, TypeError, ArithmeticError):
            raise UsageError(f"--key {name}={text!r} was refused; the column is {kind}") from None
    return found


def _matches(row: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    return all(row[name] == value or (value == "null" and row[name] is None) for name, value in key.items())


def to_key_text(value: Any) -> str | None:
    """A value as text that a key can be given by; None for NULL."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else None if value is None else str(value)


def _parse_values(text: str | None, key: Mapping[str, str | None]) -> dict[str, Any] | None:
    if text is None:
        return None
    values = json.loads(text, parse_float=str, parse_int=str)
    return {**key, **{name: None if value is None else str(value) for name, value in values.items()}}


_conforms: type[RowReader] = MemoryRows
