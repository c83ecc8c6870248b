"""Publish to an Iceberg table: one compare-and-swap on one metadata version, with an undo branch and a fence."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.commits.clock import require_clock
from errata.engines.iceberg.commits.java import (
    ALL_ROWS,
    CONTENT,
    JavaIceberg,
    join_paths,
    parse_partition,
    parse_rows,
    parse_span,
)
from errata.engines.iceberg.commits.refs import (
    compute_ref_age,
    count_manifests,
    ensure_guard,
    find_publication,
    find_ref,
    list_refs,
    main_head,
    open_branch,
    retry_commit,
)
from errata.errors import EngineError, RunExpired
from errata.model.manifest import TargetPin
from errata.model.product.erasure import ErasurePin
from errata.model.refs import DAY_MS, STEP_DAYS, pre_tag, pub_tag, undo_branch
from errata.model.table import (
    Commit,
    DataFile,
    History,
    NewDelete,
    TableColumn,
    TableSchema,
    Touch,
    is_first_snapshot,
)
from errata.ports.publish import CarriedOver, Outcome, PublicationCommit, PublicationLookup, PublishTable, TableVersion

if TYPE_CHECKING:
    from errata.engines.spark.write.rewrite import SparkRewriter

_UNCHANGED = "main is unchanged"


class IcebergVersion:
    """One metadata version of a table, used both for the checks and for the commit."""

    def __init__(self, java: JavaIceberg, target: TargetPin) -> None:
        self._java = java
        self._target = target
        self._commit = java.bulk.begin(java.load(target.table))
        self._table = self._commit.table()

    @property
    def snapshot_id(self) -> str:
        """Snapshot id of main's head."""
        return main_head(self._table) or ""

    @property
    def table_uuid(self) -> str:
        """UUID of the table."""
        return str(self._table.uuid().toString())

    @property
    def schema(self) -> TableSchema:
        """The current schema."""
        return self._java.schema(self._table)

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        """Columns of one of the table's schemas, by default that of main's head."""
        if schema_id is None:
            # a snapshot is read with its own schema, which may be older than the table's
            schema_id = self._table.snapshot(int(self.snapshot_id)).schemaId()
        return self._java.columns(self._table, self._table.schema().schemaId() if schema_id is None else schema_id)

    @property
    def spec_id(self) -> int:
        """The current partition spec."""
        return int(self._table.spec().specId())

    @property
    def column(self) -> str | None:
        """The current name of the partition column; None if it was dropped."""
        return self._java.current_column(self._table, self._target)

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""
        return list_refs(self._java, self._table)

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of main's head that contain, or may contain, rows of these partitions."""
        return self._java.live(self._table, self.snapshot_id, self._target, partitions)

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """Commits from main's head back to the base, along its parents."""
        known = {row[0]: row for row in parse_rows(self._java.bulk.snapshots(self._table))}
        commits: list[Commit] = []
        current: str | None = self.snapshot_id
        while current and current != base_snapshot_id and current in known:
            row = known[current]
            commits.append(self._build_commit(row, frozenset(partitions)))
            current = row[1] if row[1] != "\x00" else None
        # a table without snapshots is the base of everything, but history may have been cut after it
        is_whole = not commits or is_first_snapshot(current, commits[-1].summary)
        reached = current == base_snapshot_id and (base_snapshot_id is not None or is_whole)
        return History(tuple(commits), complete=reached)

    def _build_commit(self, row: list[str], partitions: frozenset[str]) -> Commit:
        snapshot_id, _, operation, at, *pairs = row
        summary = dict(pair.split("=", 1) for pair in pairs)
        source, transform = self._java.field(self._table, self._target)
        touched: dict[str, Touch] = {}
        everything = False
        changes = self._java.bulk.changes(self._table, int(snapshot_id), source, transform) if partitions else ""
        for sign, _path, count, _size, raw, content in parse_rows(changes):
            partition = parse_partition(self._target, raw)
            if partition is None:
                everything = everything or bool(parse_span(self._target, raw).filter_possible(partitions))
            if partition in partitions:
                touched[partition] = _add_change(touched.get(partition, Touch()), sign, content, int(count))
        application = summary.get("app-name") or summary.get("spark.app.id") or summary.get("engine-name") or "unknown"
        return Commit(snapshot_id, operation, int(at), application, touched, everything, summary)

    def new_deletes(
        self, base_snapshot_id: str | None, partitions: Sequence[str], marks: Sequence[str] = ()
    ) -> tuple[NewDelete, ...]:
        """See the port. Summaries tell which commits added deletes, so only their manifests are read."""
        source, transform = self._java.field(self._table, self._target)
        snapshots = "\n".join([base_snapshot_id or "", *marks])
        rows = list(parse_rows(self._java.bulk.newDeletes(self._table, snapshots, source, transform)))
        known = {row[0]: row for row in parse_rows(self._java.bulk.snapshots(self._table))} if rows else {}
        found = []
        for snapshot_id, content, path, _count, _size, raw in rows:
            partition = parse_partition(self._target, raw)
            may_hit = parse_span(self._target, raw).filter_possible(partitions) if partition is None else ()
            commit = self._build_commit(known[snapshot_id], frozenset()) if snapshot_id in known else None
            found.append(NewDelete(path, CONTENT[content], partition, may_hit, commit))
        return tuple(found)

    def commit(self, publication: PublicationCommit) -> str:
        """Commit new columns, the overwrite, two tags and a touch of every required ref in one compare-and-swap."""
        try:
            head = self.snapshot_id
            require_clock(self._table)
            self._require_refs(publication)
            # columns first: the files that the overwrite adds carry the new field ids
            self._add_columns(publication)
            made = self._overwrite(publication, head)
            # in the same swap, so that a fence, which takes the publication's tag, makes a late commit fail
            self._set_tags(publication, head, made)
            self._commit.swap()
        finally:
            self._commit.close()  # frees the lists of all added files in the JVM
        return made

    def _require_refs(self, publication: PublicationCommit) -> None:
        for ref in publication.keep_refs:
            if find_ref(self._table, ref) is None:
                raise RunExpired(
                    f"ref {ref} of {self._target.table} is gone, and this commit relies on it",
                    state=_UNCHANGED,
                    hint=f"errata validate {publication.run_id} assembles the candidate again",
                )

    def _overwrite(self, publication: PublicationCommit, head: str) -> str:
        java, commit, table = self._java, self._commit, self._table
        scope = java.scope(table, self._target, publication.partitions)
        commit.startOverwrite(None)
        removed = added = 0
        if publication.remove:
            removed = commit.remove(int(head), scope, join_paths(publication.remove))
        holder = java.load(publication.add_table) if publication.add_table else table
        for source in publication.add_from if publication.add else ():
            added += commit.add(holder, int(source), scope, join_paths(publication.add))
        if publication.carried:
            paths = join_paths(publication.carried)
            added += commit.add(table, int(publication.carried_from), ALL_ROWS, paths)
        adding = len(publication.add) + len(publication.carried)
        if removed != len(publication.remove) or added != adding:
            raise EngineError(
                f"{self._target.table}: {removed} of {len(publication.remove)} files to remove and {added} of "
                f"{adding} files to add were found",
                state=_UNCHANGED,
            )
        for key, value in publication.properties.items():
            commit.set(key, value)
        return str(commit.finish())

    def _add_columns(self, publication: PublicationCommit) -> None:
        """Add the columns; raises unless they get the field ids in the files, which would otherwise be misread."""
        if not publication.add_columns:
            return
        for column in publication.add_columns:
            self._commit.addColumn(column.name, column.type)
        given = self._java.schema(self._commit.result()).field_ids
        wrong = [column.name for column in publication.add_columns if given.get(column.name) != column.field_id]
        if wrong:
            raise EngineError(
                f"{self._target.table} would assign other field ids to {', '.join(wrong)} than the staged files have",
                state=_UNCHANGED,
                hint=f"plan again with --supersede {publication.run_id}",
            )

    def _set_tags(self, publication: PublicationCommit, head: str, made: str) -> None:
        commit = self._commit
        before, after = pre_tag(publication.publication_id), pub_tag(publication.publication_id)
        commit.createTag(before, int(head))
        commit.setAge(before, compute_ref_age(self._table, head, publication.pre_days))
        commit.createTag(after, int(made))
        commit.setAge(after, publication.pub_days * DAY_MS)
        for name, days in publication.keep_refs.items():
            # a REST catalog asserts only the refs that a commit changes, so every required ref is changed, by at least
            # a millisecond; retention is only ever extended
            ref = self._table.refs().get(name)
            needed = compute_ref_age(self._table, str(ref.snapshotId()), days)
            commit.setAge(name, max((ref.maxRefAgeMs() or 0) + 1, needed))


