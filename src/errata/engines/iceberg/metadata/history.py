"""Commits to main by partition, and the table at an earlier snapshot. No JVM; reads metadata, opens no data file.

A commit's changes are in the manifests that it wrote itself, so reading a commit costs its own manifests and its
manifest list. The snapshot log and the parent chain prove what main held; a tag proves it where expiry cut both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from errata.engines.iceberg.metadata.bounds import ColumnBounds
from errata.engines.iceberg.metadata.data_files import scan_target
from errata.engines.iceberg.metadata.partition_fields import column_types, find_spec_field
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import NotFound, UsageError
from errata.model.duration import parse_instant
from errata.model.partition import Grain
from errata.model.refs import GUARD, PREFIX
from errata.model.table import (
    Commit,
    Departure,
    History,
    MainSnapshot,
    SchemaField,
    Touch,
    is_first_snapshot,
    map_old_columns,
)
from errata.ports.tables import HistoryReader, MainEntry, PartitionSize, PastTarget
from errata.text.numbers import format_moment

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_ADDED, _REMOVED = 1, 2
_MAX_TAGS_SHOWN = 6


class IcebergHistory:
    """Reads who wrote what to main, and what main held at a snapshot."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

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
        found = self._tables.load(table)
        return _walk_commits(found, since, column, grain, partitions, most, only_deletes=only_deletes)

    def find_commits(self, table: str, snapshots: Collection[str]) -> Mapping[str, Commit]:
        """See the port."""
        known = {str(one.snapshot_id): one for one in self._tables.load(table).metadata.snapshots}
        return {number: _describe_commit(known[number]) for number in snapshots if number in known}

    def left(self, table: str, snapshots: Collection[str]) -> Mapping[str, Departure]:
        """See the port."""
        found = self._tables.load(table)
        line = _main_ancestors(found)
        gone = [snapshot for snapshot in snapshots if int(snapshot) not in line]
        return {snapshot: _find_departure(found, line, int(snapshot)) for snapshot in gone}

    def main_log(self, table: str) -> tuple[MainEntry, ...]:
        """See the port."""
        found = self._tables.load(table)
        there = {snapshot.snapshot_id for snapshot in found.metadata.snapshots}
        return tuple(MainEntry(at, str(number), number in there) for at, number in _list_main_log(found))

    def main_line(self, table: str) -> tuple[MainSnapshot, ...]:
        """See the port."""
        found = self._tables.load(table)
        known = {snapshot.snapshot_id: snapshot for snapshot in found.metadata.snapshots}
        return tuple(_describe_main(found, known[number]) for number in reversed(_main_ancestors(found)))

    def held(self, table: str, column: str, grain: Grain, partitions: Sequence[str], asked: str) -> PastTarget:
        """See the port."""
        found = self._tables.load(table)
        snapshot = _resolve_snapshot(found, table, asked)
        then = found.schemas()[snapshot.schema_id] if snapshot.schema_id is not None else found.schema()
        columns, problems = map_old_columns(_list_fields(then), _list_fields(found.schema()))
        sizes = _measure_partitions(found, snapshot, column, grain, partitions) if not problems else {}
        return PastTarget(
            snapshot_id=str(snapshot.snapshot_id),
            at_ms=snapshot.timestamp_ms,
            partitions=sizes,
            columns=columns,
            problems=problems,
            since=_walk_commits(found, str(snapshot.snapshot_id), column, grain, partitions, None),
        )


def _walk_commits(
    table: Table,
    until: str | None,
    column: str,
    grain: Grain,
    partitions: Sequence[str] | None,
    most: int | None,
    *,
    only_deletes: bool = False,
) -> History:
    """Commits that touched the partitions, from main's head back to a snapshot or to the beginning."""
    wanted = None if partitions is None else frozenset(partitions)
    found: list[Commit] = []
    line: list[str] = []
    current = table.metadata.current_snapshot()
    if current is None:
        return History((), complete=until is None)
    while current is not None and str(current.snapshot_id) != until:
        line.append(str(current.snapshot_id))
        # a commit without delete files is passed by its summary, without a look at its manifests
        is_asked = not only_deletes or _has_deletes(current)
        commit = _build_commit(table, current, column, grain, wanted) if is_asked else None
        if commit is not None and (commit.touched or commit.touches_everything):
            if most is not None and len(found) == most:
                return History(tuple(found), complete=False, line=tuple(line))
            found.append(commit)
        parent = current.parent_snapshot_id
        if parent is None:
            return History(tuple(found), complete=until is None and _is_first(current), line=tuple(line))
        current = table.metadata.snapshot_by_id(parent)
    reached = () if current is None else (str(current.snapshot_id),)
    return History(tuple(found), complete=current is not None, line=(*line, *reached))


