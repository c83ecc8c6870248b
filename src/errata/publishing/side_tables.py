"""Publish to and roll back side tables: correction rows, and versions side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from errata.errors import ErrataError
from errata.failpoints import failpoint
from errata.gate.measure.names import content_columns
from errata.ledger import CandidateRecord, RunRecord
from errata.model.manifest import Manifest, TargetPin
from errata.ports.publish import (
    SCOPE_PROPERTY,
    ContentPort,
    EarlierCorrections,
    IntentLog,
    PublishTable,
    SideTable,
    Stamp,
    scope_digest,
)
from errata.publishing.expected_files import build_replacement
from errata.publishing.messages import failed_error, repeated_corrections_error
from errata.publishing.origins import find_origins
from errata.publishing.recovery import LedgerLog
from errata.publishing.replacement import (
    Examination,
    Replacement,
    ReplacementResult,
    build_intent,
    examine_version,
    require_open,
)
from errata.publishing.unrecorded import close_intent
from errata.text.exceptions import first_line
from errata.workspace import Workspace


def publish_to_side_table(
    workspace: Workspace,
    run: RunRecord,
    manifest: Manifest,
    candidate: CandidateRecord,
    scope: tuple[str, ...],
    log: LedgerLog,
) -> ReplacementResult:
    """Append the run's output to the table of corrections or of versions in one commit."""
    order = replace(
        build_replacement(workspace, run, manifest, scope), properties={"errata.candidate-digest": candidate.digest}
    )
    workspace.engines.writer.create(manifest.publish.creates)
    make = _build_corrections if manifest.publish.mode == "corrections" else _build_versions
    return _append_rows(workspace, order, make(workspace, run, manifest, candidate, scope), log)


def roll_back_side_table(
    workspace: Workspace, run: RunRecord, manifest: Manifest, scope: tuple[str, ...], reason: str, log: LedgerLog
) -> ReplacementResult:
    """Append the reverse corrections; for versions, only the ledger changes which version is accepted."""
    order = replace(build_replacement(workspace, run, manifest, scope), kind="rollback")
    if manifest.publish.mode != "corrections":
        return _record_version_rollback(workspace, order, manifest, log)
    publications = find_origins(workspace, run, scope)

    def stage(publication_id: str, branch: str) -> Mapping[str, int] | None:
        stamp = Stamp(run.run_id, publication_id, reason, _now(workspace))
        table = manifest.publish.corrections or ""
        workspace.engines.writer.reversals((table, branch), manifest.target.key, publications, stamp)
        return None

    return _append_rows(workspace, order, SideTableRows(manifest.publish.corrections or "", stage, adds_up=True), log)


def _append_rows(workspace: Workspace, order: Replacement, rows: SideTableRows, log: LedgerLog) -> ReplacementResult:
    engines = workspace.engines
    return append_to_side_table(order, rows, engines.publishing, engines.beside, engines.content, log)


def _build_corrections(
    workspace: Workspace, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...]
) -> SideTableRows:
    table, target = manifest.publish.corrections or "", manifest.target

    def stage(publication_id: str, branch: str) -> Mapping[str, int] | None:
        workspace.engines.writer.corrections(
            (table, branch),
            target,
            (target.table, target.base_snapshot_id),
            (target.staging.table, candidate.snapshot_id or ""),
            scope,
            content_columns(manifest),
            Stamp(run.run_id, publication_id, manifest.reason, _now(workspace)),
            _find_earlier_corrections(workspace, run.table, scope),
        )
        return None

    return SideTableRows(table, stage, adds_up=True)


def _find_earlier_corrections(workspace: Workspace, table: str, scope: tuple[str, ...]) -> EarlierCorrections | None:
    """Corrections of these partitions that an accepted run published without changing the target."""
    accepted = workspace.ledger.partitions.accepted(table, scope)
    origins = {name: record.origin_pub_id or "" for name, record in accepted.items() if record.run_id is not None}
    is_beside = {pub_id: _wrote_corrections(workspace, pub_id) for pub_id in set(origins.values())}
    held = tuple(name for name, pub_id in origins.items() if is_beside[pub_id])
    return EarlierCorrections(held, workspace.ledger.publications.list_committed(table)) if held else None


def _wrote_corrections(workspace: Workspace, pub_id: str) -> bool:
    publish = workspace.ledger.runs.manifest(workspace.ledger.publications.get(pub_id).run_id).publish
    return publish.mode == "corrections"


def _build_versions(
    workspace: Workspace, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...]
) -> SideTableRows:
    table = manifest.publish.versions or ""

    def stage(_publication_id: str, branch: str) -> Mapping[str, int] | None:
        # no other run can take the same number, because the partitions are locked
        numbers = _assign_version_numbers(workspace, run.table, table, manifest.target, scope)
        snapshot = candidate.snapshot_id or ""
        workspace.engines.writer.versions((table, branch), manifest.target, snapshot, numbers, run.run_id)
        return numbers

    return SideTableRows(table, stage)


