"""Replace the files of partitions in one commit: intent, undo set, commit, confirmation.

Publishing and rolling back are both replacements. Each try reads one metadata version, checks it against the expected
files, and commits on exactly that version. An exception never decides the outcome: the next step reads the table. A
replacement counts as not landed only behind a fence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from errata import traces
from errata.errors import ErrataError, PublishConflict
from errata.failpoints import failpoint
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.product.erasure import ErasurePin
from errata.model.refs import FOR_EVER_DAYS, GUARD, STEP_DAYS, rows_branch, undo_branch
from errata.model.table import Commit, DataFile, FileSets, find_columns_to_add, group_by_partition
from errata.ports.publish import (
    SCOPE_PROPERTY,
    ContentPort,
    IntentLog,
    Outcome,
    PublicationCommit,
    PublicationLookup,
    PublishTable,
    TableVersion,
    scope_digest,
)
from errata.publishing.carry_over import NOTHING_CARRIED, CarryState, carry_over, shares_files
from errata.publishing.conflict import (
    PartitionChanges,
    classify_changes,
    find_changed_partitions,
    find_deleted_partitions,
    find_writers,
)
from errata.publishing.content import ContentComparison, compare_content
from errata.publishing.intent import CarriedRows, Intent
from errata.publishing.messages import (
    conflict_error,
    contention_error,
    drift_error,
    failed_error,
    shape_error,
    unrecorded_error,
)
from errata.publishing.remembered_content import CachedContent
from errata.publishing.table_shape import require_partition_column, require_planned_shape
from errata.publishing.unrecorded import close_intent, find_unrecorded
from errata.text.exceptions import first_line
from errata.text.numbers import plural

MAX_TRIES = 6


@dataclass(frozen=True, slots=True)
class Replacement:
    """Order to replace the live files of these partitions with other files, unless another writer changed them."""

    kind: str  # publish | rollback
    run_id: str
    product: str
    manifest_digest: str
    target: TargetPin
    partitions: tuple[str, ...]
    expected: FileSets
    base_snapshot_id: str | None  # commits after it explain a difference; ``rebased`` partitions have their own base
    add: FileSets
    add_from: tuple[str, ...]
    undo_days: int
    keep_refs: Mapping[str, int]
    content_columns: tuple[str, ...]  # compared where file lists cannot decide; without lineage columns
    own: frozenset[str] = frozenset()  # publications that made the expected state; their commits are not conflicts
    known_content: Mapping[str, str] = field(default_factory=dict)  # of the expected state, if it was measured
    rewrite: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Snapshot → partitions whose rows are rewritten from it, because files alone cannot bring them back."""
    properties: Mapping[str, str] = field(default_factory=dict)
    add_table: str = ""  # table of the snapshots in ``add_from``, if it is not the target
    only_into_empty: bool = False  # any live file in the partitions is a conflict, compaction or not
    pub_days: int = STEP_DAYS  # how long the state after the commit is kept, which copies in warehouses may need
    on_live_write: str = "conflict"  # the plan's setting, for the advice in conflict messages
    rebased: Mapping[str, str | None] = field(default_factory=dict)  # partition → its own, later base
    marks: tuple[str, ...] = ()
    """Snapshots off main, made right before the expected state. They date new deletes after the base has expired."""
    without: ErasurePin | None = None  # rewritten rows of subjects on this list are left out
    instead: str = ""  # for a rollback: the commands that restore the same rows when files cannot be exchanged

    def group_by_base(self, partitions: Sequence[str]) -> dict[str | None, list[str]]:
        """Group partitions by the snapshot at which their expected files were read."""
        found: dict[str | None, list[str]] = {}
        for name in partitions:
            found.setdefault(self.rebased.get(name, self.base_snapshot_id), []).append(name)
        return found

    @property
    def add_paths(self) -> tuple[str, ...]:
        """Paths to add."""
        return tuple(sorted({file.path for files in self.add.values() for file in files}))


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of examining one metadata version: the files to remove and the partitions that were only compacted."""

    snapshot_id: str
    remove: tuple[DataFile, ...]
    compacted: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths to remove, sorted because a scan lists them in any order."""
        return tuple(sorted(file.path for file in self.remove))

    @property
    def with_deletes(self) -> tuple[str, ...]:
        """Partitions whose rollback has to rewrite rows, because their files carry deletes."""
        return tuple(sorted({name for file in self.remove if file.deletes for name in file.partitions}))

    @property
    def shared(self) -> tuple[str, ...]:
        """Partitions whose rollback has to rewrite rows, because their files also hold rows of other partitions."""
        return tuple(sorted({name for file in self.remove if file.partition is None for name in file.partitions}))