def _has_deletes(snapshot: Snapshot) -> bool:
    """Whether a commit added delete files, or may have: some writers count nothing."""
    counts = snapshot.summary.additional_properties if snapshot.summary else {}
    return "added-delete-files" in counts or "total-delete-files" not in counts


def _build_commit(
    table: Table, snapshot: Snapshot, column: str, grain: Grain, partitions: frozenset[str] | None
) -> Commit:
    touched: dict[str, Touch] = {}
    everything = False
    for partition, status, content, rows in _iterate_changes(table, snapshot, column, grain, partitions):
        everything = everything or partition is None
        if partition is not None and (partitions is None or partition in partitions):
            touched[partition] = _add_change(touched.get(partition, Touch()), status, content, rows)
    parent = snapshot.parent_snapshot_id
    return replace(
        _describe_commit(snapshot),
        touched=touched,
        touches_everything=everything,
        parent_id=str(parent) if parent is not None and table.metadata.snapshot_by_id(parent) else None,
    )


def _describe_commit(snapshot: Snapshot) -> Commit:
    summary: dict[str, str] = dict(snapshot.summary.additional_properties) if snapshot.summary else {}
    return Commit(
        snapshot_id=str(snapshot.snapshot_id),
        operation=snapshot.summary.operation.value if snapshot.summary else "unknown",
        at_ms=snapshot.timestamp_ms,
        application=format_application(summary),
        touched={},
        summary=summary,
    )


def _describe_main(table: Table, snapshot: Snapshot) -> MainSnapshot:
    commit = _describe_commit(snapshot)
    told = commit.summary.get("added-data-files", "0")
    # a stream goes by this number, and lists the files only where a writer left it out
    is_uncounted = commit.operation == "append" and "added-data-files" not in commit.summary
    return MainSnapshot(
        commit.snapshot_id,
        commit.operation,
        _count_added_files(table, snapshot) if is_uncounted else int(told),
        commit.summary.get("errata.publication", ""),
    )


def _count_added_files(table: Table, snapshot: Snapshot) -> int:
    own = [one for one in snapshot.manifests(table.io) if one.added_snapshot_id == snapshot.snapshot_id]
    entries = (entry for one in own for entry in one.fetch_manifest_entry(table.io))
    return sum(int(entry.status) == _ADDED and not int(entry.data_file.content or 0) for entry in entries)


def format_application(summary: Mapping[str, str]) -> str:
    """Name and id of the application that wrote, as far as the engine recorded them.

    The name identifies the job, the id its execution.
    """
    name, number = summary.get("app-name"), summary.get("app-id") or summary.get("spark.app.id")
    if name and number and name != number:
        return f"{name} ({number})"
    # a job that says its name to errata.live has no other one where PyIceberg writes
    return name or number or summary.get("errata.live") or summary.get("engine-name") or "unknown"


def _iterate_changes(
    table: Table, snapshot: Snapshot, column: str, grain: Grain, wanted: frozenset[str] | None
) -> Iterator[tuple[str | None, int, int, int]]:
    """(partition, added or removed, content, rows) of every changed file that may be in the wanted partitions.

    The partition is None if neither spec nor bounds determine it.
    """
    bounds = ColumnBounds(table.schema(), column, grain)
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        place = find_spec_field(table.specs()[manifest.partition_spec_id], table.schema(), column, grain)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if entry.status not in (_ADDED, _REMOVED) or entry.snapshot_id != snapshot.snapshot_id:
                continue
            file = entry.data_file
            content = int(file.content or 0)
            # the stored value gives the partition only if it lies within one partition of the product; else the bounds
            if place is not None and place.is_exact:
                name = place.text(file.partition[place.position])
            else:
                name = bounds.only(file) if content == 0 else None
                is_outside = wanted is not None and not bounds.span(file).filter_possible(wanted)
                if name is None and content == 0 and is_outside:
                    continue
            yield name, int(entry.status), content, file.record_count


