"""Validate: assemble the candidate, measure it once, judge it as often as thresholds or acceptances change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from errata.canonical import digest_of
from errata.errors import StateRefused, UsageError, ValidationRejected
from errata.executor.desk import Desk
from errata.executor.drift import written_since
from errata.executor.settling import settle_open
from errata.failpoints import failpoint
from errata.ledger import CandidateRecord, CandidateState, ChunkRecord, RunRecord
from errata.ledger import Measurement as StoredMeasurement
from errata.model.audit import Actor
from errata.model.codec import plain
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.run import ChunkState, RunState
from errata.model.table import DataFile
from errata.model.views import ValidateView
from errata.validator.judge import Acceptance, CandidateFacts, Verdict, judge
from errata.validator.ports import Measurement

__all__ = ["candidate_digest", "validate"]

S = RunState
KEEP_DAYS = 7
_JUDGED = frozenset({S.STAGED, S.REJECTED, S.VALIDATED})


def validate(desk: Desk, actor: Actor, run_id: str, accept: Mapping[str, str]) -> ValidateView:
    """The verdict on the run's candidate; raises ``ValidationRejected`` when it does not pass."""
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.APPROVER,) if accept else (Role.OPERATOR, Role.APPROVER), "validate", run.run_id)
    if accept:
        desk.not_the_requester(actor, run.planned_by, "accept", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    if run.state not in _JUDGED:
        return _as_it_stands(desk, actor, run)
    candidate = _measured_candidate(desk, run)
    if candidate is None:
        candidate = _candidate(desk, actor, run, manifest, _adopted(desk, run, manifest))
    measurements = _measurements(desk, actor, run, manifest, candidate)
    facts = _facts(desk, manifest, candidate)
    _accept(desk, actor, run, accept, judge(manifest, measurements, facts))
    return _judge(desk, actor, run, manifest, candidate, facts, measurements)


def _measured_candidate(desk: Desk, run: RunRecord) -> CandidateRecord | None:
    """The candidate that is there and was measured: judging it again needs neither a scan nor a JVM."""
    candidate = desk.ledger.latest_candidate(run.run_id)
    if candidate is None or candidate.state is not CandidateState.MADE:
        return None
    if desk.engines.pins.refs(run.table).get(candidate.branch) != candidate.snapshot_id:
        return None
    return candidate if desk.ledger.measurements(run.run_id, candidate.n) else None


def _accept(desk: Desk, actor: Actor, run: RunRecord, accept: Mapping[str, str], verdict: Verdict) -> None:
    """Only a warning that is there can be accepted, and only with a reason; what blocks cannot."""
    warned = sorted({check.name for check in verdict.checks if check.level == "warn"})
    for check, why in accept.items():
        if check not in warned:
            raise UsageError(
                f"acceptance of {check!r} was refused; expected a warning of this candidate: "
                f"{', '.join(warned) or 'there is none'}",
                state="nothing was changed",
            )
        if not why.strip():
            raise UsageError(f"acceptance of {check!r} was refused; expected CHECK=WHY, because the reason is kept")
    for check, why in accept.items():
        desk.ledger.accept_warning(run.run_id, check, why, actor.person, actor)


def _facts(desk: Desk, manifest: Manifest, candidate: CandidateRecord) -> CandidateFacts:
    described = desk.engines.tables.describe(manifest.target.table)
    return CandidateFacts(candidate.detail["rows"], {column.name: column.type for column in described.columns})


def _as_it_stands(desk: Desk, actor: Actor, run: RunRecord) -> ValidateView:
    """A run that is past its gate keeps its verdict; one that is not there yet is refused."""
    verdict, candidate = desk.ledger.latest_verdict(run.run_id), desk.ledger.latest_candidate(run.run_id)
    if verdict is None or candidate is None:
        error = StateRefused(
            f"validate of {run.run_id} was refused; expected a staged run, found {run.state}",
            state="nothing was changed",
            hint=f"errata run {run.run_id}" if run.state in (S.APPROVED, S.RUNNING) else f"errata status {run.run_id}",
        )
        desk.ledger.refuse(run.run_id, actor, "validate", error.message)
        raise error
    return ValidateView(
        run_id=run.run_id,
        state=run.state.value,
        already=True,
        passed=verdict.passed,
        snapshot_id=candidate.snapshot_id or "",
        candidate=candidate.branch,
        checks=verdict.checks,
        measured=len(desk.ledger.measurements(run.run_id, candidate.n)),
    )


def _adopted(desk: Desk, run: RunRecord, manifest: Manifest) -> tuple[DataFile, ...]:
    """The files of every adopted attempt; a chunk that was never written blocks the candidate."""
    chunks = desk.ledger.chunks(run.run_id)
    missing = [chunk for chunk in chunks if chunk.state is not ChunkState.DONE or chunk.snapshot_id is None]
    if missing or {p for chunk in chunks for p in chunk.partitions} != set(manifest.partitions):
        raise StateRefused(
            f"validate of {run.run_id} was refused; {len(missing)} of {len(chunks)} chunks have no adopted output",
            state="nothing was changed",
            hint=f"errata run {run.run_id}",
        )
    return tuple(file for chunk in chunks for file in _files(desk, manifest, chunk))


def _files(desk: Desk, manifest: Manifest, chunk: ChunkRecord) -> tuple[DataFile, ...]:
    staged = desk.engines.staging.staged(manifest.target, chunk.snapshot_id or "")
    if (staged.rows, len(staged.files)) != (chunk.output_rows, chunk.output_files):
        raise StateRefused(
            f"chunk {chunk.chunk_id} has {staged.rows} rows in {len(staged.files)} files; the ledger adopted "
            f"{chunk.output_rows} in {chunk.output_files}",
            state="main is unchanged",
            hint=f"errata audit log --run {chunk.run_id}",
        )
    return staged.files


def candidate_digest(manifest: Manifest, files: tuple[DataFile, ...]) -> str:
    """What a verdict and a release bind to: scope, schema and exactly these files, in whatever order."""
    return digest_of(
        {
            "partitions": manifest.partitions,
            "schema_id": manifest.target.schema_id,
            "columns": manifest.target.columns,
            "files": sorted([file.path, file.rows] for file in files),
        }
    )


def _candidate(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, adopted: tuple[DataFile, ...]
) -> CandidateRecord:
    """The candidate made of exactly these files; the one that is there already, when it is the same."""
    digest, staging, target = candidate_digest(manifest, adopted), desk.engines.staging, manifest.target
    known = [c for c in desk.ledger.candidates(run.run_id) if c.digest == digest]
    for candidate in reversed(known):
        found = staging.find_candidate(target, candidate.branch)
        if found and candidate.state is not CandidateState.ABANDONED:
            return desk.ledger.record_candidate(
                run.run_id, candidate.n, found.base_snapshot_id, found.snapshot_id, actor
            )
    rows = dict.fromkeys(manifest.partitions, 0)
    for file in adopted:
        rows[file.partition or ""] = rows.get(file.partition or "", 0) + file.rows
    intended = desk.ledger.intend_candidate(run.run_id, digest, actor, {"rows": rows})
    failpoint("candidate.after_intent")
    paths = [file.path for file in adopted]
    made = staging.make_candidate(target, run.run_id, intended.branch, manifest.partitions, paths, KEEP_DAYS)
    failpoint("candidate.after_commit")
    return desk.ledger.record_candidate(run.run_id, intended.n, made.base_snapshot_id, made.snapshot_id, actor)


def _measurements(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, candidate: CandidateRecord
) -> tuple[Measurement, ...]:
    """Numbers of this candidate; stored ones are used again, so a changed threshold never rescans."""
    stored = desk.ledger.measurements(run.run_id, candidate.n)
    if stored:
        return tuple(Measurement(m.scope, m.partition or "", m.name, m.value, m.exact) for m in stored)
    # the SQL parser takes half a second to import, and only this needs it
    from errata.validator.compile import compile_plan

    found = desk.engines.measurer.measure(
        manifest,
        compile_plan(manifest),
        candidate_snapshot=candidate.snapshot_id or "",
        prior_snapshot=candidate.base_snapshot_id,
    )
    failpoint("validate.after_measure")
    desk.ledger.record_measurements(
        run.run_id,
        candidate.n,
        [StoredMeasurement(m.scope, m.partition, m.name, m.value, m.exact) for m in found],
        actor,
    )
    return found


def _judge(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    candidate: CandidateRecord,
    facts: CandidateFacts,
    measurements: tuple[Measurement, ...],
) -> ValidateView:
    accepted = [Acceptance(a.check, a.why, a.person) for a in desk.ledger.acceptances_of_warnings(run.run_id)]
    verdict = judge(manifest, measurements, facts, accepted)
    checks: tuple[Mapping[str, Any], ...] = tuple(plain(check) for check in verdict.checks)
    before = desk.ledger.latest_verdict(run.run_id)
    thresholds = digest_of([manifest.checks, manifest.reconcile, manifest.compare, [plain(a) for a in accepted]])
    already = before is not None and (before.candidate_n, before.thresholds_digest) == (candidate.n, thresholds)
    if not already:
        desk.ledger.record_verdict(run.run_id, candidate.n, verdict.passed, checks, thresholds, actor)
        failpoint("validate.after_verdict")
    run = desk.ledger.run(run.run_id)
    view = ValidateView(
        run_id=run.run_id,
        state=run.state.value,
        already=already,
        passed=verdict.passed,
        snapshot_id=candidate.snapshot_id or "",
        candidate=candidate.branch,
        checks=checks,
        measured=len(measurements),
        conflicts=() if before else written_since(desk, run, manifest),
    )
    if view.conflicts:
        desk.ledger.note(run.run_id, actor, "conflict.seen", {"partitions": list(view.conflicts)})
    if verdict.passed:
        return view
    blocking = [p for p in verdict.problems if p.level == "block"]
    warned = sorted({p.name for p in verdict.problems if p.level == "warn"})
    hint = (
        f"correct the transform and plan again with --supersede {run.run_id}"
        if blocking
        else f'if they are right, an approver says so: errata validate {run.run_id} --accept "{warned[0]}=WHY"'
    )
    counted = Counter((problem.name, problem.level) for problem in verdict.problems)
    told = [f"{name} {'blocks' if level == 'block' else 'warns'} in {n}" for (name, level), n in counted.items()]
    raise ValidationRejected(
        f"{len(verdict.problems)} findings stand in the way: {', '.join(told)}; "
        f"first: {verdict.problems[0].partition or 'the candidate'}: {verdict.problems[0].message}",
        state="main is unchanged; the candidate is kept for a look: errata diff " + run.run_id,
        hint=hint,
        validation=view,
    )