class IcebergPublishing:
    """Publishes to targets, and undoes and fences publications."""

    def __init__(self, java: JavaIceberg, rows: Callable[[], SparkRewriter]) -> None:
        self._java = java
        self._rows = rows  # called only when rows must be written, because it starts Spark

    def version(self, target: TargetPin) -> IcebergVersion:
        """Load the newest metadata version."""
        return IcebergVersion(self._java, target)

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of a snapshot in these partitions; raises ``RunExpired`` if the table no longer has it."""
        table = self._java.load(target.table)
        if table.snapshot(int(snapshot_id)) is None:
            raise RunExpired(
                f"snapshot {snapshot_id} of {target.table} is gone",
                state=_UNCHANGED,
                hint="errata validate RUN assembles a candidate again, if the staged output is still there",
            )
        return self._java.live(table, snapshot_id, target, partitions)

    def find_outcome(self, target: TargetPin, publication_id: str) -> PublicationLookup:
        """See the port."""
        table = self._java.load(target.table)
        landed, is_fenced = find_publication(self._java, table, publication_id)
        if landed is None:
            return PublicationLookup(Outcome.FENCED if is_fenced else Outcome.ABSENT)
        return _confirm_landed(table, target, publication_id, landed)

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """Put the publication's tag on the guard, so that its late commit finds the tag taken and cannot land."""
        guard, _ = ensure_guard(self._java, target.table)
        tag = pub_tag(publication_id)

        def act() -> None:
            with self._java.commit(target.table) as commit:
                if find_ref(commit.table(), tag) is None:
                    commit.createTag(tag, int(guard))
                    commit.setAge(tag, compute_ref_age(commit.table(), guard, STEP_DAYS))
                    commit.swap()

        retry_commit(act)

    def write_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        """Write the undo branch, rooted on the guard: it holds and pins exactly these files, with statistics."""

        def act() -> str:
            java, branch = self._java, undo_branch(publication_id)
            guard, _ = ensure_guard(java, target.table)
            with java.commit(target.table) as commit:
                table = commit.table()
                if find_ref(table, branch) is not None:
                    commit.replaceBranch(branch, int(guard))
                else:
                    commit.createBranch(branch, int(guard))
                commit.startAppend(branch)
                commit.set("errata.undo", publication_id)
                scope = java.scope(table, target, partitions)
                if paths and commit.add(table, int(from_snapshot), scope, join_paths(paths)) != len(paths):
                    raise EngineError(
                        f"not every file to be kept for the undo of {publication_id} is in {from_snapshot}"
                    )
                made = str(commit.finish())
                commit.setAge(branch, days * DAY_MS)
                commit.swap()
            return made

        return retry_commit(act)

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """The guard's snapshot id and whether it was created; raises if the table would refuse a commit now."""
        require_clock(self._java.load(target.table))
        return ensure_guard(self._java, target.table)

    def rewrite(
        self,
        target: TargetPin,
        branch: str,
        from_snapshot: str,
        partitions: Sequence[str],
        without: ErasurePin | None = None,
    ) -> str:
        """Write the rows of a snapshot to new files on the branch, with deletes applied."""
        table = self._java.load(target.table)
        paths = [file.path for file in self._java.live(table, from_snapshot, target, partitions)]
        return self._write_to_branch(
            target, table, from_snapshot, partitions, paths, branch, inside=True, without=without
        )

    def carry_over(
        self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        """See the port. Reads one column of the files to find those that contain rows of the scope."""
        java, table = self._java, self._java.load(target.table)
        taken = tuple(sorted(self._rows().find_files_with_rows(target, from_snapshot, partitions).intersection(paths)))
        if not taken:
            return CarriedOver("", (), ())
        made = self._write_to_branch(target, table, from_snapshot, partitions, taken, branch, inside=False)
        return CarriedOver(made, java.list_all_files(java.load(target.table), made, target), taken)

    def _write_to_branch(
        self,
        target: TargetPin,
        table: Any,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        branch: str,
        *,
        inside: bool,
        without: ErasurePin | None = None,
    ) -> str:
        """Open the branch, write the rows to it, and return its snapshot."""
        java, name = self._java, f"errata_{uuid.uuid4().hex}"
        open_branch(java, target.table, branch, STEP_DAYS)
        scope = java.scope(table, target, partitions)
        java.bulk.stage(table, name, int(from_snapshot), scope, join_paths(paths))
        try:
            return self._rows().copy_rows(target, table, name, partitions, branch, inside=inside, without=without)
        finally:
            java.bulk.unstage(table, name)


def _confirm_landed(table: Any, target: TargetPin, publication_id: str, snapshot_id: str) -> PublicationLookup:
    """The publication landed if its snapshot can be read; an unreadable snapshot never counts as published."""
    if count_manifests(table, snapshot_id) is not None:
        return PublicationLookup(Outcome.LANDED, snapshot_id)
    if main_head(table) != snapshot_id:
        return PublicationLookup(Outcome.FENCED)  # main was moved to another snapshot, and the tag stays taken
    raise EngineError(
        f"{target.table} cannot be read: the manifest list of its newest snapshot {snapshot_id} is gone",
        state="the publication landed and readers fail; no file of what was there before was deleted",
        hint=f"point main at {pre_tag(publication_id)} with Spark's set_current_snapshot, then repeat the command",
    )


def _add_change(touch: Touch, sign: str, content: str, rows: int) -> Touch:
    if content != "DATA":
        return Touch(touch.added_rows, touch.removed_rows, touch.added_deletes + (sign == "+"))
    if sign == "+":
        return Touch(touch.added_rows + rows, touch.removed_rows, touch.added_deletes)
    return Touch(touch.added_rows, touch.removed_rows + rows, touch.added_deletes)


_conforms: type[PublishTable] = IcebergPublishing
_version_conforms: type[TableVersion] = IcebergVersion
