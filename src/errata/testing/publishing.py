"""Publish to tables in memory: one compare-and-swap on one metadata version, with an undo branch and a fence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from errata.errors import EngineError, RunExpired
from errata.model.manifest import TargetPin
from errata.model.product.erasure import ErasurePin
from errata.model.refs import pre_tag, pub_tag, undo_branch
from errata.model.table import Commit, DataFile, History, NewDelete, TableColumn, TableSchema
from errata.ports.publish import (
    CarriedOver,
    Outcome,
    PublicationCommit,
    PublicationLookup,
    PublishTable,
    TableVersion,
)
from errata.testing.lake import Lake
from errata.testing.metadata import MAIN, Field, Metadata, Schema, Snapshot, Stored
from errata.testing.metadata import DataFile as MemoryFile
from errata.testing.pinned_inputs import PinnedInputs
from errata.testing.refs import DAY_MS, compute_age, ensure_guard, find_marked, open_branch
from errata.testing.row_values import to_plain
from errata.testing.scope import DELETES, Scope
from errata.testing.table import CommitFailed, Draft, MemoryTable

STEP_DAYS = 7


class MemoryVersion:
    """One metadata version of a table in memory."""

    def __init__(self, lake: Lake, target: TargetPin) -> None:
        self._lake = lake
        self._target = target
        self._table = lake.table(target.table)
        self._seen = self._table.metadata
        self._scope = Scope.of_pin(self._seen, target)

    def __repr__(self) -> str:
        return f"{self._target.table} at {self.snapshot_id}"

    @property
    def snapshot_id(self) -> str:
        """Main's head."""
        return self._seen.head.snapshot_id if self._seen.head else ""

    @property
    def table_uuid(self) -> str:
        """The table's uuid."""
        return self._seen.table_uuid

    @property
    def schema(self) -> TableSchema:
        """The current schema."""
        return describe_schema(self._seen)

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        """See the port."""
        wanted = schema_id
        if wanted is None:
            wanted = self._seen.head.schema_id if self._seen.head else self._seen.schema.schema_id
        found = [one for one in self._seen.schemas if one.schema_id == wanted]
        return tuple(
            TableColumn(one.field_id, one.name, None if one.default is None else str(to_plain(one.default)))
            for schema in found
            for one in schema.fields
        )

    @property
    def spec_id(self) -> int:
        """The current partition spec."""
        return self._seen.spec.spec_id

    @property
    def column(self) -> str | None:
        """See the port."""
        return next((one.name for one in self._seen.schema.fields if one.field_id == self._scope.source), None)

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""
        return frozenset(self._seen.refs)

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """See the port."""
        return self._scope.files(self._seen.head, partitions)

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """See the port."""
        found, at = list[Commit](), self._seen.line(self.snapshot_id)
        for snapshot in at:
            if snapshot.snapshot_id == base_snapshot_id:
                return History(tuple(found), complete=True)
            found.append(self._scope.commit(snapshot, partitions))
        is_whole = base_snapshot_id is None and (not at or at[-1].is_first)
        return History(tuple(found), complete=is_whole)

    def new_deletes(
        self, base_snapshot_id: str | None, partitions: Sequence[str], marks: Sequence[str] = ()
    ) -> tuple[NewDelete, ...]:
        """See the port."""
        since = self.history(base_snapshot_id, ())
        brought = {commit.snapshot_id: commit for commit in since.commits}
        held = self._seen.head.deletes.values() if self._seen.head else ()
        if since.complete:
            found = [one for one in held if one.snapshot_id in brought]
        else:
            names = [base_snapshot_id] if base_snapshot_id in self._seen.snapshots else marks
            known = [one.sequence for name in names if (one := self._seen.snapshots.get(name or ""))]
            found = [one for one in held if one.sequence > min(known, default=0)]
        return tuple(
            NewDelete(
                one.path, DELETES, one.partition, tuple(partitions) if one.partition is None else (),
                brought.get(one.snapshot_id),
            )
            for one in found
        )  # fmt: skip

    def commit(self, publication: PublicationCommit) -> str:
        """See the port."""
        draft, made = self.prepare(publication)
        draft.swap()
        return made

    def prepare(self, publication: PublicationCommit) -> tuple[Draft, str]:
        """The commit, ready to be swapped, and the snapshot it would make; looks only at this version."""
        draft = Draft(self._table)
        draft.seen = draft.made = self._seen
        for ref in publication.keep_refs:
            if ref not in self._seen.refs:
                raise RunExpired(
                    f"ref {ref} of {self._target.table} is gone, and this commit relies on it",
                    state="main is unchanged",
                    hint=f"errata validate {publication.run_id} assembles the candidate again",
                )
        if publication.add_columns:
            new = [Field(0, one.name, one.type) for one in publication.add_columns]
            draft.change_schema([*self._seen.schema.fields, *new])
            given = describe_schema(draft.made).field_ids
            if any(given[one.name] != one.field_id for one in publication.add_columns):
                raise EngineError(f"{self._target.table} would give other field ids than the staged files have")
        files = self._collect(publication)
        gone = [path for path in publication.remove if path not in (self._seen.head or _EMPTY).files]
        missing = {*publication.add, *publication.carried} - {file.path for file in files}
        if gone or missing:
            raise EngineError(
                f"{self._target.table}: {len(gone)} files to remove and {len(missing)} files to add were not found",
                state="main is unchanged",
            )
        told = {**_count_files(files, publication.remove), **publication.properties}
        # as Iceberg names a commit that only adds or only removes files
        operation = "append" if files and not publication.remove else "overwrite" if files else "delete"
        made = draft.add_snapshot(MAIN, operation, add=files, remove=publication.remove, summary=told)
        self._set_tags(draft, publication, made.snapshot_id)
        return draft, made.snapshot_id

    def _collect(self, publication: PublicationCommit) -> list[MemoryFile]:
        """The files to add, as the snapshots that list them have them, with the target's own partitions."""
        holder = self._lake.table(publication.add_table).metadata if publication.add_table else self._seen
        wanted = [(holder, source, publication.add) for source in publication.add_from if publication.add]
        wanted += [(self._seen, publication.carried_from, publication.carried)] if publication.carried else []
        found: dict[str, MemoryFile] = {}
        for metadata, source, paths in wanted:
            if source not in metadata.snapshots:
                raise RunExpired(f"snapshot {source} of {metadata.table} is gone", state="main is unchanged")
            listed = metadata.snapshots[source].files
            found |= {path: self._adopt(listed[path]) for path in paths if path in listed}
        return list(found.values())

    def _adopt(self, file: MemoryFile) -> MemoryFile:
        (made,) = self._table.write_files(file.rows) if file.rows else (file,)
        return replace(made, path=file.path)

    def _set_tags(self, draft: Draft, publication: PublicationCommit, made: str) -> None:
        now, head = self._table.now_ms(), self.snapshot_id
        before, after = pre_tag(publication.publication_id), pub_tag(publication.publication_id)
        if taken := {before, after} & set(self._seen.refs):
            raise CommitFailed(f"{', '.join(sorted(taken))} of {self._target.table} already exists")
        draft.set_ref(before, head, age_ms=compute_age(self._seen, head, publication.pre_days, now))
        draft.set_ref(after, made, age_ms=publication.pub_days * DAY_MS)
        for name, days in publication.keep_refs.items():
            # every required ref is changed, by at least a millisecond, because only changed refs are asserted
            ref = self._seen.refs[name]
            needed = compute_age(self._seen, ref.snapshot_id, days, now)
            draft.keep_ref(name, max((ref.age_ms or 0) + 1, needed))


