"""Publishing on Iceberg: one metadata version, one compare-and-swap, an undo branch and a fence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from errata.engines.iceberg.java import JavaIceberg, java_paths, partition_text, rows_of, span_of
from errata.engines.iceberg.refs import (
    DAY_MS,
    age_for,
    ensure_branch,
    ensure_guard,
    main_head,
    names_of,
    ref_of,
    retrying,
)
from errata.errors import EngineError, RunExpired
from errata.model.columns import TableSchema
from errata.model.manifest import TargetPin
from errata.model.refs import pre_tag, pub_tag, undo_branch
from errata.model.table import Commit, DataFile, History, Touch
from errata.publisher.ports import (
    SCOPE,
    CarriedOver,
    Landed,
    Outcome,
    PublicationCommit,
    PublishTable,
    TableVersion,
)

__all__ = ["IcebergPublishing", "RowWriter"]

PUB_TAG_DAYS = 7
_UNCHANGED = "main is unchanged"


class RowWriter(Protocol):
    """Spark, as far as publishing ever needs it: rows of (Java) scan tasks written as new files on a branch."""

    def holding(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> frozenset[str]:
        """The files of a snapshot that hold rows of the partitions."""

    def copy_rows(
        self, target: TargetPin, table: Any, tasks: Any, partitions: Sequence[str], branch: str, *, inside: bool
    ) -> None:
        """Append the rows that are in the partitions, or those that are in none of them, to the branch; raises
        ``EngineError`` when it then holds anything else."""


class IcebergVersion:
    """One metadata version: the base of one transaction."""

    def __init__(self, java: JavaIceberg, target: TargetPin) -> None:
        self._java = java
        self._target = target
        self._table, self._transaction = java.begin(target.table)

    @property
    def snapshot_id(self) -> str:
        """Main's head."""
        return main_head(self._table) or ""

    @property
    def table_uuid(self) -> str:
        """The table's own id."""
        return str(self._table.uuid().toString())

    @property
    def schema(self) -> TableSchema:
        """The current schema."""
        return self._java.schema(self._table)

    @property
    def spec_id(self) -> int:
        """The current partition spec."""
        return int(self._table.spec().specId())

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""
        return names_of(self._java, self._table)

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files live at main's head in these partitions, wholly or in part."""
        tasks = self._java.scan(self._table, self.snapshot_id, self._target, partitions)
        return _inside(self._java.describe(self._table, tasks, self._target, partitions), partitions)

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """Walk the parents of main's head back to the base."""
        known = {row[0]: row for row in rows_of(self._java.bulk.snapshots(self._table))}
        commits: list[Commit] = []
        current: str | None = self.snapshot_id
        while current and current != base_snapshot_id and current in known:
            row = known[current]
            commits.append(self._commit_of(row, frozenset(partitions)))
            current = row[1] if row[1] != "\x00" else None
        return History(tuple(commits), complete=current == base_snapshot_id)

    def _commit_of(self, row: list[str], partitions: frozenset[str]) -> Commit:
        snapshot_id, _, operation, at, *pairs = row
        summary = dict(pair.split("=", 1) for pair in pairs)
        source, transform = self._java.field(self._table, self._target)
        touched: dict[str, Touch] = {}
        everything = False
        changes = self._java.bulk.changes(self._table, int(snapshot_id), source, transform) if partitions else ""
        for sign, _path, count, _size, raw, content in rows_of(changes):
            partition = partition_text(self._target, raw)
            if partition is None:
                everything = everything or bool(span_of(self._target, raw).among(partitions))
            if partition in partitions:
                touched[partition] = _touch(touched.get(partition, Touch()), sign, content, int(count))
        application = summary.get("app-name") or summary.get("spark.app.id") or summary.get("engine-name") or "unknown"
        return Commit(snapshot_id, operation, int(at), application, touched, everything, summary)

    def commit(self, publication: PublicationCommit) -> str:
        """New columns, one overwrite, two tags and a touch of every ref relied on, in one compare-and-swap."""
        java, target, transaction = self._java, self._target, self._transaction
        head = self.snapshot_id
        self._add_columns(publication)
        partitions = publication.partitions
        old = java.scan(self._table, head, target, partitions)
        scope = java.scope(target, partitions)
        overwrite = transaction.newOverwrite().conflictDetectionFilter(scope).validateFromSnapshot(int(head))
        overwrite = overwrite.validateNoConflictingData().validateNoConflictingDeletes()
        removed = java.bulk.remove(overwrite, old, java_paths(publication.remove)) if publication.remove else 0
        added = 0
        holder = java.load(publication.add_table) if publication.add_table else self._table
        for source in publication.add_from if publication.add else ():
            tasks = java.scan(holder, source, target, partitions)
            added += java.bulk.add(self._table, overwrite, tasks, java_paths(publication.add))
        if publication.carried:
            tasks = java.bulk.scan(self._table, int(publication.carried_from), java.everything)
            added += java.bulk.add(self._table, overwrite, tasks, java_paths(publication.carried))
        adding = len(publication.add) + len(publication.carried)
        if removed != len(publication.remove) or added != adding:
            raise EngineError(
                f"{target.table}: {removed} of {len(publication.remove)} files to remove and {added} of "
                f"{adding} files to add were found",
                state="main is unchanged",
            )
        for key, value in publication.properties.items():
            overwrite = overwrite.set(key, value)
        overwrite.commit()
        made = str(transaction.table().currentSnapshot().snapshotId())
        self._tag(publication, head, made)
        transaction.commitTransaction()
        return made

    def _add_columns(self, publication: PublicationCommit) -> None:
        """Under exactly the field ids that the files to be added carry; any other would read them wrongly."""
        if not publication.add_columns:
            return
        update = self._transaction.updateSchema()
        for column in publication.add_columns:
            update = update.addColumn(column.name, self._java.type(column.type))
        update.commit()
        given = self._java.schema(self._transaction.table()).field_ids
        wrong = [column.name for column in publication.add_columns if given.get(column.name) != column.field_id]
        if wrong:
            raise EngineError(
                f"{self._target.table} would give {', '.join(wrong)} other field ids than the staged files have",
                state=_UNCHANGED,
                hint=f"plan again with --supersede {publication.run_id}",
            )

    def _tag(self, publication: PublicationCommit, head: str, made: str) -> None:
        before, after = pre_tag(publication.publication_id), pub_tag(publication.publication_id)
        manage = self._transaction.manageSnapshots()
        manage = manage.createTag(before, int(head)).setMaxRefAgeMs(
            before, age_for(self._table, head, publication.pre_days)
        )
        manage = manage.createTag(after, int(made)).setMaxRefAgeMs(after, PUB_TAG_DAYS * DAY_MS)
        for ref, days in publication.keep_refs.items():
            head_of_ref = ref_of(self._table, ref)
            if head_of_ref is None:
                raise RunExpired(
                    f"ref {ref} of {self._target.table} is gone, and this commit relies on it",
                    state=_UNCHANGED,
                    hint=f"errata validate {publication.run_id} assembles the candidate again",
                )
            # a REST catalog asserts only the refs a commit touches, so touch the ones this commit relies on;
            # a promise is only ever prolonged
            present = self._table.refs().get(ref).maxRefAgeMs()
            manage = manage.setMaxRefAgeMs(ref, max(present or 0, age_for(self._table, head_of_ref, days)))
        manage.commit()


