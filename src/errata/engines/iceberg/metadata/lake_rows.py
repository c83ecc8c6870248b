"""Read the rows of partitions at a snapshot with pyiceberg, file by file, as a copy needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from errata.engines.copies.batch_checksums import BatchChecksums
from errata.engines.iceberg.metadata.file_batches import read_batches
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import EngineError, RunExpired
from errata.model.calendar_math import first_second
from errata.model.copy.checksum import Checksum
from errata.model.copy.lake_file import FileColumn, FileFacts, LakeFile, find_load_refusal
from errata.model.copy.table import CopyTable
from errata.model.partition import NULL, Grain, to_ordinal, value_from_text
from errata.model.partition_sql import fold_values
from errata.ports.copies import LakeReader, LakeRows
from errata.text.exceptions import first_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
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

    def list_metadata(self, table: str) -> tuple[str, ...]:
        """See the port."""
        loaded = self.tables.load(table)
        return (*(entry.metadata_file for entry in loaded.metadata.metadata_log), loaded.metadata_location)


@dataclass(slots=True)
class IcebergRows:
    """Rows of some partitions at one snapshot."""

    table: Table
    copy: CopyTable
    snapshot_id: int
    partitions: tuple[str, ...]
    _counted: BatchChecksums | None = field(default=None, init=False)
    _left: frozenset[str] = field(default=frozenset(), init=False)  # files that are not counted yet

    def batches(self, without: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """See the port."""
        left, counted = frozenset(without), BatchChecksums(self.copy)
        # a batch is counted while the warehouse takes it; not more than one, so that memory stays bounded
        with ThreadPoolExecutor(1) as pool:
            adding: Future[None] | None = None
            for batch in self._read_files(lambda path: path not in left):
                if adding is not None:
                    adding.result()
                adding = pool.submit(counted.add, batch)
                yield batch
            if adding is not None:
                adding.result()
        self._counted, self._left = counted, left

    def files(self) -> tuple[LakeFile, ...]:
        """See the port."""
        schema = self.table.schema()
        wanted = [FileColumn(schema.find_field(one.source).field_id, one.source, one.type) for one in self.copy.columns]
        found: list[LakeFile] = []
        for task in self._plan_files():
            file = task.file
            facts = FileFacts(
                format=str(file.file_format.value),
                is_encrypted=file.key_metadata is not None,
                has_deletes=bool(task.delete_files),
                is_whole=self._is_whole(file),
            )
            refusal = find_load_refusal(facts, wanted)
            if refusal is None:
                facts = replace(facts, columns=read_footer(self.table.io, file.file_path))
                refusal = (
                    find_load_refusal(facts, wanted) if facts.columns is not None else "its footer is not readable"
                )
            found.append(LakeFile(file.file_path, file.record_count, refusal))
        return tuple(found)

    def measure(self) -> dict[str, Checksum]:
        """See the port."""
        if self._counted is None:
            for _ in self.batches():
                pass
        counted = self._counted or BatchChecksums(self.copy)
        if self._left:
            # the rows that a warehouse read from files have to be those that the table has
            left, self._left = self._left, frozenset()
            for batch in self._read_files(lambda path: path in left):
                counted.add(batch)
        return counted.checksums

    def _read_files(self, is_wanted: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        sources = [column.source for column in self.copy.columns]
        # of the current schema, whatever the snapshot's was: fields are found by their ids
        projected = self.table.schema().select(*sources)
        # a file has its texts as its writer chose, and a driver reads every batch by the types of the first
        types = {one.name: one.type for one in schema_to_pyarrow(projected)}
        schema = pa.schema([(column.name, types[column.source]) for column in self.copy.columns])
        wanted = build_partitions_filter(self.copy, self.copy.partition.source, self.partitions)
        try:
            for task in self._plan_files():
                if not is_wanted(task.file.file_path):
                    continue
                for batch in read_batches(self.table, task, wanted, projected):
                    yield batch.select(sources).rename_columns(schema.names).cast(schema)
        except FileNotFoundError as missing:
            told = f"a file of snapshot {self.snapshot_id} is gone"
            raise RunExpired(told, snapshot_id=str(self.snapshot_id)) from missing

    def _is_whole(self, file: DataFile) -> bool:
        """Whether the partition of a file proves that every row of it is wanted.

        Computed here: tasks that a catalog planned say so as well when it did not say anything.
        """
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.expressions.visitors import residual_evaluator_of

        wanted = build_partitions_filter(self.copy, self.copy.partition.source, self.partitions)
        spec = self.table.specs()[file.spec_id]
        left = residual_evaluator_of(spec, wanted, case_sensitive=True, schema=self.table.schema())
        return bool(left.residual_for(file.partition) == AlwaysTrue())

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


def read_footer(io: FileIO, path: str) -> tuple[FileColumn, ...] | None:
    """The columns of a Parquet file with the ids of their fields; None: it cannot be read as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with io.new_input(path).open() as stream:
            schema = pq.ParquetFile(stream).schema_arrow
    except (pa.ArrowInvalid, NotImplementedError):
        return None
    ids = ((one.metadata or {}).get(b"PARQUET:field_id") for one in schema)
    return tuple(
        FileColumn(None if found is None else int(found), one.name, _name_type(one.type))
        for one, found in zip(schema, ids, strict=True)
    )


def _name_type(kind: pa.DataType) -> str:
    """The type of the lake that a file stores in this way; the Arrow name for one that the lake does not write so."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    plain = {
        pa.bool_(): "boolean",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.date32(): "date",
        pa.timestamp("us"): "timestamp",
        pa.timestamp("us", "UTC"): "timestamptz",
        pa.string(): "string",
        pa.large_string(): "string",
    }
    return plain.get(kind, str(kind))


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
