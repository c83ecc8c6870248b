"""A table in memory with Iceberg's rules for commits, and what a live pipeline does to it.

A metadata version never changes; a commit makes the next one. It lands if every branch and tag that it changes is where
its writer saw it and no other snapshot was added since, which is what an Iceberg REST catalog asserts; nothing else
protects the table. Rows are held by field id, so that renamed, dropped and added columns read as they do in Iceberg.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from errata.canonical import sha256
from errata.model.partition import name_partition
from errata.testing.metadata import (
    MAIN,
    DataFile,
    DeleteFile,
    Field,
    Metadata,
    Ref,
    Schema,
    Snapshot,
    Spec,
    Stored,
)
from errata.testing.row_values import Row, parse_value

_TRIES = 8
T = TypeVar("T")


class CommitFailed(RuntimeError):
    """The catalog compared and did not swap; nothing was changed."""


class Draft:
    """A commit in the making, on the metadata version that its writer saw."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self.seen = self.made = table.metadata

    def set_ref(self, name: str, snapshot_id: str, *, is_branch: bool = False, age_ms: int | None = None,
                snapshot_age_ms: int | None = None) -> None:  # fmt: skip
        """Create or move a branch or tag."""
        self._refs({**self.made.refs, name: Ref(snapshot_id, is_branch, age_ms, snapshot_age_ms)})

    def keep_ref(self, name: str, age_ms: int) -> None:
        """Extend a ref's life; the commit then also asserts that it is where it was seen."""
        self._refs({**self.made.refs, name: replace(self.made.refs[name], age_ms=age_ms)})

    def drop_ref(self, name: str) -> None:
        """Remove a branch or tag."""
        self._refs({ref: at for ref, at in self.made.refs.items() if ref != name})

    def _refs(self, refs: Mapping[str, Ref]) -> None:
        self.made = replace(self.made, refs=refs)

    def add_snapshot(
        self,
        branch: str | None,
        operation: str,
        *,
        add: Iterable[DataFile] = (),
        remove: Collection[str] = (),
        deletes: Iterable[DeleteFile] = (),
        drop_deletes: Collection[str] = (),
        summary: Mapping[str, str] | None = None,
        parent: Snapshot | None = None,
    ) -> Snapshot:
        """A snapshot on top of a branch, or of ``parent``; without a branch, no ref points at it yet."""
        held = self.made.refs.get(branch or "")
        before = self.made.snapshots[held.snapshot_id] if held else parent
        number, sequence = self._table.next_id(), self.made.last_sequence + 1
        new = [replace(file, sequence=sequence, snapshot_id=number) for file in add]
        files = {path: file for path, file in (before.files if before else {}).items() if path not in remove}
        kept = {path: one for path, one in (before.deletes if before else {}).items() if path not in drop_deletes}
        made = Snapshot(
            number, before.snapshot_id if before else None, sequence, self._now(before), operation,
            self.made.schema.schema_id, dict(summary or {}), {**files, **{file.path: file for file in new}},
            {**kept, **{one.path: replace(one, sequence=sequence, snapshot_id=number) for one in deletes}},
            tuple(file for path, file in (before.files if before else {}).items() if path in remove),
        )  # fmt: skip
        self.made = replace(self.made, snapshots={**self.made.snapshots, number: made}, last_sequence=sequence)
        if branch is not None:
            old = self.made.refs.get(branch, Ref(number, is_branch=True))
            self._refs({**self.made.refs, branch: replace(old, snapshot_id=number)})
        return made

    def _now(self, before: Snapshot | None) -> int:
        # the timestamps of a line never go back, whatever the clock does
        return max(self._table.now_ms(), before.at_ms if before else 0)

    def change_schema(self, fields: Sequence[Field]) -> None:
        """A new schema; columns without a field id get the next ones."""
        last, given = self.made.last_column_id, list[Field]()
        for one in fields:
            last += not one.field_id
            given.append(one if one.field_id else replace(one, field_id=last))
        schema = Schema(max(one.schema_id for one in self.made.schemas) + 1, tuple(given))
        self.made = replace(self.made, schemas=(*self.made.schemas, schema), last_column_id=last)

    def forget(self, snapshots: Collection[str], *, clear_parents: bool = False) -> None:
        """Remove snapshots that no ref points at; those that they led to keep a parent that is gone, or lose it."""
        kept = {name: one for name, one in self.made.snapshots.items() if name not in snapshots}
        if clear_parents:
            orphans = [name for name, one in kept.items() if one.parent_id in snapshots]
            kept |= {name: replace(kept[name], parent_id=None) for name in orphans}
        self.made = replace(self.made, snapshots=kept)

    def swap(self) -> None:
        """Make it the table's next version, or raise ``CommitFailed``."""
        self._table.swap(self.seen, self.made)


