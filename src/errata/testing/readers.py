"""Read targets, inputs, descriptions and differences from tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from errata.canonical import digest_of
from errata.errors import UsageError
from errata.model.diff import OutsideScope
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.near_miss import NearMiss
from errata.model.partition import NULL, Grain, name_partition
from errata.model.product import Input
from errata.model.table import DataFile, group_by_partition
from errata.ports.tables import (
    Arrival,
    Column,
    InputReader,
    InputState,
    OutsideReader,
    PartitionField,
    PartitionSize,
    TableDescription,
    TableReader,
    TargetReader,
    TargetState,
)
from errata.testing.lake import Lake
from errata.testing.metadata import Metadata, Schema, Snapshot
from errata.testing.row_values import stored_grain
from errata.testing.scope import DELETES, Scope

_TIMES = ("date", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class MemoryReaders:
    """Targets, inputs and descriptions of tables in memory."""

    lake: Lake

    def describe(self, table: str) -> TableDescription:
        """See the port."""
        found = self.lake.table(table).metadata
        return TableDescription(
            table=table,
            table_uuid=found.table_uuid,
            columns=list_columns(found.schema),
            partition_fields=list_partition_fields(found),
            snapshot_id=found.head.snapshot_id if found.head else None,
            format_version=found.format_version,
            properties=found.properties,
        )

    def read_target(self, table: str, column: str, grain: Grain, partitions: Sequence[str] | None) -> TargetState:
        """See the port."""
        found = self.lake.table(table).metadata
        head, scope = found.head, Scope.of_column(found, column, grain)
        partitions = list(measure_partitions(scope, head)) if partitions is None else partitions
        fields = list_partition_fields(found)
        expected = list_expected(scope, head, partitions)
        shared = [file for file in scope.files(head, partitions) if file.partition is None]
        return TargetState(
            table=table,
            table_uuid=found.table_uuid,
            base_snapshot_id=head.snapshot_id if head else None,
            base_timestamp_ms=head.at_ms if head else None,
            schema_id=found.schema.schema_id,
            spec_id=found.spec.spec_id,
            format_version=found.format_version,
            columns=list_columns(found.schema),
            partition_fields=fields,
            partition_field=next((one for one in fields if one.column == column and one.grain is grain), None),
            partitions=measure_partitions(scope, head),
            expected=expected,
            fingerprints={name: fingerprint_files(files) for name, files in expected.items()},
            shared_files=tuple(sorted(file.path for file in shared)),
            shared_rows=sum(file.rows for file in shared),
            shared_bytes=sum(file.bytes for file in shared),
            properties=found.properties,
            refs={name: ref.snapshot_id for name, ref in found.refs.items()},
            last_column_id=found.last_column_id,
            writers={name: list_writers(head, files) for name, files in expected.items()},
        )

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """See the port."""
        if source.table is None:
            raise UsageError(f"input {source.name} names no table")
        found = self.lake.table(source.table).metadata
        tagged = found.refs.get(source.version or "")
        problem = None
        if source.version and (tagged is None or tagged.is_branch):
            problem = f"input {source.name}: {source.table} has no tag {source.version}"
        snapshot = found.snapshots[tagged.snapshot_id] if tagged else None if source.version else found.head
        if source.snapshot_id is not None:
            snapshot = found.snapshots.get(source.snapshot_id)
            gone = f"input {source.name}: snapshot {source.snapshot_id} of {source.table} is gone"
            problem = None if snapshot else gone
        kinds = {one.name: one.type for one in found.schema.fields}
        if source.partition is not None and source.partition not in kinds:
            problem = f"input {source.name}: {source.table} has no column {source.partition}"
        rule, arrival = source.complete, None
        if rule is not None and rule.watermark is not None:
            why = None if kinds.get(rule.watermark) in _TIMES else f"{source.table} has no time {rule.watermark}"
            problem = f"input {source.name}: {why}" if why else problem
            arrival = None if why else _find_newest_value(found, snapshot, rule.watermark, rule.latest_ms)
        elif rule is not None:
            hidden = bool(snapshot and snapshot.deletes)
            arrival = Arrival(uncounted=frozenset(partitions if hidden else ()))
        sizes: Mapping[str, PartitionSize] = {}
        whole = None
        if source.partition is None or problem:
            whole = measure_whole(snapshot)
        else:
            sizes = measure_partitions(Scope.of_column(found, source.partition, grain), snapshot)
        named = [name for name in sizes if name != NULL]
        return InputState(
            name=source.name,
            kind="table",
            location=source.table,
            column_type=kinds.get(source.partition or ""),
            partitions={name: sizes[name] for name in partitions if name in sizes},
            whole=whole,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            table_uuid=found.table_uuid,
            newest_ms=snapshot.at_ms if snapshot else None,
            oldest=min(named, default=None) if grain.is_time else None,
            problem=problem,
            schemas=(kinds,) if source.needs_schema else (),
            arrival=arrival,
        )

    def read_announced(self, source: Input, grain: Grain, partitions: Sequence[str]) -> Mapping[str, int]:
        """Rows that the partitions of an input should have, by the table that its product names."""
        if source.complete is None or source.partition is None:
            return {}
        name, column = source.complete.announcing_table
        found: dict[str, int] = {}
        for row in self.lake.table(name).rows():
            place = name_partition(row[source.partition], grain)
            if place in partitions and row[column] is not None:
                found[place] = found.get(place, 0) + int(row[column])
        return found

    def find_near_miss(self, _source: Input) -> NearMiss | None:
        """See the port."""
        return None


@dataclass(frozen=True, slots=True)
class MemoryOutside:
    """Compares what lies outside a scope, file by file."""

    lake: Lake

    def outside(
        self, target: TargetPin, before: str | None, after: str | None, partitions: Sequence[str]
    ) -> OutsideScope | None:
        """See the port."""
        found = self.lake.table(target.table).metadata
        old, new = (found.snapshots.get(one or "") for one in (before, after))
        if new is None or (before is not None and old is None):
            return None
        scope = Scope.of_pin(found, target)
        sides = [_group_paths(scope, one) for one in (old, new)]
        names = (sides[0].keys() | sides[1].keys()) - set(partitions)
        return OutsideScope(len(names), tuple(sorted(one for one in names if sides[0].get(one) != sides[1].get(one))))


def _find_newest_value(metadata: Metadata, snapshot: Snapshot | None, column: str, latest_ms: int | None) -> Arrival:
    """The newest value of a column, file by file: like bounds in metadata, it does not see deletes."""
    number = metadata.schema.find(column).field_id
    newest, ignored = None, list[str]()
    for file in snapshot.files.values() if snapshot else ():
        held = [_to_ms(row[number]) for row in file.rows if row.get(number) is not None]
        if held and latest_ms is not None and max(held) > latest_ms:
            ignored.append(f"{max(held)} ms in {file.path}")
        elif held:
            newest = max(held) if newest is None else max(newest, *held)
    return Arrival(watermark_ms=newest, ignored=tuple(sorted(ignored)))


def _to_ms(value: date) -> int:
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)


def _group_paths(scope: Scope, snapshot: Snapshot | None) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in snapshot.files.values() if snapshot else ():
        found.setdefault(scope.only(file) or "files without a partition of this grain", set()).add(file.path)
    return found


def list_columns(schema: Schema) -> tuple[Column, ...]:
    """The columns of a schema, as ports show them."""
    return tuple(Column(one.name, one.type, one.required) for one in schema.fields)


def list_partition_fields(metadata: Metadata) -> tuple[PartitionField, ...]:
    """The fields of the current spec; none for a table without partitions."""
    found = [one for one in metadata.schema.fields if one.field_id == metadata.spec.source]
    transform = metadata.spec.transform
    return tuple(PartitionField(one.name, one.type, transform, stored_grain(transform, one.type)) for one in found)


def list_expected(
    scope: Scope, snapshot: Snapshot | None, partitions: Sequence[str]
) -> dict[str, tuple[ExpectedFile, ...]]:
    """Live data and delete files of each partition."""
    return group_by_partition(scope.files(snapshot, partitions), partitions)


def list_writers(snapshot: Snapshot | None, files: Sequence[ExpectedFile]) -> tuple[str, ...]:
    """The commits that added these files."""
    if snapshot is None:
        return ()
    added = {path: one.snapshot_id for path, one in snapshot.files.items()}
    added |= {path: one.snapshot_id for path, one in snapshot.deletes.items()}
    return tuple(sorted({added[file.path] for file in files}))


def fingerprint_files(files: Sequence[ExpectedFile]) -> str:
    """Digest of a partition's files, as plans hold it."""
    return digest_of(sorted([file.path, file.rows] for file in files))


