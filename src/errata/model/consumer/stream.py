"""How far a stream has read a table, what a publication does to it, and how its checkpoint is repaired. Pure.

Spark reads the appends of main one after the other, passes compactions, and fails on a snapshot that removes rows
unless an option tells it to pass all of them. It plans ahead, so that it fails before it reads the appends that lie
between its position and that snapshot. With ``Trigger.AvailableNow`` it plans from where the query first began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from errata.errors import EngineError
from errata.model.consumer.checkpoint import Batch, Checkpoint, Offset, name_checksum, parse_checkpoint, parse_offset
from errata.model.table import MainSnapshot

APPEND, OVERWRITE, DELETE, COMPACTION = "append", "overwrite", "delete", "replace"
OPTIONS = {
    OVERWRITE: "streaming-skip-overwrite-snapshots",
    DELETE: "streaming-skip-delete-snapshots",
}
"""Option of a reader that passes snapshots of this operation."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far a stream has read a table."""

    source: int  # the number of the source that reads the table
    offset: Offset
    batch: Batch
    at: int  # index of the snapshot in main's line


@dataclass(frozen=True, slots=True)
class RepairProof:
    """Where the repaired reader continues, and what lies between that and where it stopped."""

    before: Offset
    before_batch: int
    after: Offset
    after_batch: int
    passed: tuple[str, ...]  # snapshots that the reader does not see
    files_missed: int
    files_read_twice: int


