"""Publish and roll back: every precondition again, then one replacement through the publisher."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from errata.errors import ApprovalRefused, NotFound, PublishConflict, RunExpired, StateRefused, UsageError
from errata.executor.cleaning import unpin
from errata.executor.desk import Desk
from errata.executor.drift import replacement
from errata.executor.settling import LedgerLog, settle_open
from errata.executor.validating import candidate_digest
from errata.ledger import CandidateRecord, PartitionState, RunRecord
from errata.model.audit import Actor
from errata.model.duration import days
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.partition import fold_text, parse_list
from errata.model.product import Role
from errata.model.refs import candidate_branch, pre_tag, undo_branch
from errata.model.run import PublicationState, RunState
from errata.model.table import FileSets, by_partition
from errata.model.views import PublishView, RollbackView
from errata.publisher.replace import Replacement, carry_out, first_line
from errata.publisher.requirements import Facts, unmet
from errata.validator.names import content_columns
from errata.validator.ports import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT

__all__ = ["chosen", "publish", "rollback"]

S = RunState
_CANDIDATE_DAYS = 7


def publish(desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None) -> PublishView:
    """Release the candidate: one metadata-only commit of the chosen partitions."""
    started = time.monotonic()
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.PUBLISHER,), "publish", run.run_id)
    desk.not_the_requester(actor, run.planned_by, "publish", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    asked = chosen(manifest, partitions)
    states = desk.ledger.partition_states(run.run_id)
    scope = tuple(name for name in asked if states[name] is PartitionState.UNPUBLISHED)
    if not scope:
        return _already(desk, run, manifest, asked, states)
    candidate = _released(desk, actor, run, manifest)
    order = _publication(desk, run, manifest, candidate, scope)
    verdict = desk.ledger.latest_verdict(run.run_id)
    log = LedgerLog(
        desk, actor, run.run_id, "publish", run.table, scope, manifest.reason,
        {"candidate": candidate.n, "snapshot_id": candidate.snapshot_id, "digest": candidate.digest,
         "accepted": [w.check for w in desk.ledger.acceptances_of_warnings(run.run_id)],
         "checks": len(verdict.checks) if verdict else 0},
    )  # fmt: skip
    with _told(desk, actor, run, "publish"), log.kept_alive():
        done = carry_out(order, desk.engines.publishing, desk.engines.content, log)
    run = desk.ledger.run(run.run_id)
    warnings, live_commits = _afterwards(desk, actor, run, manifest, done.snapshot_id)
    return PublishView(
        run_id=run.run_id,
        state=run.state.value,
        already=False,
        publication_id=done.publication_id,
        snapshot_id=done.snapshot_id,
        partitions=scope,
        data_files_written=done.data_files_written,
        removed_files=done.removed,
        added_files=done.added,
        compacted=done.compacted,
        live_commits=live_commits,
        seconds=round(time.monotonic() - started, 3),
        undo_until=_undo_until(desk.now(), manifest),
        grain=manifest.target.grain.value,
        warnings=warnings,
    )


def rollback(
    desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None, reason: str
) -> RollbackView:
    """Restore what the chosen partitions held before this run, as a new commit."""
    started = time.monotonic()
    if not reason.strip():
        raise UsageError("a rollback without a reason was refused; expected --reason with why it is taken back")
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.PUBLISHER,), "rollback", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    asked = chosen(manifest, partitions)
    states = desk.ledger.partition_states(run.run_id)
    scope = tuple(name for name in asked if states[name] is PartitionState.ACCEPTED)
    if not scope:
        return _rolled_back_already(desk, actor, run, manifest, asked, states)
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over and partitions is not None:
        raise _superseded(desk, run, manifest, taken_over)
    order = _undo(desk, run, manifest, scope)
    log = LedgerLog(desk, actor, run.run_id, "rollback", run.table, scope, reason, {})
    with _told(desk, actor, run, "rollback"), log.kept_alive():
        done = carry_out(order, desk.engines.publishing, desk.engines.content, log)
    run = desk.ledger.run(run.run_id)
    return RollbackView(
        run_id=run.run_id,
        state=run.state.value,
        already=False,
        publication_id=done.publication_id,
        snapshot_id=done.snapshot_id,
        partitions=scope,
        data_files_written=done.data_files_written,
        seconds=round(time.monotonic() - started, 3),
        grain=manifest.target.grain.value,
        product=run.product,
    )


def chosen(manifest: Manifest, partitions: str | Sequence[str] | None) -> tuple[str, ...]:
    """The partitions a command names, which must be the run's; all of them when it names none."""
    if partitions is None:
        return manifest.partitions
    text = partitions if isinstance(partitions, str) else ",".join(partitions)
    found = parse_list(manifest.target.grain, text)
    foreign = [name for name in found if name not in set(manifest.partitions)]
    if foreign:
        raise NotFound(
            f"{fold_text(manifest.target.grain, foreign)} is not part of this run; expected partitions of "
            f"{fold_text(manifest.target.grain, manifest.partitions)}",
            state="nothing was changed",
        )
    return found