@dataclass
class MemoryTable:
    """One table: its current version, and what live jobs and maintenance do to it."""

    metadata: Metadata
    now_ms: Callable[[], int]
    lost: set[str] = field(default_factory=set)  # paths of files that are missing from storage
    on_main: list[Snapshot] = field(default_factory=list)  # every commit that ever landed on main
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryTable:
        # versions never change, so that a copy shares them
        with self._lock:
            start = next(self._numbers)
            self._numbers = itertools.count(start)
            return MemoryTable(
                self.metadata, self.now_ms, set(self.lost), list(self.on_main), itertools.count(start)
            )  # fmt: skip

    def next_id(self) -> str:
        """A snapshot id or file number that no other table of the lake has, and that is the same in every run."""
        return str(int(sha256(self.metadata.table.encode())[:10], 16) * 100_000 + next(self._numbers))

    def swap(self, seen: Metadata, made: Metadata) -> None:
        """Compare what a commit changes with what its writer saw, and make it the current version."""
        with self._lock:
            now = self.metadata
            changed = [name for name in {*seen.refs, *made.refs} if seen.refs.get(name) != made.refs.get(name)]
            moved = [name for name in changed if _place(now, name) != _place(seen, name)]
            new = [one for name, one in made.snapshots.items() if name not in seen.snapshots]
            stale = any(one.sequence <= now.last_sequence for one in new if one.parent_id is not None)
            if now.table_uuid != seen.table_uuid or moved or stale or (
                made.schemas != seen.schemas and now.schemas != seen.schemas
            ):  # fmt: skip
                raise CommitFailed(f"CommitFailedException: {now.table} was changed: {', '.join(moved) or 'snapshots'}")
            gone = seen.snapshots.keys() - made.snapshots.keys()
            orphans = {name: one for name, one in made.snapshots.items() if seen.snapshots.get(name, one) is not one}
            refs = {**now.refs, **{name: made.refs[name] for name in changed if name in made.refs}}
            self._land(
                replace(
                    made,
                    snapshots={**{k: v for k, v in now.snapshots.items() if k not in gone},
                               **orphans, **{one.snapshot_id: one for one in new}},
                    refs={name: ref for name, ref in refs.items() if name not in changed or name in made.refs},
                    log=now.log,
                    schemas=made.schemas if made.schemas != seen.schemas else now.schemas,
                    specs=made.specs if made.specs != seen.specs else now.specs,
                    last_sequence=max(now.last_sequence, made.last_sequence),
                    last_column_id=max(now.last_column_id, made.last_column_id),
                )
            )  # fmt: skip

    def _land(self, made: Metadata) -> None:
        before, after = _place(self.metadata, MAIN), _place(made, MAIN)
        if after is not None and after != before:
            made = replace(made, log=(*made.log, (max(self.now_ms(), made.snapshots[after].at_ms), after)))
            self.on_main += [made.snapshots[after]] if after not in self.metadata.snapshots else []
        self.metadata = made

    def commit(self, act: Callable[[Draft], T]) -> T:
        """Run ``act`` on a fresh draft and swap it, again after a lost race; ``act`` looks for its own effect first."""
        for left in reversed(range(_TRIES)):
            draft = Draft(self)
            answer = act(draft)
            if draft.made is draft.seen:
                return answer
            try:
                draft.swap()
            except CommitFailed:
                if not left:
                    raise
            else:
                return answer
        raise AssertionError("unreachable")

    def write_files(self, rows: Iterable[Stored], spec: Spec | None = None) -> list[DataFile]:
        """Data files for these rows, one for each partition of the spec; no commit lists them yet."""
        wanted = spec or self.metadata.spec
        grain = self.metadata.stored_grain(wanted.spec_id)
        groups: dict[str | None, list[Stored]] = {}
        for row in rows:
            name = None if grain is None else name_partition(row.get(wanted.source or 0), grain)
            groups.setdefault(name, []).append(row)
        return [
            DataFile(f"memory://{self.metadata.table}/{self.next_id()}.parquet", tuple(held), name, wanted.spec_id)
            for name, held in sorted(groups.items(), key=lambda item: str(item[0]))
        ]

    # what live jobs and maintenance do

    def append(self, rows: Iterable[Row], **summary: str) -> str:
        """Append rows to main, as a live job does; returns the snapshot."""
        files = self.write_files([self.metadata.schema.store(row) for row in rows])
        return self._write("append", files, (), summary)

    def overwrite(self, rows: Iterable[Row], **summary: str) -> str:
        """Replace the partitions of these rows by them."""
        files = self.write_files([self.metadata.schema.store(row) for row in rows])
        names = {file.partition for file in files}
        head = self.metadata.head
        old = [path for path, file in (head.files if head else {}).items() if file.partition in names]
        return self._write("overwrite", files, old, summary)

    def compact(self, *partitions: str) -> str:
        """Rewrite the files of these partitions, by default of all, as one each; the rows stay."""
        head = self._require_head()
        chosen = [file for file in head.files.values() if not partitions or file.partition in partitions]
        files = self.write_files([row for file in chosen for row in head.read(file)])
        return self._write("replace", files, [file.path for file in chosen], {})

    def remove_where(self, keep: Callable[[Row], bool]) -> str:
        """Rewrite the files with rows for which ``keep`` is false, without them (copy-on-write)."""
        head, schema = self._require_head(), self.metadata.schema
        hit = [file for file in head.files.values() if not all(keep(schema.read(row)) for row in head.read(file))]
        rows = [row for file in hit for row in head.read(file) if keep(schema.read(row))]
        return self._write("overwrite", self.write_files(rows), [file.path for file in hit], {})

    def delete(self, partition: str | None = None, **key: Any) -> str:
        """Hide the rows with these values by an equality delete file (merge-on-read); no data file is touched."""
        schema = self.metadata.schema
        values = {schema.find(name).field_id: parse_value(value, schema.find(name).type) for name, value in key.items()}
        path = f"memory://{self.metadata.table}/delete-{self.next_id()}.parquet"
        one = DeleteFile(path, values, partition, self.metadata.spec.spec_id)
        return self.commit(lambda draft: draft.add_snapshot(MAIN, "delete", deletes=[one])).snapshot_id

    def _write(self, operation: str, add: list[DataFile], remove: Collection[str], summary: Mapping[str, str]) -> str:
        told = {"app-name": "live", "added-data-files": str(len(add)), **summary}
        told["added-records"] = str(sum(len(file.rows) for file in add))
        return self.commit(
            lambda draft: draft.add_snapshot(MAIN, operation, add=add, remove=remove, summary=told)
        ).snapshot_id

    def _require_head(self) -> Snapshot:
        if self.metadata.head is None:
            raise LookupError(f"{self.metadata.table} is empty")
        return self.metadata.head

    def set_main(self, snapshot_id: str) -> None:
        """Point main at a snapshot, as ``set_current_snapshot`` does."""
        self.commit(lambda draft: draft.set_ref(MAIN, snapshot_id, is_branch=True))

    def drop_ref(self, *names: str) -> None:
        """Remove branches and tags, as a tool does that does not know them."""

        def act(draft: Draft) -> None:
            for name in names:
                draft.drop_ref(name)

        self.commit(act)

    def expire(
        self, *, older_than_ms: int | None = None, retain_last: int = 1, clear_parents: bool = False
    ) -> None:  # fmt: skip
        """Forget refs past their age, and snapshots that neither a ref nor ``retain_last`` keeps.

        ``clear_parents``: as PyIceberg does it, after which the oldest snapshot that is left looks like the first.
        """
        now = self.now_ms() if older_than_ms is None else older_than_ms

        def act(draft: Draft) -> None:
            seen = draft.seen
            for name, ref in seen.refs.items():
                at = seen.snapshots[ref.snapshot_id].at_ms
                if name != MAIN and ref.age_ms is not None and at + ref.age_ms < self.now_ms():
                    draft.drop_ref(name)
            kept = set[str]()
            for ref in draft.made.refs.values():
                for n, one in enumerate(seen.line(ref.snapshot_id) if ref.is_branch else ()):
                    until = now - ref.snapshot_age_ms if ref.snapshot_age_ms is not None else now
                    kept |= {one.snapshot_id} if n < retain_last or one.at_ms >= until else set()
                kept.add(ref.snapshot_id)
            draft.forget(seen.snapshots.keys() - kept, clear_parents=clear_parents)

        self.commit(act)

    def change_columns(self, change: Callable[[tuple[Field, ...]], Sequence[Field]]) -> None:
        """Add, rename or drop columns: ``change`` gets the current ones; new ones have field id 0."""
        self.commit(lambda draft: draft.change_schema(change(draft.seen.schema.fields)))

    def rows(self, at: str | None = None) -> list[dict[str, Any]]:
        """Every row that a reader of main, of a branch or tag, or of a snapshot sees."""
        seen = self.metadata
        found = seen.head if at is None else seen.snapshots.get(seen.refs[at].snapshot_id if at in seen.refs else at)
        if found is None:
            return []
        schema = seen.schema if at is None else seen.schema_of(found)
        return [schema.read(row) for file in found.files.values() for row in found.read(file)]


def _place(metadata: Metadata, ref: str) -> str | None:
    return metadata.refs[ref].snapshot_id if ref in metadata.refs else None


def create_table(
    name: str, columns: Mapping[str, str], partition: tuple[str, str] | None, now_ms: Callable[[], int],
    *, required: Collection[str] = (), properties: Mapping[str, str] | None = None,
) -> MemoryTable:  # fmt: skip
    """An empty table; ``partition`` is a column and its transform."""
    fields = tuple(Field(n, one, kind, one in required) for n, (one, kind) in enumerate(columns.items(), 1))
    schema = Schema(0, fields)
    spec = Spec(0, schema.find(partition[0]).field_id, partition[1]) if partition else Spec(0)
    held = {"format-version": "2", **(properties or {})}
    metadata = Metadata(
        name, str(uuid.uuid4()), (schema,), (spec,), held, last_column_id=len(fields),
        format_version=int(held["format-version"]),
    )  # fmt: skip
    return MemoryTable(metadata, now_ms)