_EMPTY = Snapshot("", None, 0, 0, "append", 0, {}, {}, {})


@dataclass(frozen=True, slots=True)
class MemoryPublishing:
    """Publishes to tables in memory, and undoes and fences publications."""

    lake: Lake

    def version(self, target: TargetPin) -> MemoryVersion:
        """See the port."""
        return MemoryVersion(self.lake, target)

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """See the port."""
        metadata = self.lake.table(target.table).metadata
        return Scope.of_pin(metadata, target).files(_require(metadata, snapshot_id), partitions)

    def find_outcome(self, target: TargetPin, publication_id: str) -> PublicationLookup:
        """See the port."""
        seen = self.lake.table(target.table).metadata
        tagged = seen.refs.get(pub_tag(publication_id))
        if tagged is not None:
            if seen.snapshots[tagged.snapshot_id].summary.get("errata.publication") != publication_id:
                return PublicationLookup(Outcome.FENCED)
            return PublicationLookup(Outcome.LANDED, tagged.snapshot_id)
        marked = find_marked(seen, "errata.publication", publication_id)
        return PublicationLookup(Outcome.LANDED, marked[0]) if marked else PublicationLookup(Outcome.ABSENT)

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """See the port."""
        table, tag = self.lake.table(target.table), pub_tag(publication_id)
        guard, _ = ensure_guard(table)

        def act(draft: Draft) -> None:
            if tag not in draft.seen.refs:
                age = compute_age(draft.seen, guard, STEP_DAYS, table.now_ms())
                draft.set_ref(tag, guard, age_ms=age)

        table.commit(act)

    def write_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        """See the port."""
        del partitions
        table, branch = self.lake.table(target.table), undo_branch(publication_id)
        guard, _ = ensure_guard(table)

        def act(draft: Draft) -> str:
            listed = _require(draft.seen, from_snapshot).files
            if missing := [path for path in paths if path not in listed]:
                raise EngineError(f"{missing} to be kept for the undo of {publication_id} are not in {from_snapshot}")
            draft.set_ref(branch, guard, is_branch=True, age_ms=days * DAY_MS)
            kept = [listed[path] for path in paths]
            return draft.add_snapshot(
                branch, "append", add=kept, summary={"errata.undo": publication_id}
            ).snapshot_id  # fmt: skip

        return table.commit(act)

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """See the port."""
        return ensure_guard(self.lake.table(target.table))

    def rewrite(
        self,
        target: TargetPin,
        branch: str,
        from_snapshot: str,
        partitions: Sequence[str],
        without: ErasurePin | None = None,
    ) -> str:
        """See the port."""
        table = self.lake.table(target.table)
        snapshot, scope = _require(table.metadata, from_snapshot), Scope.of_pin(table.metadata, target)
        rows = [row for file in snapshot.files.values() for row in snapshot.read(file)]
        inside = [row for row in rows if scope.partition_of(row) in partitions]
        named = PinnedInputs(self.lake, lambda _: b"", without)
        schema = table.metadata.schema_of(snapshot)
        columns = without.columns if without else ()
        return _write_rows(table, branch, [row for row in inside if named.drop_listed([schema.read(row)], columns)])

    def carry_over(
        self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        """See the port."""
        table = self.lake.table(target.table)
        snapshot, scope = _require(table.metadata, from_snapshot), Scope.of_pin(table.metadata, target)
        wanted = set(partitions)
        taken = sorted(
            path
            for path in paths
            if path in snapshot.files
            and wanted & {scope.partition_of(row) for row in snapshot.read(snapshot.files[path])}
        )
        if not taken:
            return CarriedOver("", (), ())
        rows = [row for path in taken for row in snapshot.read(snapshot.files[path])]
        made = _write_rows(table, branch, [row for row in rows if scope.partition_of(row) not in wanted])
        held = table.metadata.snapshots[made]
        files = tuple(Scope.of_pin(table.metadata, target).describe(held, file) for file in held.files.values())
        return CarriedOver(made, files, tuple(taken))


def _require(metadata: Metadata, snapshot_id: str) -> Snapshot:
    if snapshot_id not in metadata.snapshots:
        raise RunExpired(
            f"snapshot {snapshot_id} of {metadata.table} is gone",
            state="main is unchanged",
            hint="errata validate RUN assembles a candidate again, if the staged output is still there",
        )
    return metadata.snapshots[snapshot_id]


def _write_rows(table: MemoryTable, branch: str, rows: Iterable[Stored]) -> str:
    open_branch(table, branch, STEP_DAYS)
    files = table.write_files(rows)
    made = table.commit(
        lambda draft: draft.add_snapshot(branch, "append", add=files, summary=_count_files(files, ()))
    )  # fmt: skip
    if len(made.files) != len(files):
        raise EngineError(f"branch {branch} of {table.metadata.table} holds more than the rows that were written to it")
    return made.snapshot_id


def _count_files(files: Sequence[MemoryFile], removed: Sequence[str]) -> dict[str, str]:
    return {
        "added-data-files": str(len(files)),
        "added-records": str(sum(len(file.rows) for file in files)),
        "deleted-data-files": str(len(removed)),
    }


def describe_schema(metadata: Metadata) -> TableSchema:
    """The current schema, as ports show it."""
    schema: Schema = metadata.schema
    kinds = {one.name: one.type for one in schema.fields}
    ids = {one.name: one.field_id for one in schema.fields}
    return TableSchema(schema.schema_id, metadata.last_column_id, kinds, ids)


_conforms: type[PublishTable] = MemoryPublishing
_version_conforms: type[TableVersion] = MemoryVersion
