"""Look for rows of given subjects in every state of a table, with pyiceberg: each data file is read once at most."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import NotFound
from errata.model.product.erasure_place import HeldState, find_snapshot_age
from errata.ports.erasure import SubjectSearch

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

_LINES = ("text", "value")
"""Keys of a quarantined row whose value is a line that could not be read."""


class IcebergSubjectSearch:
    """Searches tables of a project's catalogs."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def find_states(self, table: str, columns: Sequence[str], ids: Collection[str]) -> tuple[HeldState, ...]:
        """See the port."""
        try:
            loaded = self._tables.load(table)
        except NotFound:
            return ()
        look = _Look(loaded, columns, ids)
        refs = loaded.metadata.refs
        named = {ref.snapshot_id for ref in refs.values()}
        found = [
            HeldState(name, look.find_time(ref.snapshot_id), None if name == "main" else ref.max_ref_age_ms)
            for name, ref in sorted(refs.items())
            if look.holds(ref.snapshot_id)
        ]
        age = find_snapshot_age(loaded.properties)
        others = [one for one in loaded.metadata.snapshots if one.snapshot_id not in named]
        newest = next((one for one in reversed(others) if look.holds(one.snapshot_id)), None)
        return (*found, *([HeldState(None, newest.timestamp_ms, age)] if newest else []))

    def find_in_json(self, table: str, columns: Sequence[str], ids: Collection[str]) -> bool:
        """See the port."""
        try:
            loaded = self._tables.load(table)
        except NotFound:
            return False
        wanted = set(ids)
        lines = re.compile("|".join(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in sorted(wanted)) or r"(?!)")
        for batch in loaded.scan(selected_fields=tuple(columns)).to_arrow_batch_reader():
            for column in columns:
                for text in batch[column].to_pylist():
                    if text is not None and _is_in_text(text, wanted, lines):
                        return True
        return False


class _Look:
    """Which snapshots of one table hold rows of the subjects; a file with the same deletes is read once."""

    def __init__(self, table: Table, columns: Sequence[str], ids: Collection[str]) -> None:
        self._table, self._columns, self._ids = table, columns, ids
        self._seen: dict[tuple[str, ...], bool] = {}

    def find_time(self, snapshot_id: int) -> int:
        """When a snapshot was made, in milliseconds."""
        snapshot = self._table.metadata.snapshot_by_id(snapshot_id)
        return snapshot.timestamp_ms if snapshot else 0

    def holds(self, snapshot_id: int) -> bool:
        """Whether a row of the snapshot is about one of the subjects."""
        snapshot = self._table.metadata.snapshot_by_id(snapshot_id)
        schemas = {one.schema_id: one for one in self._table.metadata.schemas}
        if snapshot is None:
            return False
        schema = schemas.get(snapshot.schema_id or 0, self._table.schema())
        wanted = _build_filter(schema, self._columns, self._ids)
        if wanted is None:
            return False
        tasks = self._table.scan(row_filter=wanted, snapshot_id=snapshot_id).plan_files()
        return any(self._is_in_file(task, wanted, schema) for task in tasks)

    def _is_in_file(self, task: FileScanTask, wanted: BooleanExpression, schema: Schema) -> bool:
        key = (task.file.file_path, *sorted(one.file_path for one in task.delete_files))
        if key not in self._seen:
            self._seen[key] = self._read(task, wanted, schema)
        return self._seen[key]

    def _read(self, task: FileScanTask, wanted: BooleanExpression, schema: Schema) -> bool:
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self._table.metadata, self._table.io, schema, wanted, True)  # noqa: FBT003 - case sensitive
        try:
            return len(scan.to_table([task])) > 0
        except (NotImplementedError, ValueError):
            return True  # deletes that pyiceberg cannot apply: nobody can tell, so it counts as held


def _build_filter(schema: Schema, columns: Sequence[str], ids: Collection[str]) -> BooleanExpression | None:
    """Rows with one of the ids in one of the columns; None if no column can have one."""
    from pyiceberg.expressions import In, Or

    found: BooleanExpression | None = None
    for name in columns:
        field = next((one for one in schema.fields if one.name == name), None)
        if field is None:
            continue
        values = list(_iterate_values(str(field.field_type), ids))
        if not values:
            continue
        term: Any = In(name, set(values))  # type: ignore[call-arg]
        found = term if found is None else Or(found, term)
    return found


def _iterate_values(kind: str, ids: Collection[str]) -> Iterator[str | int]:
    """The ids as values of a column type; numbers beyond the type can be in no row."""
    limit = {"int": 2**31, "long": 2**63}.get(kind)
    for one in ids:
        if limit is None:
            yield one
        elif re.fullmatch(r"-?[0-9]{1,19}", one) and -limit <= int(one) < limit:
            yield int(one)


def _is_in_text(text: str, wanted: Collection[str], lines: re.Pattern[str]) -> bool:
    try:
        data = json.loads(text)
    except ValueError:
        return lines.search(text) is not None
    return any(
        value in wanted or (key in _LINES and lines.search(value) is not None) for key, value in _iterate_scalars(data)
    )


def _iterate_scalars(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _iterate_scalars(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _iterate_scalars(value, key)
    elif data is not None:
        yield key, str(data)


_conforms: type[SubjectSearch] = IcebergSubjectSearch