def _add_change(before: Touch, status: int, content: int, rows: int) -> Touch:
    if content:
        return Touch(before.added_rows, before.removed_rows, before.added_deletes + (status == _ADDED) * rows)
    if status == _ADDED:
        return Touch(before.added_rows + rows, before.removed_rows, before.added_deletes)
    return Touch(before.added_rows, before.removed_rows + rows, before.added_deletes)


def _resolve_snapshot(table: Table, name: str, asked: str) -> Snapshot:
    """The snapshot of main given by a snapshot id, a tag or a time."""
    metadata, text = table.metadata, asked.strip()
    known = _list_main_snapshots(table)
    tags = {tag: ref.snapshot_id for tag, ref in metadata.refs.items() if ref.snapshot_ref_type == "tag"}
    guard = metadata.refs[GUARD].snapshot_id if GUARD in metadata.refs else None
    if text in tags and tags[text] != guard:
        return _require_snapshot(table, tags[text])
    if text in metadata.refs:
        kind = "a fence" if text in tags else "a branch"
        raise _build_restore_error(table, name, asked, f"{text} is {kind}: main never held it")
    if text.isascii() and text.isdecimal() and len(text) < 20:
        number = int(text)
        if number in known or (number in tags.values() and number != guard):
            return _require_snapshot(table, number)
        gone = metadata.snapshot_by_id(number) is None
        raise _build_restore_error(table, name, asked, "it is not there (any more)" if gone else "main never held it")
    try:
        at = parse_instant(text)
    except UsageError:
        raise _build_restore_error(
            table, name, asked, f"{text!r} is no snapshot, tag or time (2026-02-14T03:00Z)"
        ) from None
    then = _find_snapshot_at(table, int(at.timestamp() * 1000))
    if then is None or metadata.snapshot_by_id(then) is None:
        raise _build_restore_error(
            table, name, asked, f"nothing of {format_moment(at.astimezone(UTC).isoformat())} UTC is there any more"
        )
    return _require_snapshot(table, then)


def _find_departure(table: Table, line: Mapping[int, int], number: int) -> Departure:
    """When and for which snapshot main left a snapshot that is not in ``line``, main's ancestry from its head back."""
    metadata = table.metadata
    oldest = metadata.snapshot_by_id(list(line)[-1]) if line else None
    known = metadata.snapshot_by_id(number)
    begins = oldest is None or _is_first(oldest)
    # expiry only cuts the old end of the ancestry, so a newer snapshot that is missing from it has really left main
    is_sure = begins or (known is not None and oldest is not None and known.timestamp_ms > oldest.timestamp_ms)
    log = metadata.snapshot_log
    descended = _find_descendants(table, number)
    last = max((n for n, entry in enumerate(log) if entry.snapshot_id in descended), default=None)
    if last is not None and last + 1 < len(log):
        return Departure(str(log[last + 1].snapshot_id), log[last + 1].timestamp_ms, is_sure)
    own = _walk_parents(table, number)
    shared = [one for one in line if one in own]
    if shared:
        return Departure(str(shared[0]), None, is_sure)
    # replacing a table starts a new log, so its first entry is the time of departure
    return Departure(None, log[0].timestamp_ms if begins and log else None, is_sure)


def _is_first(snapshot: Snapshot) -> bool:
    parent, summary = snapshot.parent_snapshot_id, snapshot.summary
    counts = summary.additional_properties if summary else {}
    return is_first_snapshot(None if parent is None else str(parent), counts)