def measure_partitions(scope: Scope, snapshot: Snapshot | None) -> dict[str, PartitionSize]:
    """Size and fingerprint of every partition; a file that several share counts for each with its own rows."""
    found: dict[str, list[DataFile]] = {}
    for file in snapshot.files.values() if snapshot else ():
        for name in {scope.partition_of(row) for row in file.rows}:
            rows = sum(scope.partition_of(row) == name for row in file.rows)
            deletes = tuple(ExpectedFile(one.path, 1, DELETES) for one in snapshot.deletes_of(file)) if snapshot else ()
            found.setdefault(name, []).append(DataFile(file.path, rows, 100 * rows, name, deletes))
    return {
        name: PartitionSize(
            sum(file.rows for file in files), sum(file.bytes for file in files), len(files), _fingerprint(files)
        )
        for name, files in found.items()
    }


def _fingerprint(files: Sequence[DataFile]) -> str:
    """Digest of data files and of the delete files that apply to them."""
    deletes = {(one.path, one.rows) for file in files for one in file.deletes}
    return digest_of(sorted([[file.path, file.rows] for file in files] + [list(one) for one in deletes]))


def measure_whole(snapshot: Snapshot | None) -> PartitionSize:
    """Size and fingerprint of a whole table."""
    files = list(snapshot.files.values()) if snapshot else []
    deletes = [[path, 1] for path in (snapshot.deletes if snapshot else {})]
    print_ = digest_of(sorted([[file.path, len(file.rows)] for file in files] + deletes))
    return PartitionSize(sum(len(one.rows) for one in files), sum(one.size for one in files), len(files), print_)


_target: type[TargetReader] = MemoryReaders
_input: type[InputReader] = MemoryReaders
_table: type[TableReader] = MemoryReaders
_outside: type[OutsideReader] = MemoryOutside
