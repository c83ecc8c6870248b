"""Rows as the lake gives them to copies: from a list, or from a table in memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from errata.errors import RunExpired
from errata.model.copy.checksum import Checksum
from errata.model.copy.lake_file import LakeFile
from errata.model.copy.measure import measure_rows
from errata.model.copy.table import CopyTable
from errata.ports.copies import LakeReader, LakeRows
from errata.testing.lake import Lake
from errata.testing.scope import Scope


@dataclass(frozen=True)
class Rows:
    """Rows by the names of the copy's columns, given in batches."""

    copy: CopyTable
    rows: Sequence[Mapping[str, Any]]
    size: int = 3

    def batches(self, without: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """See the port."""
        assert not without, "rows of a list are in no file"
        schema = pa.schema([(column.name, to_arrow_type(column.type)) for column in self.copy.columns])
        for start in range(0, len(self.rows), self.size):
            yield pa.RecordBatch.from_pylist([dict(row) for row in self.rows[start : start + self.size]], schema=schema)

    def files(self) -> tuple[LakeFile, ...]:
        """See the port."""
        return ()

    def measure(self) -> dict[str, Checksum]:
        """See the port."""
        return measure_rows(self.copy, self.rows)


@dataclass(frozen=True)
class MemoryLakeReader:
    """Reads tables in memory for copies."""

    lake: Lake

    def read(self, copy: CopyTable, table: str, snapshot_id: str, partitions: Collection[str]) -> LakeRows:
        """See the port."""
        metadata = self.lake.table(table).metadata
        snapshot = metadata.snapshots.get(snapshot_id)
        if snapshot is None:
            raise RunExpired(f"snapshot {snapshot_id} of {table} is gone", table=table, snapshot_id=snapshot_id)
        scope, found = Scope.of_column(metadata, copy.partition.source, copy.grain), list[dict[str, Any]]()
        for file in snapshot.files.values():
            for stored in snapshot.read(file):
                if scope.partition_of(stored) in partitions:
                    # the current schema, whatever the snapshot's was
                    row = metadata.schema.read(stored)
                    found.append({column.name: row[column.source] for column in copy.columns})
        return Rows(copy, found, 1_000)

    def list_metadata(self, table: str) -> tuple[str, ...]:
        """See the port."""
        snapshots = self.lake.table(table).metadata.snapshots
        return tuple(f"{table}/metadata/{number:05d}-{name}.metadata.json" for number, name in enumerate(snapshots))


def to_arrow_type(kind: str) -> pa.DataType:
    """The Arrow type in which the lake gives values of an Iceberg type."""
    if found := re.fullmatch(r"decimal\((\d+), (\d+)\)", kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    plain = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
        "string": pa.large_string(),
    }
    return plain[kind]


_conforms: type[LakeReader] = MemoryLakeReader
_rows: type[LakeRows] = Rows