@dataclass(frozen=True, slots=True)
class ReplacementResult:
    """A replacement that landed."""

    publication_id: str
    snapshot_id: str
    base_snapshot_id: str
    removed: int
    added: int
    compacted: tuple[str, ...]
    data_files_written: int


def examine_version(
    order: Replacement, version: TableVersion, content: ContentPort, earlier: Examination | None = None
) -> Examination:
    """Compare one version with the expected files; raises ``PublishConflict`` naming partitions, commits, writers."""
    target = order.target
    if order.kind == "publish":
        require_planned_shape(order.run_id, order.product, target, version)
    else:
        require_partition_column(order.run_id, order.product, target, version)
    # a snapshot never changes, so its files are listed once however often the table is examined
    if earlier is not None and earlier.snapshot_id == version.snapshot_id:
        files = earlier.remove
    else:
        files = version.live(order.partitions)
    partial = [file for file in files if file.partition is None]
    if partial and not shares_files(target):
        if order.kind == "rollback":
            why = f"{plural(len(partial), 'file')} written since under another partition spec may hold rows of others"
            raise shape_error(order.run_id, target.table, why, order.instead)
        raise drift_error(
            order.run_id, order.product, target.table, "files by partition", 0, f"{len(partial)} of another spec"
        )
    live = group_by_partition(files, order.partitions)
    if order.only_into_empty and files:
        full = [name for name in order.partitions if live[name]]
        history = version.history(order.base_snapshot_id, full)
        written = {name: find_writers(name, history, order.own) for name in full}
        raise conflict_error(
            order.kind, order.run_id, order.product, target.grain, order.partitions, written, order.on_live_write
        )
    # a new delete file is a conflict even if the live files are the expected ones: replacing them would undo it
    deleted = _find_new_deletes(order, version)
    if not (changed := find_changed_partitions(order.expected, live)) and not deleted:
        return Examination(version.snapshot_id, files, ())
    verdict = PartitionChanges()
    for base, names in order.group_by_base(changed).items():
        history = version.history(base, names)
        found = classify_changes(
            names, history, order.expected, live, order.own, shares_files=shares_files(target)
        )  # fmt: skip
        verdict = verdict.combine_with(found)
    verdict = verdict.mark_written(deleted)
    if (verdict.unclear or shares_files(target)) and version.column != target.column:
        why = f"its partition column {target.column} is now {version.column}, so rows written since cannot be read"
        raise shape_error(order.run_id, target.table, why, order.instead)
    compared = compare_content(order, version, verdict.unclear, content) if verdict.unclear else ContentComparison()
    verdict = verdict.resolve_unclear(compared.same)
    if verdict.written:
        raise conflict_error(
            order.kind, order.run_id, order.product, target.grain, order.partitions, verdict.written,
            order.on_live_write, {**dict.fromkeys(deleted, "rows were deleted by a delete file"), **compared.told},
        )  # fmt: skip
    return Examination(version.snapshot_id, files, verdict.compacted)


def _find_new_deletes(order: Replacement, version: TableVersion) -> dict[str, tuple[Commit, ...]]:
    """Partitions that got delete files since their base, including files that apply to no live file."""
    found: dict[str, tuple[Commit, ...]] = {}
    for base, names in order.group_by_base(order.partitions).items():
        if deletes := version.new_deletes(base, names, order.marks):
            found |= find_deleted_partitions(deletes, names, order.expected, order.own)
    return found


