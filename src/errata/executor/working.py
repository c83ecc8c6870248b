"""The worker: join a run, compute chunks until nothing is left, survive being killed at any point.

One process, one Spark session, up to N chunks in flight, each in its own thread with its own lease. A chunk's output
counts when the ledger adopts it: whatever an attempt appended before that is never looked at by anyone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from errata.errors import (
    AttemptLost,
    EngineError,
    ErrataError,
    ForeignPartition,
    RunExpired,
    RunFailed,
    StateRefused,
)
from errata.executor.desk import Desk
from errata.executor.ports import ChunkWork, Progress
from errata.executor.settling import settle_open
from errata.executor.views import counts_view, failures_view
from errata.failpoints import failpoint
from errata.ledger import AttemptRecord, RunRecord, this_owner
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.partition import fold_text
from errata.model.product import Role
from errata.model.refs import run_branch
from errata.model.run import ChunkState, RunState
from errata.model.views import RunView
from errata.publisher.replace import first_line
from errata.staging.ports import StagedOutput

__all__ = ["run_chunks"]

S = RunState
LEASE_SECONDS = 60.0
HEARTBEAT_SECONDS = 15.0
KEEP_DAYS = 45
_POLL_SECONDS = 1.0
_AFTER = frozenset(
    {S.STAGED, S.VALIDATED, S.REJECTED, S.PUBLISHING, S.PART_PUBLISHED, S.PUBLISHED, S.SUPERSEDED, S.ROLLED_BACK}
)


@dataclass(frozen=True, slots=True)
class _Job:
    """What all chunks of a run share."""

    desk: Desk
    actor: Actor
    run: RunRecord
    manifest: Manifest
    parts: Mapping[str, bytes]
    progress: Progress
    stop: threading.Event = field(default_factory=threading.Event)


def run_chunks(
    desk: Desk, actor: Actor, run_id: str, *, parallel: int, max_chunks: int | None, owner_name: str | None = None
) -> RunView:
    """Work on the run until no chunk is left to take; safe to start again, anywhere, any number of times."""
    started = time.monotonic()
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.OPERATOR,), "run", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    if run.state in _AFTER:
        return _view(desk, run, already=True, started=started)
    if run.state is not S.RUNNING:
        run = _start(desk, actor, run)
    failpoint("run.after_start")
    _require_pins(desk, actor, run, manifest)
    _prepare(desk, actor, run, manifest)
    job = _Job(
        desk,
        actor,
        run,
        manifest,
        _parts(desk, manifest),
        desk.progress(run.run_id, len(manifest.partitions), manifest.target.grain.value),
    )
    staged = [chunk for chunk in desk.ledger.chunks(run.run_id) if chunk.state is ChunkState.DONE]
    if staged:
        job.progress.advance(sum(len(chunk.partitions) for chunk in staged), 0)
    try:
        _work(job, parallel, max_chunks, owner_name)
    finally:
        job.progress.close()
    return _finish(desk, actor, run, started)


def _start(desk: Desk, actor: Actor, run: RunRecord) -> RunRecord:
    """Approved to running; another worker may have been faster."""
    try:
        return desk.ledger.move(run.run_id, S.RUNNING, actor=actor, expect={S.APPROVED})
    except StateRefused:
        run = desk.ledger.run(run.run_id)
        if run.state is not S.RUNNING:
            raise
        return run


def _require_pins(desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest) -> None:
    """What expired since planning makes the run expired; it is never resolved anew."""
    pinned = [(pin.location, pin.snapshot_id) for pin in manifest.inputs if pin.kind == "table" and pin.snapshot_id]
    if manifest.target.base_snapshot_id:
        pinned.append((manifest.target.table, manifest.target.base_snapshot_id))
    gone = [(table, snapshot) for table, snapshot in pinned if not desk.engines.pins.snapshot_exists(table, snapshot)]
    if gone:
        told = ", ".join(f"{table} @ {snapshot}" for table, snapshot in gone)
        desk.ledger.move(run.run_id, S.EXPIRED, actor=actor, body={"gone": told})
        raise RunExpired(
            f"run {run.run_id} has expired: {told} was pinned and is gone",
            state="main is unchanged",
            hint=f'errata plan {run.product} … --supersede {run.run_id} --reason "…"',
        )


def _prepare(desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest) -> None:
    target = manifest.target
    refs = desk.engines.pins.refs(target.table)
    if run_branch(run.run_id) not in refs:
        desk.ledger.note(run.run_id, actor, "refs.intended", {"branch": run_branch(run.run_id), "table": target.table})
    guard = desk.engines.staging.prepare(target, run.run_id, KEEP_DAYS)
    failpoint("run.after_branch")
    if desk.ledger.guard(target.table_uuid) != guard:
        desk.ledger.record_guard(target.table_uuid, guard, actor, target.table)


def _parts(desk: Desk, manifest: Manifest) -> dict[str, bytes]:
    """The code and the pinned file lists, by digest."""
    digests = [manifest.code.zip_digest, *(pin.files_part for pin in manifest.inputs if pin.files_part)]
    return {digest: desk.ledger.get_part(digest) for digest in digests}


def _work(job: _Job, parallel: int, max_chunks: int | None, owner_name: str | None) -> None:
    owner = this_owner(owner_name)
    flying: dict[Future[None], ChunkWork] = {}
    taken = 0
    with ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="chunk") as pool:
        try:
            while True:
                attempt = None
                if len(flying) < parallel and (max_chunks is None or taken < max_chunks):
                    attempt = job.desk.ledger.claim(job.run.run_id, owner, lease_seconds=LEASE_SECONDS, actor=job.actor)
                if attempt is not None:
                    taken += 1
                    failpoint("chunk.after_claim")
                    work = _work_of(job, attempt)
                    flying[pool.submit(_chunk, job, attempt, work)] = work
                elif flying:
                    done, _ = wait(flying, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                    for future in done:
                        del flying[future]
                        future.result()
                else:
                    return
        except BaseException:
            job.stop.set()
            for future, work in flying.items():
                if not future.cancel():
                    job.desk.engines.chunks.cancel(work)
            raise


def _work_of(job: _Job, attempt: AttemptRecord) -> ChunkWork:
    chunk = next(chunk for chunk in job.manifest.chunks if chunk.chunk_id == attempt.chunk_id)
    return ChunkWork(job.run.run_id, job.manifest, job.run.manifest_digest, chunk, attempt.fence, job.parts)


def _chunk(job: _Job, attempt: AttemptRecord, work: ChunkWork) -> None:
    """One attempt from claim to adoption; a chunk's own failure is recorded and the others go on."""
    ledger, actor = job.desk.ledger, job.actor
    shown = fold_text(job.manifest.target.grain, work.chunk.partitions)
    job.progress.show(work.chunk.chunk_id, f"{shown}  running  {attempt.owner.name}  fence {attempt.fence}")
    started = time.monotonic()
    with _Heart(job, attempt, work):
        try:
            staged = _stage(job, work)
            ledger.adopt(
                attempt,
                snapshot_id=staged.snapshot_id,
                rows=staged.rows,
                files=len(staged.files),
                bytes=staged.bytes,
                seconds=time.monotonic() - started,
                actor=actor,
            )
            failpoint("stage.after_adopt")
            job.progress.advance(len(work.chunk.partitions), staged.rows)
        except AttemptLost as lost:
            job.desk.narrate(f"chunk {work.chunk.chunk_id}: {lost.message}")
        except ErrataError as error:
            _record_failure(job, attempt, error)
        except Exception as error:
            ledger.release(attempt, actor=actor, reason=f"worker stopped: {type(error).__name__}")
            raise EngineError(
                f"the worker cannot go on: {type(error).__name__}: {first_line(error)}",
                state="chunks that were adopted are kept; main is unchanged",
                hint=f"errata run {job.run.run_id} goes on where this one stopped; log: {job.desk.engines.log}",
            ) from error
        finally:
            job.progress.show(work.chunk.chunk_id, None)


