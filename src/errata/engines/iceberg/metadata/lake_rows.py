"""Read the rows of partitions at a snapshot with pyiceberg, file by file, as a copy needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from errata.engines.copies.batch_checksums import BatchChecksums
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import EngineError, RunExpired
from errata.model.calendar_math import first_second
from errata.model.copy.checksum import Checksum
from errata.model.copy.table import CopyTable
from errata.model.partition import NULL, Grain, to_ordinal, value_from_text
from errata.model.partition_sql import fold_values
from errata.ports.copies import LakeReader, LakeRows
from errata.text.exceptions import first_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import FileScanTask, Table

_SECONDS_OF_A_DAY, _MICROSECONDS = 86_400, 1_000_000


@dataclass(frozen=True, slots=True)
class IcebergLakeReader:
    """Reads rows for copies; starts no JVM."""

    tables: TableLoader

    def read(self, copy: CopyTable, table: str, snapshot_id: str, partitions: Collection[str]) -> LakeRows:
        """See the port."""
        loaded = self.tables.load(table)
        if loaded.metadata.snapshot_by_id(int(snapshot_id)) is None:
            raise RunExpired(f"snapshot {snapshot_id} of {table} is gone", table=table, snapshot_id=snapshot_id)
        return IcebergRows(loaded, copy, int(snapshot_id), tuple(partitions))


@dataclass(slots=True)
class IcebergRows:
    """Rows of some partitions at one snapshot."""

    table: Table
    copy: CopyTable
    snapshot_id: int
    partitions: tuple[str, ...]
    _checksums: dict[str, Checksum] | None = field(default=None, init=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See the port."""
        counted = BatchChecksums(self.copy)
        try:
            for batch in self._read_files():
                counted.add(batch)
                yield batch
        except FileNotFoundError as missing:
            told = f"a file of snapshot {self.snapshot_id} is gone"
            raise RunExpired(told, snapshot_id=str(self.snapshot_id)) from missing
        self._checksums = counted.checksums

    def measure(self) -> dict[str, Checksum]:
        """See the port."""
        if self._checksums is None:
            for _ in self.batches():
                pass
        return self._checksums or {}

    def _read_files(self) -> Iterator[pa.RecordBatch]:
        from pyiceberg.io.pyarrow import ArrowScan

        # the current schema, whatever the snapshot's was: fields are found by their ids
        schema, metadata = self.table.schema(), self.table.metadata
        sources = [column.source for column in self.copy.columns]
        wanted = build_partitions_filter(self.copy, self.copy.partition.source, self.partitions)
        for task in self._plan_files():
            # one file at a time, because a scan of all of them would read ahead without a limit
            scan = ArrowScan(metadata, self.table.io, schema.select(*sources), wanted)
            for batch in scan.to_record_batches([task]):
                yield batch.select(sources).rename_columns([column.name for column in self.copy.columns])

    def _plan_files(self) -> Iterator[FileScanTask]:
        """Files that may have rows of the partitions; by the name that the partition column had then."""
        current = self.table.schema().find_field(self.copy.partition.source)
        snapshot = self.table.metadata.snapshot_by_id(self.snapshot_id)
        schemas = {one.schema_id: one for one in self.table.metadata.schemas}
        then = schemas.get(snapshot.schema_id if snapshot and snapshot.schema_id is not None else -1)
        name = (then or self.table.schema()).find_column_name(current.field_id) or current.name
        wanted = build_partitions_filter(self.copy, name, self.partitions)
        try:
            yield from self.table.scan(row_filter=wanted, snapshot_id=self.snapshot_id).plan_files()
        except ValueError as refused:
            # PyIceberg reads no equality deletes
            raise EngineError(
                f"rows of {self.copy.name} cannot be read from the lake: {first_line(refused)}"
            ) from refused


def build_partitions_filter(copy: CopyTable, column: str, partitions: Collection[str]) -> BooleanExpression:
    """The rows of these partitions; neighbours are one range."""
    from pyiceberg.expressions import AlwaysFalse, Or

    terms = [_build_predicate("null", column)] if NULL in partitions else []
    kind, names = copy.partition.type, set(partitions) - {NULL}
    terms += [_build_range(kind, copy.grain, column, *run) for run in fold_values(kind, copy.grain, names)]
    # in pairs, so that a long list is a low tree
    while len(terms) > 1:
        terms = [reduce(Or, terms[n : n + 2]) for n in range(0, len(terms), 2)]
    return terms[0] if terms else AlwaysFalse()


def _build_range(kind: str, grain: Grain, column: str, first: str, last: str) -> BooleanExpression:
    from pyiceberg.expressions import And

    if grain.is_time and kind != "string":
        # as numbers, because the end of 9999-12-31 cannot be a Python date
        seconds = (first_second(grain, to_ordinal(grain, first)), first_second(grain, to_ordinal(grain, last) + 1))
        is_date = kind == "date"
        low, high = (one // _SECONDS_OF_A_DAY if is_date else one * _MICROSECONDS for one in seconds)
        return And(_build_predicate(">=", column, low), _build_predicate("<", column, high))
    values: list[Any] = [name if grain.is_time else value_from_text(name) or "" for name in (first, last)]
    if kind in ("int", "long"):
        values = [int(value) for value in values]
    if first == last:
        return _build_predicate("==", column, values[0])
    return And(_build_predicate(">=", column, values[0]), _build_predicate("<=", column, values[1]))


def _build_predicate(operator: str, column: str, *values: Any) -> BooleanExpression:
    from pyiceberg import expressions

    kinds: dict[str, Any] = {
        "null": expressions.IsNull,
        "==": expressions.EqualTo,
        ">=": expressions.GreaterThanOrEqual,
        "<": expressions.LessThan,
        "<=": expressions.LessThanOrEqual,
    }
    found: BooleanExpression = kinds[operator](column, *values)
    return found


_conforms: type[LakeReader] = IcebergLakeReader
_rows: type[LakeRows] = IcebergRows
