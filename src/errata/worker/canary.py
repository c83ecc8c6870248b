"""The canary: a few partitions that are computed and judged before the rest of the run may start.

Its files become a candidate like any other, measured and judged by the run's own rules. A blocking finding rejects the
run; warnings are shown here and decided at the gate of the whole run. The time it took refines the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from errata.canonical import to_plain
from errata.errors import StateRefused, ValidationRejected
from errata.gate.candidate import assemble_candidate, describe_candidate, measure_candidate
from errata.gate.verdict.judge import Verdict, judge_candidate
from errata.ledger import CandidateRecord, ChunkRecord, RunRecord
from errata.model.manifest import Chunk, Estimate
from errata.model.run import ChunkState, RunState
from errata.model.waves import narrow_to_partitions
from errata.planning.estimate import count_worker_cores, refine_estimate
from errata.planning.repack import ChunkTiming
from errata.views import ValidateView
from errata.worker.attempt import RunJob
from errata.workspace import RunContext, Workspace

CANARY_FACT = "canary"
REJECTED_FACT = "canary.rejected"


def judge_canary(job: RunJob) -> bool:
    """Judge the canary if it is computed and not judged yet; False when there is nothing to judge."""
    try:
        return _judge_computed_canary(job)
    except StateRefused:
        # the run was paused or ended meanwhile, or another worker judged the canary: the caller reads the state again
        ledger, run_id = job.workspace.ledger, job.run.run_id
        if ledger.runs.get(run_id).state is RunState.RUNNING and CANARY_FACT not in ledger.facts.list(run_id):
            raise
        return True


def _judge_computed_canary(job: RunJob) -> bool:
    workspace, run = job.workspace, job.run
    chunks = workspace.ledger.progress.chunks(run.run_id)
    canary = [chunk for chunk in chunks if chunk.wave == 0]
    if not canary or any(chunk.state is not ChunkState.DONE for chunk in canary):
        return False
    if CANARY_FACT in workspace.ledger.facts.list(run.run_id):
        return False
    names = {name for chunk in canary for name in chunk.partitions}
    part = narrow_to_partitions(job.manifest, names)
    context = RunContext(workspace, job.actor, run, part)
    candidate = assemble_candidate(context, canary)
    measurements = measure_candidate(context, candidate)
    verdict = judge_candidate(part, measurements, describe_candidate(workspace, part, candidate))
    if any(problem.level == "block" for problem in verdict.problems):
        _reject_run(job, verdict, candidate, len(measurements))
    warned = sorted({problem.name for problem in verdict.problems})
    estimate = _refine_estimate(job, canary, [chunk for chunk in chunks if chunk.wave != 0])
    fact = {
        "partitions": list(part.partitions),
        "candidate": candidate.branch,
        "checks": len(verdict.checks),
        "warnings": warned,
        "seconds_low": estimate.seconds_low,
        "seconds_high": estimate.seconds_high,
        "usd": estimate.usd,
        "basis": estimate.basis,
    }
    # this note lets the other chunks start; of several workers only the first to record it abandons the candidate
    _, already = workspace.ledger.facts.record(run.run_id, CANARY_FACT, fact, job.actor)
    if not already:
        workspace.ledger.candidates.abandon(run.run_id, candidate.n, job.actor, "the canary passed")
        told = f" with warnings on {', '.join(warned)}" if warned else ""
        workspace.narrate(
            f"canary of {len(names)} partitions passed {len(verdict.checks)} checks{told}; the whole run will take "
            f"{estimate.seconds_low:,}-{estimate.seconds_high:,} s ({estimate.basis})"
        )
    return True


def _reject_run(job: RunJob, verdict: Verdict, candidate: CandidateRecord, measured_count: int) -> None:
    """Reject the run. The verdict is recorded before the state changes, so that every later worker can report it."""
    workspace, run_id = job.workspace, job.run.run_id
    fact = {
        "snapshot_id": candidate.snapshot_id or "",
        "candidate": candidate.branch,
        "checks": [to_plain(check) for check in verdict.checks],
        "measured": measured_count,
    }
    workspace.ledger.facts.record(run_id, REJECTED_FACT, fact, job.actor)
    body = {"canary": [to_plain(problem) for problem in verdict.problems[:50]]}
    try:
        workspace.ledger.runs.move(run_id, RunState.REJECTED, actor=job.actor, action="canary.rejected", body=body)
    except StateRefused:
        # another worker rejected it at the same moment
        if workspace.ledger.runs.get(run_id).state is not RunState.REJECTED:
            raise
    refuse_rejected_canary(workspace, workspace.ledger.runs.get(run_id))


def refuse_rejected_canary(workspace: Workspace, run: RunRecord) -> None:
    """Raise in every worker, with the verdict in the form of ``errata validate``, if the canary rejected this run."""
    rejected = workspace.ledger.facts.list(run.run_id).get(REJECTED_FACT)
    # if the canary was the whole run, the gate may have judged it again, and then the verdict of the gate counts
    if run.state is not RunState.REJECTED or rejected is None or workspace.ledger.candidates.latest_verdict(run.run_id):
        return
    counts = workspace.ledger.progress.counts(run.run_id)
    first = next(check for check in rejected["checks"] if check["level"] == "block")
    raise ValidationRejected(
        f"the canary did not pass: {first['partition'] or 'the candidate'}: {first['name']}: {first['message']}",
        state=f"{counts.done} of {counts.total} chunks are staged, nothing else was computed; main is unchanged",
        hint=f'errata diff {run.run_id}\nerrata plan {run.product} … --supersede {run.run_id} --reason "…"',
        validation=_validate_view(workspace, run, rejected),
    )


def _validate_view(workspace: Workspace, run: RunRecord, rejected: Mapping[str, Any]) -> ValidateView:
    return ValidateView(
        run_id=run.run_id,
        state=run.state.value,
        already=False,
        passed=False,
        snapshot_id=rejected["snapshot_id"],
        candidate=rejected["candidate"],
        checks=tuple(rejected["checks"]),
        measured=rejected["measured"],
        single_user=workspace.project.single_user,
    )


def _refine_estimate(job: RunJob, done: list[ChunkRecord], left: list[ChunkRecord]) -> Estimate:
    project, product = job.workspace.project, job.workspace.product(job.manifest.product)
    rest = [Chunk(chunk.chunk_id, chunk.partitions, chunk.rows, chunk.bytes) for chunk in left]
    cores = count_worker_cores(project, product)
    return refine_estimate(job.manifest.estimate, measure_done_chunks(job, done), rest, cores, project.core_hour_usd)


def measure_done_chunks(job: RunJob, chunks: list[ChunkRecord]) -> list[ChunkTiming]:
    """Timings of done chunks, newest last."""
    started = {
        (a.chunk_id, a.fence): datetime.fromisoformat(a.started_at).timestamp()
        for a in job.workspace.ledger.progress.attempts(job.run.run_id)
    }
    found = [
        ChunkTiming(c.bytes, c.seconds, c.rows, len(c.partitions), started.get((c.chunk_id, c.fence), 0.0))
        for c in chunks
        if c.state is ChunkState.DONE and c.seconds
    ]
    return sorted(found, key=lambda one: one.started)