def _record_failure(job: _Job, attempt: AttemptRecord, error: ErrataError) -> None:
    ledger, actor = job.desk.ledger, job.actor
    if job.stop.is_set():
        ledger.release(attempt, actor=actor)
        return
    try:
        ledger.fail(attempt, error_code=error.code, message=error.message, actor=actor)
        job.desk.narrate(f"chunk {attempt.chunk_id} failed: {error.message}")
    except AttemptLost as lost:
        # its jobs were stopped because another worker has the chunk now
        job.desk.narrate(f"chunk {attempt.chunk_id}: {lost.message}")


def _stage(job: _Job, work: ChunkWork) -> StagedOutput:
    chunks, staging, target = job.desk.engines.chunks, job.desk.engines.staging, job.manifest.target
    chunks.check_sources(work)
    try:
        chunks.append(work)
    except Exception:
        # the write may have landed all the same; only the table knows
        staged = staging.find_attempt(target, work.attempt)
        if staged is None:
            raise
    else:
        staged = staging.find_attempt(target, work.attempt)
    if staged is None:
        raise EngineError(f"attempt {work.attempt} left no snapshot on {target.table}")
    # a file that changed while it was read fails the chunk as well
    chunks.check_sources(work)
    owned = set(work.chunk.partitions)
    foreign = sorted({file.partition or "unpartitioned" for file in staged.files} - owned)
    if foreign:
        raise ForeignPartition(
            f"chunk {work.chunk.chunk_id} produced rows for {', '.join(foreign[:10])}"
            f"{' and more' if len(foreign) > 10 else ''}; expected only {fold_text(target.grain, owned)}",
            state="its output is not adopted; main is unchanged",
            hint="filter the transform's output to ctx.partitions, then plan again",
            partitions=foreign,
        )
    return staged


