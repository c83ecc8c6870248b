"""Rows of a partition by key for `errata why`. Reads only, and never starts a JVM.

Each key is looked up separately, so that values of different rows are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from errata.errors import NotFound, UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.ports.tables import Correction, Key
from errata.workspace import Workspace

MAX_ROWS = 20
RowValues = Mapping[str, Any] | None
"""A row; empty if there was none, None if no snapshot can tell any more."""


def find_missing_columns(product: str, target: TargetPin, asked: Mapping[str, str]) -> tuple[str, ...]:
    """Key columns missing from the request; raises for columns that cannot identify a row."""
    if not target.key:
        raise UsageError(
            f"--key was refused; {product} declares no key (target.key), so rows cannot be matched between versions",
            hint="without --key the partition's own numbers are shown",
        )
    if unknown := [name for name in asked if name not in target.columns]:
        raise NotFound(f"{target.table} has no column {unknown[0]}; expected one of {', '.join(target.columns)}")
    if others := [name for name in asked if name not in target.key]:
        raise UsageError(
            f"--key {others[0]} was refused; expected columns of the key of {product}: {', '.join(target.key)}"
        )
    return tuple(name for name in target.key if name not in asked and not _is_known_from_partition(target, name))


def _is_known_from_partition(target: TargetPin, column: str) -> bool:
    day = target.column_type == "date" and target.grain is Grain.DAY
    return column == target.column and (day or target.column_type == "string" or not target.grain.is_time)


class KeyedRows:
    """Rows of one partition that match some keys; every snapshot is read only once."""

    def __init__(
        self, workspace: Workspace, target: TargetPin, partition: str, keys: Sequence[Key], *, whole: bool
    ) -> None:
        self._workspace = workspace
        self._partition = partition
        self._columns = () if whole else target.key  # the reader has already compared a whole key
        self._keys = keys
        self._read: dict[tuple[str, str], tuple[Mapping[str, Any], ...] | None] = {}
        self._told: dict[str, tuple[Correction, ...]] = {}
        self.repeated = False

    def at(self, target: TargetPin, snapshot_id: str | None, key: Key) -> RowValues:
        """The row with this key in a snapshot of the target."""
        if snapshot_id is None:
            return None
        place = (target.table, snapshot_id)
        if place not in self._read:
            rows = self._workspace.engines.rows.rows(target, snapshot_id, self._partition, self._keys)
            self._read[place] = rows
        found = self._read[place]
        return None if found is None else self._take_first_row([row for row in found if self._matches_key(row, key)])

    def told(self, table: str | None, publication_id: str, key: Key) -> tuple[RowValues, RowValues] | None:
        """Old and new row from the corrections table, which outlives every snapshot; None if it has no entry."""
        if table is None:
            return None
        if table not in self._told:
            self._told[table] = self._workspace.engines.rows.corrections(table, self._partition, self._keys)
        found = [
            one for one in self._told[table] if one.publication_id == publication_id and self._matches_key(one.key, key)
        ]
        if not found:
            return None
        # a repeated key has one correction for each row that was removed and for each that was added
        old, new = [c.old for c in found if c.old is not None], [c.new for c in found if c.new is not None]
        return self._take_first_row(old), self._take_first_row(new)

    def _matches_key(self, row: Mapping[str, Any], key: Key) -> bool:
        return all(row.get(name) == key[name] for name in self._columns)

    def _take_first_row(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        self.repeated = self.repeated or len(rows) > 1
        return rows[0] if rows else {}


def find_keys(
    workspace: Workspace,
    partition: str,
    asked: Mapping[str, str],
    snapshots: Iterable[tuple[TargetPin, str | None]],
    corrections: Iterable[tuple[TargetPin, str]],
) -> tuple[list[Key], bool]:
    """Up to ``MAX_ROWS`` whole keys of rows that match a part of a key, and whether there may be more."""
    found: dict[tuple[str | None, ...], Key] = {}
    is_cut = False
    reader = workspace.engines.rows
    for target, table in corrections:
        _add_keys(found, target, (one.key for one in reader.corrections(table, partition, [asked])))
    for target, snapshot_id in snapshots:
        if len(found) > MAX_ROWS:
            break
        rows = reader.rows(target, snapshot_id, partition, [asked], _MAX_ROWS_READ) or ()
        is_cut = is_cut or len(rows) == _MAX_ROWS_READ
        _add_keys(found, target, rows)
    order = sorted(found, key=lambda values: [value or "" for value in values])
    return [found[values] for values in order[:MAX_ROWS]], is_cut or len(found) > MAX_ROWS


def _add_keys(found: dict[tuple[str | None, ...], Key], target: TargetPin, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        key = {name: row.get(name) for name in target.key}
        found.setdefault(tuple(key.values()), key)


_MAX_ROWS_READ = 10 * MAX_ROWS
"""Rows read from one snapshot to find keys; a key may occur more than once."""