@traces.span("commit")
def commit_replacement(
    order: Replacement, table: PublishTable, content: ContentPort, log: IntentLog
) -> ReplacementResult:
    """Publish or roll back and return what landed; raises ``PublishConflict`` with main untouched."""
    content = CachedContent(content)
    # first: the undo branch and rewritten rows are written on branches that start at the guard
    table.ensure_guard(order.target)
    version = table.version(order.target)
    try:
        first = examine_version(order, version, content)
    except PublishConflict as conflict:
        return _restore_unrecorded(order, version, table, log, conflict)
    # the intent is recorded before anything is written, so that recovery can find and close it after a crash
    publication_id = log.open_intent(build_intent(order, first).to_dict())
    written = 0
    try:
        failpoint(f"{order.kind}.after_intent")
        if order.rewrite:
            order, written = _rewrite_rows(order, publication_id, table)
            failpoint(f"{order.kind}.after_carry")
        return _commit_with_retries(order, publication_id, first, written, table, content, log)
    except Exception as error:
        # the commit may have landed despite the exception; only the table can tell
        landed = close_intent(order.target, publication_id, order.partitions, table, log, reason=first_line(error))
        if landed is not None:
            return _build_result(order, publication_id, landed, first, written)
        if isinstance(error, ErrataError):
            raise
        raise failed_error(order.kind, order.run_id, first_line(error), "main is unchanged") from error


def _restore_unrecorded(
    order: Replacement, version: TableVersion, table: PublishTable, log: IntentLog, conflict: PublishConflict
) -> ReplacementResult:
    """Record what this run published before the ledger was restored from a backup, if main still holds exactly that."""
    # a conflict without partitions concerns the whole table, which is no longer the planned one
    found = find_unrecorded(order, version, table, log) if conflict.fields.get("partitions") else None
    if found is None:
        raise unrecorded_error(conflict, log)
    log.last_look()
    before = Examination(found.base_snapshot_id, found.removed, ())
    log.restore(found.publication_id, found.snapshot_id, build_intent(order, before).to_dict())
    return _build_result(order, found.publication_id, found.snapshot_id, before, 0)


def _commit_with_retries(
    order: Replacement,
    publication_id: str,
    seen: Examination,
    written: int,
    table: PublishTable,
    content: ContentPort,
    log: IntentLog,
) -> ReplacementResult:
    kept: tuple[tuple[str, ...], str] | None = None
    carried, trouble = NOTHING_CARRIED, "no answer"
    # preparing a try (carried rows, undo set) takes an extra round, hence twice the tries
    for _ in range(2 * MAX_TRIES):
        # every round: recovery by another process may have closed the intent while this one waited for Spark
        require_open(order, table.find_outcome(order.target, publication_id))
        version = table.version(order.target)
        found = seen = examine_version(order, version, content, seen)
        if not carried.is_current(found.remove):
            # Spark writes files here, which takes time: examine the newest version again before committing
            carried = carry_over(
                carried, order.target, publication_id, found.snapshot_id, order.partitions, found.remove, table
            )
            failpoint(f"{order.kind}.after_carry")
            continue
        found = replace(found, remove=carried.taken(found.remove))
        if (found.paths, carried.source) != kept:
            # intent and undo branch must hold exactly what the commit removes before it removes it
            log.update(publication_id, build_intent(order, found, carried).to_dict())
            table.write_undo(
                order.target, publication_id, found.snapshot_id, order.partitions, found.paths, order.undo_days
            )
            kept = (found.paths, carried.source)
            failpoint(f"{order.kind}.after_undo")
            continue
        # last, because it may refuse for what happened while rows were written, such as an erasure
        log.last_look()
        failpoint(f"{order.kind}.before_commit")
        landed, trouble = _try_commit(order, publication_id, found, carried, version, table)
        if landed is not None:
            failpoint(f"{order.kind}.after_commit")
            # after the commit: a crash in between leaves the intent open, and recovery finds the snapshot on the table
            log.record_committed(publication_id, landed)
            failpoint(f"{order.kind}.after_record")
            return _build_result(order, publication_id, landed, found, written + len(carried.files))
    lost = f"other commits came first in every try; the last ended with {trouble}"
    raise contention_error(order.kind, order.run_id, lost, order.on_live_write)