def _walk_parents(table: Table, number: int) -> dict[int, int]:
    """A snapshot and its ancestors with their times, newest first, as far as expiry left them."""
    known = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    found: dict[int, int] = {}
    current = known.get(number)
    while current is not None:
        found[current.snapshot_id] = current.timestamp_ms
        current = known.get(current.parent_snapshot_id) if current.parent_snapshot_id is not None else None
    return found


def _find_descendants(table: Table, number: int) -> frozenset[int]:
    """A snapshot and everything that was committed on top of it."""
    found = {number}
    for snapshot in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0):
        if snapshot.parent_snapshot_id in found:
            found.add(snapshot.snapshot_id)
    return frozenset(found)


def _require_snapshot(table: Table, number: int) -> Snapshot:
    found = table.metadata.snapshot_by_id(number)
    if found is None:
        raise NotFound(f"snapshot {number} is named in the table's metadata and is not in it")
    return found


def _find_snapshot_at(table: Table, at_ms: int) -> int | None:
    """The snapshot that main held at a time."""
    held = [number for at, number in _list_main_log(table) if at <= at_ms]
    return held[-1] if held else None  # last of a millisecond: some writers delete, then append


def _list_main_log(table: Table) -> list[tuple[int, int]]:
    """(time, snapshot) of every change of main, oldest first; a snapshot is there again if main was set back to it."""
    log = [(entry.timestamp_ms, entry.snapshot_id) for entry in table.metadata.snapshot_log]
    # ancestors missing from the log were committed to a branch, unless they are older than the log itself
    older = [(at, number) for number, at in _main_ancestors(table).items() if not log or at < log[0][0]]
    return sorted((*older, *log), key=lambda entry: entry[0])


def _main_ancestors(table: Table) -> dict[int, int]:
    head = table.metadata.current_snapshot_id
    return _walk_parents(table, head) if head is not None else {}


def _list_main_snapshots(table: Table) -> dict[int, int]:
    """Every existing snapshot that main is known to have held, with the time it became current; oldest first."""
    metadata = table.metadata
    found = _main_ancestors(table) | {
        entry.snapshot_id: entry.timestamp_ms for entry in reversed(metadata.snapshot_log)
    }
    there = {number: at for number, at in found.items() if metadata.snapshot_by_id(number) is not None}
    return dict(sorted(there.items(), key=lambda item: item[1]))


def _build_restore_error(table: Table, name: str, asked: str, why: str) -> NotFound:
    known = _list_main_snapshots(table)
    told = "it has no snapshot"
    if known:
        (first, at), (last, until) = next(iter(known.items())), list(known.items())[-1]
        told = f"main is known from {_format_time(at)} (snapshot {first}) to {_format_time(until)} (snapshot {last})"
    tags = [tag for tag, ref in table.metadata.refs.items() if ref.snapshot_ref_type == "tag"]
    own = sorted(tag for tag in tags if not tag.startswith(PREFIX))
    more = f" and {len(own) - _MAX_TAGS_SHOWN} more" if len(own) > _MAX_TAGS_SHOWN else ""
    return NotFound(
        f"--restore {asked} was refused; {why}; {name}: {told}; tags: "
        f"{', '.join(own[:_MAX_TAGS_SHOWN]) or 'none'}{more}",
        state="nothing was planned; no table was touched",
        hint=f"errata history {name} PARTITION",
        table=name,
    )


def _format_time(at_ms: int) -> str:
    return f"{format_moment(datetime.fromtimestamp(at_ms / 1000, UTC).isoformat())} UTC"


def _measure_partitions(
    table: Table, snapshot: Snapshot, column: str, grain: Grain, partitions: Sequence[str]
) -> dict[str, PartitionSize]:
    live = scan_target(table, snapshot, column, grain, partitions)
    return {
        name: PartitionSize(size.rows, size.bytes, size.files, live.fingerprints[name])
        for name in partitions
        if (size := live.totals.get(name)) is not None
    }


def _list_fields(schema: Schema) -> list[SchemaField]:
    types = column_types(schema)
    return [
        SchemaField(
            field.field_id,
            field.name,
            types[field.name],
            field.required,
            getattr(field, "initial_default", None) is not None,
        )
        for field in schema.fields
    ]


_conforms: type[HistoryReader] = IcebergHistory