class IcebergPublishing:
    """The target as publications see it."""

    def __init__(self, java: JavaIceberg, rows: Callable[[], RowWriter]) -> None:
        self._java = java
        self._rows = rows  # asked only when rows must be written: it starts Spark

    def version(self, target: TargetPin) -> IcebergVersion:
        """The newest metadata version, read once."""
        return IcebergVersion(self._java, target)

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """The data files of any snapshot the table still has."""
        table = self._java.load(target.table)
        if table.snapshot(int(snapshot_id)) is None:
            raise RunExpired(
                f"snapshot {snapshot_id} of {target.table} is gone",
                state=_UNCHANGED,
                hint="errata validate RUN assembles a candidate again, if the staged output is still there",
            )
        tasks = self._java.scan(table, snapshot_id, target, partitions)
        return _inside(self._java.describe(table, tasks, target, partitions), partitions)

    def look(self, target: TargetPin, publication_id: str) -> Landed:
        """By the tag, and only when its snapshot carries this publication's id; then by what the table remembers."""
        table = self._java.load(target.table)
        tagged = ref_of(table, pub_tag(publication_id))
        if tagged is not None:
            summary = table.snapshot(int(tagged)).summary()
            if summary.get("errata.publication") == publication_id:
                return Landed(Outcome.LANDED, tagged, str(summary.get(SCOPE) or ""))
            return Landed(Outcome.FENCED)
        for row in rows_of(self._java.bulk.snapshots(table)):
            told = dict(pair.split("=", 1) for pair in row[4:])
            if told.get("errata.publication") == publication_id:
                return Landed(Outcome.LANDED, row[0], told.get(SCOPE, ""))
        return Landed(Outcome.ABSENT)

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """The publication's own tag on the guard: its late commit finds the tag taken and cannot land."""
        guard, _ = ensure_guard(self._java, target.table)

        def act() -> None:
            table = self._java.load(target.table)
            tag = pub_tag(publication_id)
            if ref_of(table, tag) is None:
                age = age_for(table, guard, PUB_TAG_DAYS)
                table.manageSnapshots().createTag(tag, int(guard)).setMaxRefAgeMs(tag, age).commit()

        retrying(act)

    def write_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        """Guard-rooted, exactly these files, with statistics: a promise of 30 days pins them and nothing else."""
        return retrying(lambda: self._try_undo(target, publication_id, from_snapshot, partitions, paths, days))

    def _try_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        java, branch = self._java, undo_branch(publication_id)
        guard, _ = ensure_guard(java, target.table)
        table, transaction = java.begin(target.table)
        manage = transaction.manageSnapshots()
        if ref_of(table, branch) is not None:
            manage = manage.replaceBranch(branch, int(guard))
        else:
            manage = manage.createBranch(branch, int(guard))
        manage.setMaxRefAgeMs(branch, age_for(table, guard, days)).commit()
        append = transaction.newFastAppend().toBranch(branch).set("errata.undo", publication_id)
        tasks = java.scan(table, from_snapshot, target, partitions)
        if paths and java.bulk.append(append, tasks, java_paths(paths)) != len(paths):
            raise EngineError(f"not every file to be kept for the undo of {publication_id} is in {from_snapshot}")
        append.commit()
        transaction.commitTransaction()
        made = ref_of(java.load(target.table), branch)
        if made is None:
            raise EngineError(f"branch {branch} of {target.table} was dropped while it was written", state=_UNCHANGED)
        return made

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """The guard's snapshot id, and whether it had to be made."""
        return ensure_guard(self._java, target.table)

    def rewrite(self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str]) -> str:
        """Rows as that snapshot reads, in new files without delete files."""
        table = self._java.load(target.table)
        tasks = self._java.scan(table, from_snapshot, target, partitions)
        return self._written(target, table, tasks, partitions, branch, inside=True)

    def carry_over(
        self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        """See the port: which of the files hold rows of the scope is read from them, one column of each."""
        java, table = self._java, self._java.load(target.table)
        taken = tuple(sorted(self._rows().holding(target, from_snapshot, partitions).intersection(paths)))
        if not taken:
            return CarriedOver("", (), ())
        touched = java.bulk.pick(java.scan(table, from_snapshot, target, partitions), java_paths(taken))
        made = self._written(target, table, touched, partitions, branch, inside=False)
        table = java.load(target.table)
        files = java.describe(table, java.bulk.scan(table, int(made), java.everything), target)
        return CarriedOver(made, files, taken)

    def _written(
        self, target: TargetPin, table: Any, tasks: Any, partitions: Sequence[str], branch: str, *, inside: bool
    ) -> str:
        """The snapshot of a guard-rooted branch after one write to it."""
        guard, _ = ensure_guard(self._java, target.table)
        ensure_branch(self._java, target.table, branch, guard, PUB_TAG_DAYS)
        self._rows().copy_rows(target, table, tasks, partitions, branch, inside=inside)
        now = self._java.load(target.table)
        head = ref_of(now, branch)
        if head is None or str(now.snapshot(int(head)).parentId()) != guard:
            # dropped meanwhile, an append brings a branch back from main: its files would be everyone's
            raise EngineError(f"branch {branch} of {target.table} was dropped while it was written", state=_UNCHANGED)
        return head


def _inside(files: Sequence[DataFile], partitions: Sequence[str]) -> tuple[DataFile, ...]:
    wanted = set(partitions)
    return tuple(file for file in files if file.partition is None or file.partition in wanted)


def _touch(touch: Touch, sign: str, content: str, rows: int) -> Touch:
    if content != "DATA":
        return Touch(touch.added_rows, touch.removed_rows, touch.added_deletes + (sign == "+"))
    if sign == "+":
        return Touch(touch.added_rows + rows, touch.removed_rows, touch.added_deletes)
    return Touch(touch.added_rows, touch.removed_rows + rows, touch.added_deletes)


_conforms: type[PublishTable] = IcebergPublishing
_version_conforms: type[TableVersion] = IcebergVersion