def _released(desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest) -> CandidateRecord:
    """The candidate that was judged, if everything that was promised about it still holds."""
    verdict = desk.ledger.latest_verdict(run.run_id)
    judged = {c.n: c for c in desk.ledger.candidates(run.run_id)}
    candidate = judged.get(verdict.candidate_n) if verdict else None
    if run.state not in (S.VALIDATED, S.PART_PUBLISHED) or candidate is None or candidate.snapshot_id is None:
        error = StateRefused(
            f"publish of {run.run_id} was refused; expected a validated run, found {run.state}",
            state="main is unchanged",
            hint=f"errata status {run.run_id}",
        )
        desk.ledger.refuse(run.run_id, actor, "publish", error.message)
        raise error
    files = desk.engines.publishing.files_of(manifest.target, candidate.snapshot_id, manifest.partitions)
    problems = unmet(
        Facts(
            manifest_digest=run.manifest_digest,
            requested_by=manifest.requested_by,
            single_user=manifest.single_user and desk.project.single_user,
            approvals=tuple((a.person, a.decision, a.digest) for a in desk.ledger.approvals(run.run_id)),
            approvers=frozenset(n for n, p in desk.project.people.items() if Role.APPROVER in p.roles),
            verdict_passed=bool(verdict and verdict.passed and verdict.candidate_n == candidate.n),
            candidate_digest=candidate.digest,
            found_digest=candidate_digest(manifest, files),
        )
    )
    if problems:
        raised = ApprovalRefused(
            f"publish of {run.run_id} was refused: {'; '.join(problems)}",
            state="main is unchanged; the staged output is kept",
            hint=f"errata show {run.run_id}",
            problems=list(problems),
        )
        desk.ledger.refuse(run.run_id, actor, "publish", raised.message)
        raise raised
    return candidate


def _publication(
    desk: Desk, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...]
) -> Replacement:
    target, snapshot_id = manifest.target, candidate.snapshot_id or ""
    files = desk.engines.publishing.files_of(target, snapshot_id, scope)
    return replace(
        replacement(desk, run, manifest, scope),
        add=by_partition(files, scope),
        add_from=(snapshot_id,),
        undo_days=days(manifest.rollback_window),
        keep_refs={candidate_branch(run.run_id, candidate.n): _CANDIDATE_DAYS},
        properties={"errata.candidate-digest": candidate.digest},
    )


