"""One attempt at one chunk, from claim to adoption, with its own heartbeat.

Output counts only once the ledger adopts it; what an attempt appended before that is never read. A failure of the
chunk is recorded and the other chunks continue. Storage that refuses a write gives the chunk back, a dead JVM counts as
a lost worker, and both stop this worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from errata import logs, traces
from errata.errors import (
    AttemptLost,
    EngineError,
    ErrataError,
    ForeignPartition,
    OutOfMemory,
    StorageRefused,
    WorkerDied,
)
from errata.failpoints import failpoint
from errata.gate.newest_list import read_newest_list
from errata.ledger import AttemptRecord, RunRecord
from errata.log_fields import describe_attempt
from errata.model.audit import Actor
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import format_ranges
from errata.model.rebase import LIVE_WINS, Rebase, apply_rebase
from errata.model.run import ChunkState
from errata.ports.compute import ChunkWork, StagedOutput
from errata.ports.hooks import ProgressListener
from errata.worker.chunk_failures import error_policy
from errata.worker.heartbeat import attempt_lease, beating
from errata.worker.ledger_wait import retry_ledger_call
from errata.workspace import Workspace

_WORKER_ERRORS = (StorageRefused, WorkerDied)


@dataclass(frozen=True, slots=True)
class RunJob:
    """What all attempts of this worker at a run share."""

    workspace: Workspace
    actor: Actor
    run: RunRecord
    manifest: Manifest
    parts: Mapping[str, bytes]
    progress: ProgressListener
    attempts: int  # failed attempts at one chunk before it is quarantined
    stop: threading.Event = field(default_factory=threading.Event)


def build_chunk_work(job: RunJob, attempt: AttemptRecord) -> ChunkWork:
    """Input of the engine for this attempt."""
    chunk = Chunk(attempt.chunk_id, attempt.partitions, 0, 0)
    earlier = _find_earlier_snapshots(job) if any(pin.own for pin in job.manifest.inputs) else {}
    rebases = _read_rebases(job)
    pinned = apply_rebase(read_newest_list(job.workspace, job.manifest), rebases, chunk.partitions)
    return ChunkWork(
        job.run.run_id, pinned, job.run.manifest_digest, chunk, attempt.attempt_id, _read_parts(job, rebases), earlier,
        attempt.started_at,
    )  # fmt: skip


def _read_rebases(job: RunJob) -> tuple[Rebase, ...]:
    """Partitions pinned again since the plan; read for every chunk, because a wave may be rebased while others run."""
    if job.manifest.publish.on_live_write != LIVE_WINS:
        return ()
    return job.workspace.ledger.rebases.list(job.run.run_id)


def _read_parts(job: RunJob, rebases: tuple[Rebase, ...]) -> Mapping[str, bytes]:
    """The code zip and the pinned file lists, by digest."""
    wanted = {pin.files_part for rebase in rebases for pin in rebase.inputs if pin.files_part} - job.parts.keys()
    return {**job.parts, **{digest: job.workspace.ledger.parts.get(digest) for digest in wanted}}


def _find_earlier_snapshots(job: RunJob) -> dict[str, str]:
    chunks = job.workspace.ledger.progress.chunks(job.run.run_id)
    done = [chunk for chunk in chunks if chunk.state is ChunkState.DONE]
    return {name: chunk.snapshot_id or "" for chunk in done for name in chunk.partitions}


def attempt_chunk(job: RunJob, attempt: AttemptRecord, work: ChunkWork) -> None:
    """Compute, append and adopt a chunk; raise only what must stop the whole worker."""
    shown = format_ranges(job.manifest.target.grain, work.chunk.partitions)
    job.progress.show(work.chunk.chunk_id, f"{shown}  running  {attempt.owner.name}  fence {attempt.fence}")
    taken = threading.Event()

    def renew() -> bool:
        if not job.workspace.ledger.chunks.heartbeat(attempt, attempt_lease()):
            taken.set()  # another worker has the chunk, or the run was cancelled
        if taken.is_set() or job.stop.is_set():
            # at every beat, because an attempt runs several Spark jobs and may be between two of them now
            job.workspace.engines.chunks.cancel(work)
        return True

    fields = describe_attempt(job.run.run_id, job.manifest, work.chunk, attempt.attempt_id, attempt.fence)
    try:
        with (
            logs.bind(fields),
            traces.span("chunk", run=job.run.run_id, chunk=work.chunk.chunk_id, fence=attempt.fence),
            beating(attempt_lease(), renew, f"heart-{attempt.attempt_id}"),
        ):
            logs.log("attempt.started", owner=attempt.owner.name)
            _stage_and_adopt(job, attempt, work)
    except AttemptLost as lost:
        job.workspace.narrate(f"chunk {work.chunk.chunk_id}: {lost.message}")
    except ErrataError as error:
        with logs.bind(fields):
            logs.log("attempt.error", logging.WARNING, code=error.code)
            _record_failure(job, attempt, error, was_taken=taken.is_set())
    finally:
        job.progress.show(work.chunk.chunk_id, None)


def _stage_and_adopt(job: RunJob, attempt: AttemptRecord, work: ChunkWork) -> None:
    engine, started = job.workspace.engines.chunks, time.monotonic()
    try:
        staged = _stage_chunk(job, work)
        cost = engine.cost(work)
    except ErrataError:
        raise
    except Exception as error:
        raise engine.explain(work, error) from error
    seconds = time.monotonic() - started

    def adopt() -> None:
        job.workspace.ledger.chunks.adopt(
            attempt,
            snapshot_id=staged.snapshot_id,
            rows=staged.rows,
            files=len(staged.files),
            bytes=staged.bytes,
            seconds=seconds,
            actor=job.actor,
            cost=cost,
            erasure_snapshot_id=work.manifest.erasure.snapshot_id if work.manifest.erasure else None,
        )

    retry_ledger_call(adopt, job.workspace)
    failpoint("stage.after_adopt")
    job.progress.advance(work.chunk.partitions, staged.rows)


def _record_failure(job: RunJob, attempt: AttemptRecord, error: ErrataError, *, was_taken: bool) -> None:
    ledger, actor = job.workspace.ledger, job.actor
    if job.stop.is_set() or isinstance(error, StorageRefused):
        # not the chunk's fault, so it does not count as a failed attempt
        reason = error.code if isinstance(error, StorageRefused) else "interrupted"
        ledger.chunks.give_back(attempt, actor=actor, reason=reason)
    else:
        try:
            lost_worker = isinstance(error, (WorkerDied, OutOfMemory))
            code = OutOfMemory.code if error.fields.get("memory") else error.code
            fate = retry_ledger_call(
                lambda: ledger.chunks.fail(
                    attempt,
                    error_code=code,
                    message=error.message,
                    actor=actor,
                    fate=error_policy(error, job.attempts),
                    lost_worker=lost_worker,
                ),
                job.workspace,
            )
            told = f"; {fate.why}" if fate.why else f"; again in {fate.wait_seconds:.0f} s" if fate.wait_seconds else ""
            # the frames of the user's code come with the result, so that workers in parallel do not mix them
            first = error.message.splitlines()[0]
            named = first if first.startswith("chunk ") else f"chunk {attempt.chunk_id} failed: {first}"
            job.workspace.narrate(f"{named}{told}")
        except AttemptLost as lost:
            # the lease ran out and another worker has the chunk, which made the heartbeat stop our jobs
            why = "its jobs were stopped" if was_taken else lost.message
            job.workspace.narrate(f"chunk {attempt.chunk_id} belongs to another worker now: {why}")
    if isinstance(error, _WORKER_ERRORS) and not job.stop.is_set():
        raise error


def _stage_chunk(job: RunJob, work: ChunkWork) -> StagedOutput:
    chunks, staging, target = job.workspace.engines.chunks, job.workspace.engines.staging, job.manifest.target
    chunks.check_sources(work)
    try:
        chunks.append(work)
    except WorkerDied:
        raise
    except Exception:
        # the commit may have landed although the call failed; only the table knows
        staged = staging.find_attempt(target, work.attempt)
        if staged is None:
            raise
    else:
        staged = staging.find_attempt(target, work.attempt)
    if staged is None:
        raise EngineError(f"attempt {work.attempt} left no snapshot on {target.table}")
    # again, because a source file may have changed while it was read
    chunks.check_sources(work)
    refuse_foreign_partitions(work, {file.partition or "unpartitioned" for file in staged.files})
    return staged


def refuse_foreign_partitions(work: ChunkWork, found: Collection[str]) -> None:
    """Refuse output in partitions that do not belong to the chunk."""
    target, owned = work.manifest.target, set(work.chunk.partitions)
    if foreign := sorted(set(found) - owned):
        raise ForeignPartition(
            f"{work.where} produced rows for {', '.join(foreign[:10])}"
            f"{' and more' if len(foreign) > 10 else ''}; expected only {format_ranges(target.grain, owned)}",
            state="its output is not adopted; main is unchanged",
            hint="filter the transform's output to ctx.partitions",
            partitions=foreign,
        )