def _assign_version_numbers(
    workspace: Workspace, table: str, versions: str, target: TargetPin, scope: Sequence[str]
) -> dict[str, int]:
    """Next version number of each partition, above any in the ledger or in the table.

    The table knows versions that a ledger restored from a backup does not.
    """
    before = workspace.ledger.partitions.count_publications(table, scope)
    there = workspace.engines.writer.newest_versions(versions, target, scope)
    return {name: max(before.get(name, 0), there.get(name, 0)) + 1 for name in scope}


def _record_version_rollback(
    workspace: Workspace, order: Replacement, manifest: Manifest, log: LedgerLog
) -> ReplacementResult:
    """Record a rollback in the ledger only: the rows stay, and the view follows what is accepted."""
    head = workspace.engines.beside.head(manifest.publish.versions or "")
    publication_id = log.open_intent(build_intent(order, Examination("", (), ())).to_dict())
    failpoint("rollback.after_intent")
    log.record_committed(publication_id, head)
    failpoint("rollback.after_record")
    return ReplacementResult(publication_id, head, "", 0, 0, (), 0)


def _now(workspace: Workspace) -> str:
    return workspace.now().isoformat()


_DIGEST_PROPERTY = "errata.candidate-digest"


@dataclass(frozen=True, slots=True)
class SideTableRows:
    """Rows for a side table; ``stage`` writes them to a branch and returns their version numbers, if they have any.

    ``adds_up``: readers add the rows up, so the rows of one publication must not be there twice.
    """

    table: str
    stage: Callable[[str, str], Mapping[str, int] | None]  # publication id, branch
    adds_up: bool = False


def append_to_side_table(
    order: Replacement,
    rows: SideTableRows,
    table: PublishTable,
    beside: SideTable,
    content: ContentPort,
    log: IntentLog,
) -> ReplacementResult:
    """Append rows in one commit; raises ``PublishConflict`` when the target's rows changed since they were compared."""
    found = _examine_target(order, table, content)
    if rows.adds_up and (known := _find_unrecorded_append(order, rows.table, beside, log)):
        publication_id, landed = known["errata.publication"], known["snapshot_id"]
        log.restore(publication_id, landed, build_intent(order, found).to_dict())
        return ReplacementResult(publication_id, landed, found.snapshot_id, 0, 0, found.compacted, 0)
    # the intent is recorded before anything is written, so that recovery can find and close it after a crash
    publication_id = log.open_intent(build_intent(order, found).to_dict())
    failpoint(f"{order.kind}.after_intent")
    landing = replace(order.target, table=rows.table)
    written = 0
    try:
        require_open(order, table.find_outcome(landing, publication_id))
        branch = beside.open_branch(rows.table, publication_id)
        versions = rows.stage(publication_id, branch)
        staged = beside.staged(rows.table, branch)
        written = staged.files
        # as late as possible: the commit is on another table, so check and commit cannot be atomic
        found = _examine_target(order, table, content)
        intent = replace(build_intent(order, found), versions=versions, data_files=staged.files)
        log.update(publication_id, intent.to_dict())
        log.last_look()
        failpoint(f"{order.kind}.before_commit")
        landed = beside.land(rows.table, publication_id, branch, _commit_properties(order, publication_id))
        failpoint(f"{order.kind}.after_commit")
        log.record_committed(publication_id, landed)
        failpoint(f"{order.kind}.after_record")
    except Exception as error:
        # the append may have landed despite the exception; only the side table can tell
        settled = close_intent(landing, publication_id, order.partitions, table, log, reason=first_line(error))
        if settled is None:
            if isinstance(error, ErrataError):
                raise
            raise failed_error(order.kind, order.run_id, first_line(error), "nothing was published") from error
        landed = settled
    return ReplacementResult(publication_id, landed, found.snapshot_id, 0, written, found.compacted, written)


def _examine_target(order: Replacement, table: PublishTable, content: ContentPort) -> Examination:
    """Examine the target for live writes, with nothing to remove; a rollback does not depend on the target."""
    if order.kind != "publish":
        return Examination("", (), ())
    return replace(examine_version(order, table.version(order.target), content), remove=())


def _find_unrecorded_append(
    order: Replacement, table: str, beside: SideTable, log: IntentLog
) -> Mapping[str, str] | None:
    """The run's last append for these partitions, if it is what is ordered and the ledger lacks it.

    Raises ``PublishConflict`` when that append came from another candidate.
    """
    scope = scope_digest(order.partitions)
    told = [
        one
        for one in beside.list_run_commits(table, order.run_id)
        if one.get(SCOPE_PROPERTY) == scope and not log.is_recorded(one.get("errata.publication", ""))
    ]
    if not told or told[-1].get("errata.kind") != order.kind:
        return None
    if told[-1].get(_DIGEST_PROPERTY) != order.properties.get(_DIGEST_PROPERTY):
        raise repeated_corrections_error(order.run_id, order.product, table, told[-1]["errata.publication"])
    return told[-1]


def _commit_properties(order: Replacement, publication_id: str) -> dict[str, str]:
    return {
        "errata.publication": publication_id,
        "errata.run": order.run_id,
        "errata.manifest": order.manifest_digest,
        "errata.kind": order.kind,
        SCOPE_PROPERTY: scope_digest(order.partitions),
        **order.properties,
    }