def _undo(desk: Desk, run: RunRecord, manifest: Manifest, scope: tuple[str, ...]) -> Replacement:
    """What each partition held before the publication that brought its content in."""
    accepted = desk.ledger.accepted(run.table, scope)
    by_publication: dict[str, list[str]] = {}
    for name in scope:
        by_publication.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    refs = desk.engines.pins.refs(run.table)
    expected: dict[str, tuple[ExpectedFile, ...]] = {}
    add: dict[str, tuple[ExpectedFile, ...]] = {}
    sources: list[str] = []
    rewrite: dict[str, tuple[str, ...]] = {}
    for pub_id, names in by_publication.items():
        detail = desk.ledger.publication_detail(pub_id)
        expected |= _files(detail["add"], names)
        with_deletes = tuple(name for name in names if name in detail["with_deletes"])
        clean = [name for name in names if name not in with_deletes]
        add |= _files(detail["remove"], clean)
        needed = {undo_branch(pub_id): bool(clean), pre_tag(pub_id): bool(with_deletes)}
        if any(wanted and ref not in refs for ref, wanted in needed.items()):
            raise _window_over(run, manifest, pub_id)
        if clean:
            sources.append(refs[undo_branch(pub_id)])
        if with_deletes:
            rewrite[refs[pre_tag(pub_id)]] = with_deletes
    publications = [desk.ledger.publication(pub_id) for pub_id in by_publication]
    window = days(manifest.rollback_window)
    return Replacement(
        kind="rollback",
        run_id=run.run_id,
        manifest_digest=run.manifest_digest,
        target=manifest.target,
        partitions=scope,
        expected=expected,
        base_snapshot_id=min(publications, key=lambda p: p.settled_at or "").result_snapshot_id,
        add=add,
        add_from=tuple(sources),
        undo_days=window,
        keep_refs={undo_branch(pub_id): window for pub_id in by_publication if undo_branch(pub_id) in refs},
        content_columns=content_columns(manifest),
        own=_committed(desk, run.table),
        known_content=_measured_content(desk, run, scope),
        rewrite=rewrite,
    )


def _committed(desk: Desk, table: str) -> frozenset[str]:
    """Every publication of ours on this table: later ones on these partitions were all taken back, or this would not be
    the accepted run; their commits are no one else's writes."""
    runs = [run for run in desk.ledger.runs() if run.table == table]
    return frozenset(
        publication.pub_id
        for run in runs
        for publication in desk.ledger.publications(run.run_id)
        if publication.state is PublicationState.COMMITTED
    )


def _files(listed: Mapping[str, Sequence[Sequence[Any]]], names: Sequence[str]) -> FileSets:
    return {
        name: tuple(ExpectedFile(path, rows, content) for content, path, rows in listed.get(name, ())) for name in names
    }


def _measured_content(desk: Desk, run: RunRecord, scope: Sequence[str]) -> Mapping[str, str]:
    """What the gate measured of these partitions: it outlives every snapshot."""
    candidate = desk.ledger.latest_candidate(run.run_id)
    stored = desk.ledger.measurements(run.run_id, candidate.n) if candidate else ()
    found: dict[str, dict[str, str]] = {name: {} for name in scope}
    for m in stored:
        if m.scope == CANDIDATE and m.partition in found and m.name in (ROW_COUNT, CONTENT_A, CONTENT_B):
            found[m.partition][m.name] = m.value or "0"
    return {
        name: f"{values[ROW_COUNT]}:{values[CONTENT_A]}:{values[CONTENT_B]}"
        for name, values in found.items()
        if len(values) == 3
    }


def _window_over(run: RunRecord, manifest: Manifest, pub_id: str) -> RunExpired:
    return RunExpired(
        f"rollback of {run.run_id} was refused; the undo set of {pub_id} is gone "
        f"(it was promised for {manifest.rollback_window})",
        state="main is unchanged",
        hint=f'restore by a new run: errata plan {run.product} --partitions … --reason "…"',
    )


def _superseded(desk: Desk, run: RunRecord, manifest: Manifest, names: Sequence[str]) -> PublishConflict:
    later = sorted({record.run_id or "" for record in desk.ledger.accepted(run.table, names).values()})
    return PublishConflict(
        f"rollback of {run.run_id} was refused; {fold_text(manifest.target.grain, names)} was published again by "
        f"{', '.join(later)}",
        state="main is unchanged",
        hint=f'later runs first: errata rollback {later[0]} --reason "…"',
        partitions=list(names),
    )


