"""The worker loop: claim chunks as the throttle allows, keep them in flight, resize waiting ones, until none is left.

A worker stays while other workers have chunks in flight, because they may die. It waits for a limited time for a paused
run or an unavailable ledger. It leaves when the run has ended, nothing can start without a person, or it has taken its
maximum number of chunks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from errata.errors import ErrataError, PublishConflict, ScopeLocked
from errata.failpoints import failpoint
from errata.ledger import AttemptRecord, Owner
from errata.ledger.figures.readings import Reading as LastReading
from errata.ledger.figures.readings import ReadingName
from errata.model.product.throttle import Signal, Throttle
from errata.model.run import ChunkState, RunState
from errata.model.waves import WaveState, wave_of_chunk
from errata.ports.compute import ChunkWork
from errata.text.numbers import plural
from errata.worker.attempt import RunJob, attempt_chunk, build_chunk_work
from errata.worker.budget import stop_at_cap
from errata.worker.canary import judge_canary
from errata.worker.chunk_failures import loss_policy
from errata.worker.heartbeat import attempt_lease
from errata.worker.ledger_wait import retry_ledger_call
from errata.worker.pipeline_health import HealthMonitor, Level, Reading
from errata.worker.repack_waiting import resize_waiting
from errata.worker.throttle import ThrottleWait, check_throttle

T = TypeVar("T")

_POLL_SECONDS = 1.0
_BUDGET_SECONDS = 10.0
WAVE_REFUSALS = (PublishConflict, ScopeLocked)
"""Why a wave is not entered: live jobs wrote its partitions, or still write to them."""
MAX_PAUSED_SECONDS = 600.0
"""How long a worker waits for a paused run before it exits and frees its cores."""


@dataclass(slots=True)
class _LoopState:
    job: RunJob
    owner: Owner
    parallel: int
    max_chunks: int | None
    throttle: Throttle
    watch: HealthMonitor
    flying: dict[Future[None], ChunkWork] = field(default_factory=dict)
    taken: int = 0
    said: str = ""
    is_held: bool = False
    paused_seconds: float = 0.0
    next_budget: float = 0.0
    enter_wave: Callable[[int], None] | None = None
    entered: int = 0  # the last wave that was entered
    refused: ErrataError | None = None


def work_until_done(
    job: RunJob,
    owner: Owner,
    *,
    parallel: int,
    max_chunks: int | None,
    throttle: Throttle,
    health: tuple[Signal, ...],
    enter_wave: Callable[[int], None] | None = None,
) -> None:
    """Compute chunks of the run; return when nothing is left for this worker.

    ``enter_wave`` is called with each wave before its first chunk starts. One of ``WAVE_REFUSALS`` from it is raised
    when the chunks in flight have finished.
    """

    def changed(reading: Reading) -> None:
        limits = {"slow_above": reading.signal.slow_above, "pause_above": reading.signal.pause_above}
        body = {"signal": reading.signal.name, "reading": None if reading.value is None else str(reading.value)}
        job.workspace.ledger.audit.note(job.run.run_id, job.actor, f"throttle.{reading.level.value}", body | limits)
        job.workspace.narrate(f"{_LEVEL_TEXT[reading.level]}: {reading.told}")

    def seen(reading: Reading) -> None:
        value = None if reading.value is None else float(reading.value)
        kept = LastReading(
            ReadingName.LIVE_SIGNAL, job.run.product, value, reading.signal.name, detail=reading.level.value
        )
        job.workspace.ledger.readings.put(kept)

    probe = job.workspace.engines.probes.read
    with (
        HealthMonitor(health, probe, changed, seen) as watch,
        ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="chunk") as pool,
    ):
        loop = _LoopState(job, owner, parallel, max_chunks, throttle, watch, enter_wave=enter_wave)
        try:
            _run_loop(loop, pool)
            if loop.refused is not None:
                raise loop.refused
        except BaseException:
            # set before cancelling, so that the interrupted attempts give their chunks back instead of failing them
            job.stop.set()
            for future, work in loop.flying.items():
                if not future.cancel():
                    job.workspace.engines.chunks.cancel(work)
            raise


_LEVEL_TEXT = {Level.GO: "going on", Level.SLOW: "one chunk at a time", Level.PAUSE: "waiting, no new chunk"}


def _run_loop(loop: _LoopState, pool: ThreadPoolExecutor) -> None:
    while True:
        attempt = _take_chunk(loop)
        if attempt is not None:
            loop.taken += 1
            _submit_attempt(loop, pool, attempt)
        elif loop.flying:
            _collect_finished(loop)
        elif _is_finished(loop):
            return
        else:
            loop.job.workspace.sleep(_POLL_SECONDS)


def _submit_attempt(loop: _LoopState, pool: ThreadPoolExecutor, attempt: AttemptRecord) -> None:
    try:
        failpoint("chunk.after_claim")
        work = _retry_ledger(loop, partial(build_chunk_work, loop.job, attempt))
        # in a copy of this context, which has the run for log lines and the span of the command
        loop.flying[pool.submit(copy_context().run, attempt_chunk, loop.job, attempt, work)] = work
    except BaseException:
        # give the chunk back at once: no heartbeat runs yet, and others would have to wait until its lease expires
        with suppress(ErrataError):
            loop.job.workspace.ledger.chunks.give_back(attempt, actor=loop.job.actor)
        raise


def _retry_ledger(loop: _LoopState, act: Callable[[], T]) -> T:
    return retry_ledger_call(act, loop.job.workspace)


def _collect_finished(loop: _LoopState) -> None:
    done, _ = wait(loop.flying, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
    for future in done:
        del loop.flying[future]
        future.result()
    if done:
        _retry_ledger(loop, lambda: resize_waiting(loop.job))


def _take_chunk(loop: _LoopState) -> AttemptRecord | None:
    """Claim the next chunk, if this worker has capacity and nothing throttles the run."""
    if len(loop.flying) >= loop.parallel or (loop.max_chunks is not None and loop.taken >= loop.max_chunks):
        return None
    try:
        attempt = None if loop.refused else _retry_ledger(loop, lambda: _claim_chunk(loop))
    except WAVE_REFUSALS as refused:
        loop.refused, attempt = refused, None
    if attempt is not None:
        loop.said = ""
    return attempt


def _claim_chunk(loop: _LoopState) -> AttemptRecord | None:
    _check_budget(loop)
    most, held = _limit_running(loop), _find_throttle_wait(loop)
    loop.is_held = held is not None
    if held is not None:
        _narrate_once(loop, f"holding: {held.reason}")
        # claim all the same: it recovers chunks of dead workers, which count as in flight and would throttle for ever
        most = 0
    elif loop.enter_wave is not None:
        _enter_next_wave(loop, loop.enter_wave)
    return loop.job.workspace.ledger.chunks.claim(
        loop.job.run.run_id,
        loop.owner,
        lease_seconds=attempt_lease(),
        actor=loop.job.actor,
        after_loss=loss_policy(loop.job.attempts),
        max_running=most,
        in_order=loop.job.manifest.order == "sequential",
        up_to_wave=None if loop.enter_wave is None else loop.entered,
    )


def _enter_next_wave(loop: _LoopState, enter: Callable[[int], None]) -> None:
    """Enter the wave of the chunk that would start next; another worker may be there already."""
    in_order = loop.job.manifest.order == "sequential"
    upcoming = loop.job.workspace.ledger.chunks.find_next_wave(loop.job.run.run_id, in_order=in_order)
    if upcoming is not None and (n := wave_of_chunk(upcoming)) > loop.entered:
        enter(n)
        loop.entered = n


def _check_budget(loop: _LoopState) -> None:
    if time.monotonic() >= loop.next_budget:
        loop.next_budget = time.monotonic() + _BUDGET_SECONDS
        stop_at_cap(loop.job)


def _limit_running(loop: _LoopState) -> int | None:
    reading = loop.watch.worst
    return 1 if reading and reading.level is Level.SLOW else loop.throttle.chunks


def _find_throttle_wait(loop: _LoopState) -> ThrottleWait | None:
    reading = loop.watch.worst
    if reading and reading.level is Level.PAUSE:
        return ThrottleWait(reading.told)
    if loop.throttle == Throttle():
        return None
    return check_throttle(loop.throttle, loop.job.workspace.ledger.progress.pace(loop.job.run.run_id))


def _narrate_once(loop: _LoopState, text: str) -> None:
    if text != loop.said:
        loop.said = text
        loop.job.workspace.narrate(text)


def _is_finished(loop: _LoopState) -> bool:
    """Whether an idle worker may exit; judges a finished canary first, which may free more chunks."""
    if loop.refused is not None:
        return True
    if loop.max_chunks is not None and loop.taken >= loop.max_chunks:
        return True
    ledger, run_id = loop.job.workspace.ledger, loop.job.run.run_id
    state, counts = _retry_ledger(loop, lambda: (ledger.runs.get(run_id).state, ledger.progress.counts(run_id)))
    if state is RunState.PAUSED:
        _narrate_once(loop, f"the run is paused; errata resume {run_id}")
        loop.paused_seconds += _POLL_SECONDS
        return loop.paused_seconds > MAX_PAUSED_SECONDS
    loop.paused_seconds = 0.0
    if state is not RunState.RUNNING or not (counts.pending or counts.running):
        return True
    if counts.running:
        if not loop.is_held:
            _narrate_once(loop, f"waiting for {plural(counts.running, 'chunk')} of other workers")
        return False
    if _retry_ledger(loop, lambda: has_rejected_wave(loop.job)):
        _narrate_once(loop, f"a wave was rejected, so no further chunk starts; errata diff {run_id}")
        return True
    # otherwise a chunk waits for its backoff or for the throttle
    return _retry_ledger(loop, lambda: not judge_canary(loop.job) and is_blocked(loop.job))


def has_rejected_wave(job: RunJob) -> bool:
    """Whether a wave did not pass its gate, so that the ledger gives out no more chunks."""
    return any(wave.state is WaveState.REJECTED for wave in job.workspace.ledger.waves.list(job.run.run_id))


def is_blocked(job: RunJob) -> bool:
    """Whether the waiting chunks depend on a failed or quarantined chunk, which only a person can retry."""
    chunks = job.workspace.ledger.progress.chunks(job.run.run_id)
    behind_all = job.manifest.order == "sequential"
    stuck = (ChunkState.FAILED, ChunkState.QUARANTINED)
    return any(chunk.state in stuck and (behind_all or chunk.wave == 0) for chunk in chunks)
