"""What a table in memory consists of: schemas, data and delete files, snapshots, refs, and versions of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.model.partition import Grain
from errata.testing.row_values import Row, parse_value, stored_grain

MAIN = "main"
Stored = Mapping[int, Any]
"""A row by field id."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a schema."""

    field_id: int
    name: str
    type: str  # Iceberg type text
    required: bool = False
    default: Any = None  # value in files that lack the column


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table at one time."""

    schema_id: int
    fields: tuple[Field, ...]

    def find(self, name: str) -> Field:
        """The column of this name; raises ``KeyError``."""
        return next((one for one in self.fields if one.name == name), None) or _raise_unknown(name, self)

    def read(self, stored: Stored) -> dict[str, Any]:
        """A stored row under the names of this schema."""
        return {one.name: stored.get(one.field_id, one.default) for one in self.fields}

    def store(self, row: Row) -> dict[int, Any]:
        """A row by field id; raises ``KeyError`` for an unknown column and ``TypeError`` for a value that misfits."""
        for name in row:
            self.find(name)
        return {one.field_id: parse_value(row.get(one.name), one.type) for one in self.fields}


def _raise_unknown(name: str, schema: Schema) -> Field:
    raise KeyError(f"no column {name}; expected one of {', '.join(one.name for one in schema.fields)}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file: rows of one partition of the spec it was written with."""

    path: str
    rows: tuple[Stored, ...]
    partition: str | None  # None: the table was not partitioned
    spec_id: int
    sequence: int = 0
    snapshot_id: str = ""  # the commit that added it

    @property
    def size(self) -> int:
        """Bytes: a round number for each row."""
        return 100 * len(self.rows)


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """An equality delete file: in data files that are older, it hides the rows with these values."""

    path: str
    key: Stored
    partition: str | None
    spec_id: int
    sequence: int = 0
    snapshot_id: str = ""

    def applies_to(self, file: DataFile) -> bool:
        """Whether a reader of the file has to look at it."""
        return self.sequence > file.sequence and (self.partition is None or self.partition == file.partition)

    def hides(self, row: Stored) -> bool:
        """Whether it hides this row of a file it applies to."""
        return all(row.get(number) == value for number, value in self.key.items())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of main or of a branch, and what the commit that made it took out."""

    snapshot_id: str
    parent_id: str | None
    sequence: int
    at_ms: int
    operation: str
    schema_id: int
    summary: Mapping[str, str]
    files: Mapping[str, DataFile]
    deletes: Mapping[str, DeleteFile]
    removed: tuple[DataFile, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether the table begins with it; expiry may have cleared the parent of a later one."""
        adds_all = len(self.added) == len(self.files) and len(self.added_deletes) == len(self.deletes)
        return self.parent_id is None and not self.removed and adds_all

    @property
    def added(self) -> tuple[DataFile, ...]:
        """Data files that this commit added."""
        return tuple(file for file in self.files.values() if file.snapshot_id == self.snapshot_id)

    @property
    def added_deletes(self) -> tuple[DeleteFile, ...]:
        """Delete files that this commit added."""
        return tuple(file for file in self.deletes.values() if file.snapshot_id == self.snapshot_id)

    def deletes_of(self, file: DataFile) -> tuple[DeleteFile, ...]:
        """The delete files that a reader of this data file needs."""
        return tuple(one for one in self.deletes.values() if one.applies_to(file))

    def read(self, file: DataFile) -> Iterator[Stored]:
        """The rows of a file that its delete files leave."""
        hidden = self.deletes_of(file)
        return (row for row in file.rows if not any(one.hides(row) for one in hidden))


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag."""

    snapshot_id: str
    is_branch: bool = False
    age_ms: int | None = None  # how long after its snapshot it is dropped by an expiry; None: never
    snapshot_age_ms: int | None = None  # how long a branch keeps its older snapshots


@dataclass(frozen=True, slots=True)
class Spec:
    """How a version of the table is partitioned; without a column, not at all."""

    spec_id: int
    source: int | None = None  # field id
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class Metadata:
    """One version of a table; it never changes."""

    table: str
    table_uuid: str
    schemas: tuple[Schema, ...]
    specs: tuple[Spec, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    log: tuple[tuple[int, str], ...] = ()  # when main was set to which snapshot
    last_sequence: int = 0
    last_column_id: int = 0
    format_version: int = 2

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[-1]

    @property
    def spec(self) -> Spec:
        """The current partitioning."""
        return self.specs[-1]

    @property
    def head(self) -> Snapshot | None:
        """Main's snapshot; None while nothing was ever written."""
        found = self.refs.get(MAIN)
        return self.snapshots[found.snapshot_id] if found else None

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema that a snapshot is read with."""
        return next(one for one in self.schemas if one.schema_id == snapshot.schema_id)

    def line(self, snapshot_id: str | None) -> tuple[Snapshot, ...]:
        """A snapshot and its ancestors, newest first, as far as expiry left them."""
        found, at = list[Snapshot](), self.snapshots.get(snapshot_id or "")
        while at is not None:
            found.append(at)
            at = self.snapshots.get(at.parent_id or "")
        return tuple(found)

    def stored_grain(self, spec_id: int) -> Grain | None:
        """Width of the partitions of one of its specs."""
        spec = next(one for one in self.specs if one.spec_id == spec_id)
        kinds = {one.field_id: one.type for schema in self.schemas for one in schema.fields}
        return stored_grain(spec.transform, kinds[spec.source]) if spec.source else None