class _Heart:
    """Keeps one lease alive from its own thread; stops the Spark jobs of an attempt that lost it."""

    def __init__(self, job: _Job, attempt: AttemptRecord, work: ChunkWork) -> None:
        self._job = job
        self._attempt = attempt
        self._work = work
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heart-{attempt.attempt_id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT_SECONDS):
            try:
                if self._job.desk.ledger.heartbeat(self._attempt, LEASE_SECONDS):
                    continue
            except EngineError:
                # the ledger does not answer: the lease may run out, and then the ledger itself refuses the result
                continue
            self._job.desk.engines.chunks.cancel(self._work)
            return


def _finish(desk: Desk, actor: Actor, run: RunRecord, started: float) -> RunView:
    run = desk.ledger.run(run.run_id)
    counts = desk.ledger.counts(run.run_id)
    try:
        if run.state is S.RUNNING and counts.done == counts.total:
            failpoint("run.before_staged")
            run = desk.ledger.move(run.run_id, S.STAGED, actor=actor, body={"rows": counts.rows})
        elif run.state is S.RUNNING and not counts.pending and not counts.running:
            body = {"failed": counts.failed + counts.quarantined}
            run = desk.ledger.move(run.run_id, S.FAILED, actor=actor, body=body)
    except StateRefused:
        # another worker finished at the same moment and said so first
        run = desk.ledger.run(run.run_id)
    view = _view(desk, run, already=False, started=started)
    if run.state is S.FAILED:
        first = view.failures[0] if view.failures else {}
        raise RunFailed(
            f"{counts.failed + counts.quarantined} of {counts.total} chunks failed; "
            f"first: {first.get('error', 'unknown')}",
            state=f"{counts.done} chunks are staged and kept; main is unchanged",
            hint=f"mend the cause, then: errata retry {run.run_id} && errata run {run.run_id}",
            run=view,
        )
    return view


def _view(desk: Desk, run: RunRecord, *, already: bool, started: float) -> RunView:
    counts = desk.ledger.counts(run.run_id)
    return RunView(
        run.run_id,
        run.state.value,
        already,
        counts_view(counts),
        counts.recomputed,
        counts.rows,
        round(time.monotonic() - started, 3),
        str(desk.engines.log),
        failures_view(desk.ledger.chunks(run.run_id)),
    )
