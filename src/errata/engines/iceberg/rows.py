"""Single rows and their origin with pyiceberg: a filter on partition and key, and the few files that can match."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.fields import place_in
from errata.engines.iceberg.literals import equal_to, shown
from errata.engines.iceberg.metadata import TableLoader
from errata.errors import NotFound, UsageError
from errata.executor.ports import Origin, RowReader
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain, shift, start_of, value_of

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
__all__ = ["IcebergRows"]


class IcebergRows:
    """Reads rows of pinned snapshots; everything here only reads."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def row(
        self, target: TargetPin, snapshot_id: str | None, partition: str, key: Mapping[str, str]
    ) -> Mapping[str, Any] | None:
        """The row of this key, as text; None when there is none or the snapshot is gone."""
        from pyiceberg.expressions import And

        table = self._tables.load(target.table)
        unknown = sorted(set(key) - set(target.columns))
        if unknown:
            raise NotFound(f"{target.table} has no column {unknown[0]}; expected one of {', '.join(target.columns)}")
        if snapshot_id is None or table.metadata.snapshot_by_id(int(snapshot_id)) is None:
            return None
        wanted = _scope(target, partition)
        for name, value in key.items():
            wanted = And(wanted, equal_to(table.schema(), name, value))
        found = table.scan(row_filter=wanted, snapshot_id=int(snapshot_id), limit=1).to_arrow().to_pylist()
        return {name: shown(value) for name, value in found[0].items()} if found else None

    def corrections(
        self, table: str, partition: str, key: Mapping[str, str]
    ) -> Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
        """See the port. A key that is there twice has several rows; one of each side is told."""
        from pyiceberg.expressions import And

        try:
            loaded = self._tables.load(table)
        except NotFound:
            return {}
        wanted = _predicate("==", "partition", partition)
        for name, value in key.items():
            wanted = And(wanted, equal_to(loaded.schema(), name, value))
        found: dict[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]] = {}
        for row in loaded.scan(row_filter=wanted).to_arrow().to_pylist():
            known = found.get(row["publication_id"], (None, None))
            old, new = (_values(row[side], key) for side in ("old", "new"))
            found[row["publication_id"]] = (old or known[0], new or known[1])
        return found

    def origin(self, target: TargetPin, snapshot_id: str | None, partition: str) -> Origin | None:
        """The newest commit among the live files of this partition."""
        table = self._tables.load(target.table)
        snapshot = table.metadata.snapshot_by_id(int(snapshot_id)) if snapshot_id else None
        if snapshot is None:
            return None
        writers = set()
        for manifest in snapshot.manifests(table.io):
            place = place_in(table.specs()[manifest.partition_spec_id], table.schema(), target.column, target.grain)
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


def _values(text: str | None, key: Mapping[str, str]) -> dict[str, Any] | None:
    """Values of a correction as text, every digit kept."""
    if text is None:
        return None
    values = json.loads(text, parse_float=str, parse_int=str)
    return {**key, **{name: None if value is None else str(value) for name, value in values.items()}}


def _scope(target: TargetPin, partition: str) -> BooleanExpression:
    from pyiceberg.expressions import And, IsNull

    column = target.column
    if partition == NULL:
        return IsNull(column)  # type: ignore[call-arg]
    if target.column_type in ("string", "int", "long"):
        value = value_of(partition) if target.grain is Grain.VALUE else partition
        return _predicate("==", column, _whole(column, value or "") if target.column_type in ("int", "long") else value)
    start, end = (start_of(target.grain, text) for text in (partition, shift(target.grain, partition, 1)))
    if target.column_type == "date":
        low, high = start.date().isoformat(), end.date().isoformat()
        return And(_predicate(">=", column, low), _predicate("<", column, high))
    zone = "+00:00" if target.column_type == "timestamptz" else ""
    low, high = (moment.replace(tzinfo=None).isoformat() + zone for moment in (start, end))
    return And(_predicate(">=", column, low), _predicate("<", column, high))


def _whole(column: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII):
        raise UsageError(f"{column}={text!r} was refused; the column holds whole numbers")
    return int(text)


def _predicate(operator: str, column: str, value: Any) -> BooleanExpression:
    from pyiceberg import expressions

    kinds: dict[str, Any] = {
        "==": expressions.EqualTo,
        ">=": expressions.GreaterThanOrEqual,
        "<": expressions.LessThan,
    }
    found: BooleanExpression = kinds[operator](column, value)
    return found


_conforms: type[RowReader] = IcebergRows