def require_open(order: Replacement, found: PublicationLookup) -> None:
    """Refuse to continue a publication that has ended; closing its intent finds out how it ended."""
    if found.outcome is Outcome.ABSENT:
        return
    raise contention_error(order.kind, order.run_id, "another process closed this publication", "")


def _build_result(
    order: Replacement, publication_id: str, landed: str, found: Examination, written: int
) -> ReplacementResult:
    return ReplacementResult(
        publication_id,
        landed,
        found.snapshot_id,
        len(found.paths),
        len(order.add_paths),
        found.compacted,
        written,
    )


def _try_commit(
    order: Replacement,
    publication_id: str,
    found: Examination,
    carried: CarryState,
    version: TableVersion,
    table: PublishTable,
) -> tuple[str | None, str]:
    """Commit once; returns the snapshot if the table has it, and the error text, which decides nothing."""
    commit = PublicationCommit(
        publication_id=publication_id,
        run_id=order.run_id,
        manifest_digest=order.manifest_digest,
        partitions=order.partitions,
        remove=found.paths,
        add=order.add_paths,
        add_from=order.add_from,
        keep_refs={
            **order.keep_refs,
            **carried.refs,
            undo_branch(publication_id): order.undo_days,
            GUARD: FOR_EVER_DAYS,
        },
        pre_days=order.undo_days if found.with_deletes else 3,
        pub_days=order.pub_days,
        properties={
            "errata.publication": publication_id,
            "errata.run": order.run_id,
            "errata.manifest": order.manifest_digest,
            "errata.kind": order.kind,
            SCOPE_PROPERTY: scope_digest(order.partitions),
            **order.properties,
        },
        add_table=order.add_table,
        # a rollback restores files, never the schema: columns added since are NULL in the restored rows
        add_columns=(find_columns_to_add(order.target, version.schema) or ()) if order.kind == "publish" else (),
        carried=tuple(sorted(file.path for file in carried.files)),
        carried_from=carried.source,
    )
    trouble = ""
    try:
        version.commit(commit)
    except ErrataError:
        raise
    except Exception as error:  # noqa: BLE001  whatever was raised, only the table knows what happened
        trouble = first_line(error)
    # also without an exception: a publication counts only after its snapshot could be opened
    return table.find_outcome(order.target, publication_id).snapshot_id, trouble


def _rewrite_rows(order: Replacement, publication_id: str, table: PublishTable) -> tuple[Replacement, int]:
    """Write the rows of partitions whose old files cannot be added back into new files."""
    add, sources, refs, written = dict(order.add), list(order.add_from), dict(order.keep_refs), 0
    for n, (snapshot, partitions) in enumerate(order.rewrite.items(), 1):
        branch = rows_branch(publication_id, n)
        source = table.rewrite(order.target, branch, snapshot, partitions, order.without)
        refs[branch] = STEP_DAYS
        files = table.files_of(order.target, source, partitions)
        add |= group_by_partition(files, partitions)
        sources.append(source)
        written += len(files)
    return replace(order, add=add, add_from=tuple(sources), keep_refs=refs), written


def build_intent(order: Replacement, found: Examination, carried: CarryState = NOTHING_CARRIED) -> Intent:
    """The exact paths to remove and add, and the snapshot that was examined."""
    rows = None
    if shares_files(order.target):
        files = tuple(ExpectedFile(file.path, file.rows, "data") for file in carried.files)
        rows = CarriedRows(found.shared, files, carried.source)
    return Intent(
        kind=order.kind,
        partitions=order.partitions,
        base_snapshot_id=found.snapshot_id,
        remove=group_by_partition(found.remove, order.partitions),
        add=order.add,
        add_from=order.add_from,
        compacted=found.compacted,
        with_deletes=found.with_deletes,
        rewrite=order.rewrite,
        columns=order.target.new_columns,
        carried=rows,
    )
