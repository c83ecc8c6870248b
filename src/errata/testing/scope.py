"""Which files of a table in memory belong to which partitions of a product, as Iceberg's metadata shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from errata.errors import NotFound
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.partition import NULL, Grain, name_partition
from errata.model.table import Commit, DataFile, Touch
from errata.testing.metadata import DataFile as MemoryFile
from errata.testing.metadata import Metadata, Snapshot

DELETES = "equality_deletes"


@dataclass(frozen=True, slots=True)
class Scope:
    """The partitions of a product: a column of the table, and the width of a partition."""

    metadata: Metadata
    source: int  # field id of the column
    grain: Grain

    @classmethod
    def of_pin(cls, metadata: Metadata, target: TargetPin) -> Scope:
        """By the field that the plan meant, whatever its name is now."""
        planned = [one for one in metadata.schemas if one.schema_id == target.schema_id]
        return cls(metadata, (planned or [metadata.schema])[0].find(target.column).field_id, target.grain)

    @classmethod
    def of_column(cls, metadata: Metadata, column: str, grain: Grain) -> Scope:
        """By the current name of the column; a table without it has no partitions."""
        found = [one.field_id for one in metadata.schema.fields if one.name == column]
        return cls(metadata, found[0] if found else 0, grain)

    def partition_of(self, row: Mapping[int, Any]) -> str:
        """The partition of a row."""
        return name_partition(row.get(self.source), self.grain)

    def only(self, file: MemoryFile) -> str | None:
        """The one partition of a file; None if the bounds of its values leave several."""
        names = {self.partition_of(row) for row in file.rows}
        return next(iter(names)) if len(names) == 1 else None

    def possible(self, file: MemoryFile, partitions: Sequence[str]) -> tuple[str, ...]:
        """The partitions, of those given, whose rows a file may hold by the bounds of its values."""
        names = sorted({self.partition_of(row) for row in file.rows} - {NULL})
        has_null = any(row.get(self.source) is None for row in file.rows)
        return tuple(
            name for name in partitions if (has_null if name == NULL else bool(names) and names[0] <= name <= names[-1])
        )

    def describe(self, snapshot: Snapshot, file: MemoryFile, partitions: Sequence[str] | None = None) -> DataFile:
        """A file as ports show it; without partitions, a shared file is shared by none in particular."""
        deletes = tuple(ExpectedFile(one.path, 1, DELETES) for one in snapshot.deletes_of(file))
        only = self.only(file)
        shared = self.possible(file, partitions or ()) if only is None else ()
        return DataFile(file.path, len(file.rows), file.size, only, deletes, shared)

    def files(self, snapshot: Snapshot | None, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files that hold, or may hold, rows of these partitions."""
        found = [self.describe(snapshot, file, partitions) for file in snapshot.files.values()] if snapshot else []
        return tuple(file for file in found if set(file.partitions) & set(partitions))

    def rows(self, snapshot: Snapshot, partitions: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Rows of a snapshot, under the names of the schema it is read with."""
        schema, wanted = self.metadata.schema_of(snapshot), None if partitions is None else set(partitions)
        for file in snapshot.files.values():
            for row in snapshot.read(file):
                if wanted is None or self.partition_of(row) in wanted:
                    yield schema.read(row)

    def commit(self, snapshot: Snapshot, partitions: Sequence[str] | None) -> Commit:
        """What one commit did to these partitions, or to any."""
        touched: dict[str, Touch] = {}
        everything = False
        for sign, files in ((1, snapshot.added), (-1, snapshot.removed)):
            for file in files:
                only = self.only(file)
                is_possible = partitions is None or bool(self.possible(file, partitions))
                everything = everything or (only is None and is_possible)
                if only is not None and (partitions is None or only in partitions):
                    before = touched.get(only, Touch())
                    added, gone = (len(file.rows), 0) if sign > 0 else (0, len(file.rows))
                    touched[only] = Touch(before.added_rows + added, before.removed_rows + gone, before.added_deletes)
        for one in snapshot.added_deletes:
            everything = everything or (one.partition is None and (partitions is None or bool(partitions)))
            if one.partition is not None and (partitions is None or one.partition in partitions):
                before = touched.get(one.partition, Touch())
                touched[one.partition] = Touch(
                    before.added_rows, before.removed_rows, before.added_deletes + 1
                )  # fmt: skip
        parent = snapshot.parent_id if snapshot.parent_id in self.metadata.snapshots else None
        return replace(describe_commit(snapshot), touched=touched, touches_everything=everything, parent_id=parent)


def describe_commit(snapshot: Snapshot) -> Commit:
    """A commit without what it touched."""
    name, summary = snapshot.summary.get("app-name"), dict(snapshot.summary)
    return Commit(snapshot.snapshot_id, snapshot.operation, snapshot.at_ms, name or "unknown", {}, summary=summary)


def require_snapshot(metadata: Metadata, snapshot_id: str) -> Snapshot:
    """The snapshot; raises ``NotFound`` if it has expired."""
    found = metadata.snapshots.get(snapshot_id)
    if found is None:
        raise NotFound(f"snapshot {snapshot_id} of {metadata.table} is gone")
    return found
