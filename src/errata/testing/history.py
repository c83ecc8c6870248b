"""Read the commits of main from tables in memory, and what main held at an earlier time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from errata.errors import NotFound, UsageError
from errata.model.duration import parse_instant
from errata.model.partition import Grain
from errata.model.refs import GUARD
from errata.model.table import Commit, Departure, History, MainSnapshot, SchemaField, map_old_columns
from errata.ports.tables import HistoryReader, MainEntry, PastTarget
from errata.testing.lake import Lake
from errata.testing.metadata import Metadata, Schema, Snapshot
from errata.testing.readers import measure_partitions
from errata.testing.scope import Scope, describe_commit, require_snapshot


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """Who wrote what to main."""

    lake: Lake

    def commits(
        self,
        table: str,
        column: str,
        grain: Grain,
        partitions: Sequence[str] | None,
        most: int | None = None,
        since: str | None = None,
        *,
        only_deletes: bool = False,
    ) -> History:
        """See the port."""
        found = self.lake.table(table).metadata
        return walk_commits(Scope.of_column(found, column, grain), since, partitions, most, only_deletes=only_deletes)

    def find_commits(self, table: str, snapshots: Collection[str]) -> Mapping[str, Commit]:
        """See the port."""
        metadata = self.lake.table(table).metadata
        known = {number: metadata.snapshots[number] for number in snapshots if number in metadata.snapshots}
        return {number: describe_commit(one) for number, one in known.items()}

    def left(self, table: str, snapshots: Collection[str]) -> Mapping[str, Departure]:
        """See the port."""
        found = self.lake.table(table).metadata
        line = found.line(found.head.snapshot_id if found.head else None)
        held = {one.snapshot_id for one in line}
        return {name: _find_departure(found, line, name) for name in snapshots if name not in held}

    def main_log(self, table: str) -> tuple[MainEntry, ...]:
        """See the port."""
        found = self.lake.table(table).metadata
        return tuple(MainEntry(at, snapshot, snapshot in found.snapshots) for at, snapshot in found.log)

    def main_line(self, table: str) -> tuple[MainSnapshot, ...]:
        """See the port."""
        found = self.lake.table(table).metadata
        return tuple(
            MainSnapshot(
                one.snapshot_id,
                one.operation,
                len(one.added),
                describe_commit(one).summary.get("errata.publication", ""),
            )
            for one in reversed(found.line(found.head.snapshot_id if found.head else None))
        )

    def held(self, table: str, column: str, grain: Grain, partitions: Sequence[str], asked: str) -> PastTarget:
        """See the port."""
        found = self.lake.table(table).metadata
        snapshot = _resolve_snapshot(found, asked)
        columns, problems = map_old_columns(_list_fields(found.schema_of(snapshot)), _list_fields(found.schema))
        scope = Scope.of_column(found, column, grain)
        sizes = measure_partitions(scope, snapshot) if not problems else {}
        return PastTarget(
            snapshot_id=snapshot.snapshot_id,
            at_ms=snapshot.at_ms,
            partitions={name: sizes[name] for name in partitions if name in sizes},
            columns=columns,
            problems=problems,
            since=walk_commits(scope, snapshot.snapshot_id, partitions, None),
        )


def walk_commits(
    scope: Scope,
    until: str | None,
    partitions: Sequence[str] | None,
    most: int | None,
    *,
    only_deletes: bool = False,
) -> History:
    """Commits that touched the partitions, from main's head back to a snapshot or to the beginning."""
    metadata = scope.metadata
    line = metadata.line(metadata.head.snapshot_id if metadata.head else None)
    if not line:
        return History((), complete=until is None)
    found = list[Commit]()
    passed = list[str]()
    for snapshot in line:
        passed.append(snapshot.snapshot_id)
        if snapshot.snapshot_id == until:
            return History(tuple(found), complete=True, line=tuple(passed))
        commit = scope.commit(snapshot, partitions)
        is_asked = bool(snapshot.added_deletes) or not only_deletes
        if is_asked and (commit.touched or commit.touches_everything):
            if most is not None and len(found) == most:
                return History(tuple(found), complete=False, line=tuple(passed))
            found.append(commit)
    return History(tuple(found), complete=until is None and line[-1].is_first, line=tuple(passed))


def _find_departure(metadata: Metadata, line: Sequence[Snapshot], number: str) -> Departure:
    oldest, known = (line[-1] if line else None), metadata.snapshots.get(number)
    begins = oldest is None or oldest.is_first
    # expiry only cuts the old end of the ancestry, so a newer snapshot that is missing from it has really left main
    is_sure = begins or (known is not None and oldest is not None and known.at_ms > oldest.at_ms)
    descended = {number}
    for one in sorted(metadata.snapshots.values(), key=lambda each: each.sequence):
        descended |= {one.snapshot_id} if one.parent_id in descended else set()
    last = max((n for n, (_, snapshot) in enumerate(metadata.log) if snapshot in descended), default=None)
    if last is not None and last + 1 < len(metadata.log):
        at, snapshot = metadata.log[last + 1]
        return Departure(snapshot, at, is_sure)
    own = {one.snapshot_id for one in metadata.line(number)}
    shared = [one.snapshot_id for one in line if one.snapshot_id in own]
    if shared:
        return Departure(shared[0], None, is_sure)
    return Departure(None, metadata.log[0][0] if begins and metadata.log else None, is_sure)


def _resolve_snapshot(metadata: Metadata, asked: str) -> Snapshot:
    """The snapshot of main given by a snapshot id, a tag or a time."""
    text = asked.strip()
    guard = metadata.refs[GUARD].snapshot_id if GUARD in metadata.refs else None
    ref = metadata.refs.get(text)
    if ref is not None and not ref.is_branch and ref.snapshot_id != guard:
        return require_snapshot(metadata, ref.snapshot_id)
    if ref is not None:
        raise _refuse(metadata, asked, f"{text} is {'a branch' if ref.is_branch else 'a fence'}: main never held it")
    held = {one.snapshot_id for one in metadata.line(metadata.head.snapshot_id if metadata.head else None)}
    held |= {snapshot for _, snapshot in metadata.log}
    held |= {one.snapshot_id for one in metadata.refs.values() if not one.is_branch and one.snapshot_id != guard}
    if text.isascii() and text.isdecimal():
        if text in held and text in metadata.snapshots:
            return metadata.snapshots[text]
        gone = text not in metadata.snapshots
        raise _refuse(metadata, asked, "it is not there (any more)" if gone else "main never held it")
    try:
        at_ms = int(parse_instant(text).timestamp() * 1000)
    except UsageError:
        raise _refuse(metadata, asked, f"{text!r} is no snapshot, tag or time (2026-02-14T03:00Z)") from None
    then = [snapshot for at, snapshot in metadata.log if at <= at_ms]
    if not then or then[-1] not in metadata.snapshots:
        raise _refuse(metadata, asked, "nothing of that time is there any more")
    return metadata.snapshots[then[-1]]


def _refuse(metadata: Metadata, asked: str, why: str) -> NotFound:
    return NotFound(
        f"--restore {asked} was refused; {why}",
        state="nothing was planned; no table was touched",
        hint=f"errata history {metadata.table} PARTITION",
        table=metadata.table,
    )


def _list_fields(schema: Schema) -> list[SchemaField]:
    return [
        SchemaField(one.field_id, one.name, one.type, one.required, one.default is not None) for one in schema.fields
    ]


_conforms: type[HistoryReader] = MemoryHistory