def _already(
    desk: Desk, run: RunRecord, manifest: Manifest, asked: Sequence[str], states: Mapping[str, PartitionState]
) -> PublishView:
    gone = [name for name in asked if states[name] is PartitionState.ROLLED_BACK]
    if gone:
        raise StateRefused(
            f"publish of {run.run_id} was refused; {fold_text(manifest.target.grain, gone)} was rolled back, "
            "and what was rolled back is not published again",
            state="main is unchanged",
            hint=f'errata plan {run.product} --partitions … --reason "…"',
            partitions=gone,
        )
    last = [p for p in desk.ledger.publications(run.run_id) if p.kind == "publish" and p.result_snapshot_id][-1]
    return PublishView(
        run_id=run.run_id,
        state=run.state.value,
        already=True,
        publication_id=last.pub_id,
        snapshot_id=last.result_snapshot_id or "",
        partitions=tuple(asked),
        data_files_written=last.data_files_written or 0,
        removed_files=0,
        added_files=0,
        compacted=(),
        live_commits=0,
        seconds=0.0,
        undo_until=_undo_until(datetime.fromisoformat(last.settled_at or ""), manifest),
        grain=manifest.target.grain.value,
    )


def _rolled_back_already(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    asked: Sequence[str],
    states: Mapping[str, PartitionState],
) -> RollbackView:
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over:
        raise _superseded(desk, run, manifest, taken_over)
    if any(states[name] is PartitionState.UNPUBLISHED for name in asked):
        error = StateRefused(
            f"rollback of {run.run_id} was refused; nothing of it is published ({run.state})",
            state="main is unchanged",
            hint=f"errata cancel {run.run_id}",
        )
        desk.ledger.refuse(run.run_id, actor, "rollback", error.message)
        raise error
    last = [p for p in desk.ledger.publications(run.run_id) if p.kind == "rollback" and p.result_snapshot_id][-1]
    return RollbackView(
        run_id=run.run_id,
        state=run.state.value,
        already=True,
        publication_id=last.pub_id,
        snapshot_id=last.result_snapshot_id or "",
        partitions=tuple(asked),
        data_files_written=last.data_files_written or 0,
        seconds=0.0,
        grain=manifest.target.grain.value,
        product=run.product,
    )


def _afterwards(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, snapshot_id: str
) -> tuple[tuple[str, ...], int]:
    """What is looked at and tidied once the commit has landed; trouble here is a warning, the publication stands."""
    try:
        warnings = _changed_since(desk, manifest, snapshot_id)
        live_commits = _live_commits(desk, manifest)
        unpin(desk, actor, run, manifest)
    except Exception as error:  # noqa: BLE001  whatever it is, the publication has landed
        return (f"published, but tidying up did not end well: {first_line(error)}; errata cleanup does the rest",), 0
    return warnings, live_commits


def _changed_since(desk: Desk, manifest: Manifest, snapshot_id: str) -> tuple[str, ...]:
    """REST catalogs do not assert schema and spec in a commit, so look at them again afterwards."""
    version, target = desk.engines.publishing.version(manifest.target), manifest.target
    if (version.schema_id, version.spec_id) == (target.schema_id, target.spec_id):
        return ()
    what = f"the schema or partition spec of {target.table} changed while snapshot {snapshot_id} was committed"
    return (f"{what}; look at the table, and roll back if in doubt",)


def _live_commits(desk: Desk, manifest: Manifest) -> int:
    """How often others moved main between planning and publishing."""
    history = desk.engines.publishing.version(manifest.target).history(manifest.target.base_snapshot_id, ())
    return sum(1 for commit in history.commits if not commit.summary.get("errata.publication"))


def _undo_until(now: datetime, manifest: Manifest) -> str:
    return (now + timedelta(days=days(manifest.rollback_window))).date().isoformat()


class _told:  # noqa: N801  reads as a statement: with told(...)
    """A conflict is audited before it is raised."""

    def __init__(self, desk: Desk, actor: Actor, run: RunRecord, action: str) -> None:
        self._facts = (desk, actor, run, action)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        desk, actor, run, action = self._facts
        if isinstance(error, PublishConflict):
            error.hint = (error.hint or "").replace("PRODUCT", run.product)
            desk.ledger.refuse(run.run_id, actor, action, error.message, {"conflict": True})