@dataclass(frozen=True, slots=True)
class Repair:
    """One start of the reader on a copy of its checkpoint.

    ``finish``: the copy as it is, so that the batch that was begun is done. ``catch_up``: one batch with the appends
    before the publication. ``jump``: continues at the first append after it. After the first two the reader fails on
    the publication again, and the next repair starts from that copy.
    """

    kind: str  # finish | catch_up | jump
    batch: int  # the batch that ends this repair once it is committed
    changes: Mapping[str, bytes] = field(repr=False)
    passed: tuple[MainSnapshot, ...] = ()

    def apply(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files of the copy; a checksum that no longer fits would stop the reader."""
        stale = {name_checksum(name) for name in self.changes}
        return {name: content for name, content in files.items() if name not in stale} | dict(self.changes)


@dataclass(frozen=True, slots=True)
class NoRepair:
    """Nothing has to be repaired."""

    why: str


@dataclass(frozen=True, slots=True)
class RepairLater:
    """The repair needs something that is not there yet."""

    why: str


def find_position(checkpoint: Checkpoint, table: str, line: Sequence[MainSnapshot]) -> StreamPosition:
    """The position in a table; raises ``EngineError`` if the checkpoint does not tell it.

    A source is recognised by its snapshot, because a checkpoint does not name tables.
    """
    last = checkpoint.last
    if last is None:
        raise _build_error(checkpoint, "the query has not begun a batch yet")
    offsets = {n: found for n, text in enumerate(last.sources) if (found := parse_offset(text))}
    index = {one.snapshot_id: n for n, one in enumerate(line)}
    here = [n for n, offset in offsets.items() if offset.snapshot_id in index]
    if len(here) == 1:
        return StreamPosition(here[0], offsets[here[0]], last, index[offsets[here[0]].snapshot_id])
    if here:
        raise _build_error(checkpoint, f"sources {', '.join(map(str, here))} all read {table}")
    if not offsets:
        raise _build_error(checkpoint, "none of its sources is a table of Iceberg")
    told = ", ".join(offset.snapshot_id for offset in offsets.values())
    why = "the snapshot has expired, main was set back, or the query reads another table"
    raise _build_error(checkpoint, f"its position, snapshot {told}, is not on main of {table}: {why}")


def list_blockers(line: Iterable[MainSnapshot]) -> tuple[MainSnapshot, ...]:
    """Snapshots at which a reader without options fails."""
    return tuple(one for one in line if one.operation not in (APPEND, COMPACTION))


def list_unread(position: StreamPosition, line: Sequence[MainSnapshot]) -> tuple[MainSnapshot, ...]:
    """Appends between the position and the first snapshot at which the reader fails, or the end."""
    here, ahead = line[position.at], line[position.at + 1 :]
    until = next((n for n, one in enumerate(ahead) if list_blockers([one])), len(ahead))
    is_half_read = here.operation == APPEND and position.offset.position < here.added_files
    return (*([here] if is_half_read else []), *(one for one in ahead[:until] if _adds_rows(one)))


def proves_option(checkpoint: Checkpoint, position: StreamPosition, line: Sequence[MainSnapshot], option: str) -> str:
    """A snapshot of this operation that the reader passed between two batches; empty if there is none.

    A batch that ends at position 0 is one of Errata's, which passes a snapshot without the option.
    """
    index = {one.snapshot_id: n for n, one in enumerate(line)}
    done = [one for one in checkpoint.batches if one.is_committed]
    for earlier, later in pairwise(done):
        start, end = (parse_offset(one.sources[position.source]) for one in (earlier, later))
        if start is None or end is None or end.position == 0 or {start.snapshot_id, end.snapshot_id} - index.keys():
            continue
        between = line[index[start.snapshot_id] + 1 : index[end.snapshot_id]]
        if found := next((one for one in between if one.operation == option), None):
            return found.snapshot_id
    return ""


def fails_when_available_now(
    checkpoint: Checkpoint, position: StreamPosition, line: Sequence[MainSnapshot]
) -> MainSnapshot | None:
    """The snapshot on which the reader would fail with ``Trigger.AvailableNow``, although it has passed it."""
    first = checkpoint.first_offsets.get(position.source)
    index = {one.snapshot_id: n for n, one in enumerate(line)}
    if first is None or first.snapshot_id not in index:
        return None
    return next(iter(list_blockers(line[index[first.snapshot_id] + 1 : position.at + 1])), None)


def plan_repair(
    checkpoint: Checkpoint, table: str, line: Sequence[MainSnapshot], own: Collection[str]
) -> Repair | RepairLater | NoRepair:
    """The next start of the reader that brings it past the publications ahead of it.

    ``own`` are publications of this ledger; other snapshots that remove rows are never passed. Raises ``EngineError``
    if the checkpoint cannot be repaired.
    """
    require_stateless(checkpoint)
    position = find_position(checkpoint, table, line)
    ahead = line[position.at + 1 :]
    blockers = list_blockers(ahead)
    if not blockers:
        return NoRepair("nothing that stops it lies ahead of its position")
    _require_own(checkpoint, table, blockers, own)
    _require_append(checkpoint, position, line[position.at])
    beyond = ahead[ahead.index(blockers[-1]) + 1 :]
    anchor = next((one for one in beyond if _adds_rows(one)), None)
    if anchor is None:
        return RepairLater("no rows were appended after the publication yet; the reader can only continue at an append")
    # with Trigger.AvailableNow every start plans from here on, also the ones before the last
    first = _set_first_offset(position, anchor)
    if not position.batch.is_committed:
        return Repair("finish", position.batch.n, first)
    unread = list_unread(position, line)
    if unread:
        end = Offset(unread[-1].snapshot_id, unread[-1].added_files)
        return Repair("catch_up", position.batch.n + 1, first | _add_batch(position, end))
    passed = ahead[ahead.index(blockers[0]) :]
    resume = next(n for n, one in enumerate(passed) if _adds_rows(one))
    offset = Offset(passed[resume].snapshot_id, 0)
    commit = checkpoint.files[f"commits/{position.batch.n}"]
    changes = first | _add_batch(position, offset) | {f"commits/{position.batch.n + 1}": commit}
    # the reader is past it once it has done a batch of its own
    return Repair("jump", position.batch.n + 2, changes, list_blockers(passed[:resume]))


def prove_repair(
    checkpoint: Checkpoint,
    repair: Repair,
    location: str,
    table: str,
    line: Sequence[MainSnapshot],
    *,
    made: Checkpoint | None = None,
) -> RepairProof:
    """Read the copy as Spark will, and count what it would miss or read twice; raises ``EngineError`` unless nothing.

    ``made`` is the copy as it was written; without it, as it would be. A batch that has to be done is read by the
    reader itself, so that it counts as read.
    """
    copy = made or parse_checkpoint(location, repair.apply(checkpoint.files))
    if made is not None and made.files != repair.apply(checkpoint.files):
        raise _build_error(checkpoint, f"its copy {location} is not what was written")
    before, after = find_position(checkpoint, table, line), find_position(copy, table, line)
    is_jump = repair.kind == "jump"
    missed = count_files(line, before, after) if is_jump else 0
    twice = count_files(line, after, before)
    proof = RepairProof(
        before=before.offset,
        before_batch=before.batch.n,
        after=after.offset,
        after_batch=after.batch.n,
        passed=tuple(one.snapshot_id for one in list_blockers(line[before.at + 1 : after.at])) if is_jump else (),
        files_missed=missed,
        files_read_twice=twice,
    )
    if missed or twice:
        raise _build_error(checkpoint, f"the repair would miss {missed} files and read {twice} twice; it was not made")
    return proof


def count_files(line: Sequence[MainSnapshot], start: StreamPosition, end: StreamPosition) -> int:
    """Files of appends between two positions; 0 if the second one comes first."""
    if (end.at, end.offset.position) <= (start.at, start.offset.position):
        return 0
    appends = [replace(one, added_files=0) if one.operation != APPEND else one for one in line]
    whole = sum(one.added_files for one in appends[start.at : end.at])
    return whole - _count_read(appends, start) + _count_read(appends, end)


def require_stateless(checkpoint: Checkpoint) -> None:
    """Refuse a query that keeps state: its state and its position would no longer agree."""
    if checkpoint.is_stateful:
        raise _build_error(
            checkpoint, "the query keeps state (aggregation, join or deduplication), which cannot be moved"
        )


def _count_read(line: Sequence[MainSnapshot], position: StreamPosition) -> int:
    return min(max(position.offset.position, 0), line[position.at].added_files)


def _adds_rows(snapshot: MainSnapshot) -> bool:
    # an append without files would leave the reader where it is
    return snapshot.operation == APPEND and snapshot.added_files > 0


def _add_batch(position: StreamPosition, offset: Offset) -> dict[str, bytes]:
    """One more entry, with the other sources where they were."""
    sources = list(position.batch.sources)
    sources[position.source] = offset.to_json()
    added = replace(position.batch, n=position.batch.n + 1, sources=tuple(sources))
    return {f"offsets/{added.n}": added.to_bytes()}


def _set_first_offset(position: StreamPosition, anchor: MainSnapshot) -> dict[str, bytes]:
    return {f"sources/{position.source}/offsets/0": Offset(anchor.snapshot_id, 0).to_json().encode()}


def _require_own(checkpoint: Checkpoint, table: str, blockers: Sequence[MainSnapshot], own: Collection[str]) -> None:
    """Refuse to pass what others removed: nobody handed those partitions to the reader."""
    if foreign := next((one for one in blockers if one.publication not in own), None):
        raise _build_error(
            checkpoint,
            f"snapshot {foreign.snapshot_id} of {table} ({foreign.operation}) stops the reader too, and Errata did not "
            "write it",
        )


def _require_append(checkpoint: Checkpoint, position: StreamPosition, snapshot: MainSnapshot) -> None:
    if list_blockers([snapshot]):
        raise _build_error(checkpoint, f"its position, snapshot {snapshot.snapshot_id}, is one that removes rows")
    if position.offset.scan_all_files:
        raise _build_error(checkpoint, "it reads all files of its first snapshot and has not read further")


def _build_error(checkpoint: Checkpoint, why: str) -> EngineError:
    return EngineError(f"checkpoint {checkpoint.location} cannot be used: {why}")
