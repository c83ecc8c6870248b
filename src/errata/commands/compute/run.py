"""`errata run`: join a run as a worker and compute chunks until nothing is left.

This module holds what comes before the worker loop (state, pins, run branch, determinism check) and after it (staged,
failed, or left to other workers). One process, one Spark session, up to N chunks in flight, each with its own thread
and lease.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from errata.approval.permissions import require_role
from errata.approval.quorum import require_approvals
from errata.canonical import to_plain
from errata.commands.compute.repair import repair_copies
from errata.commands.compute.sealed_engine import require_sealed_engine
from errata.commands.compute.wave_stream import WaveStream, publish_beside
from errata.commands.look.run_list import counts_view
from errata.commands.plan.show import failures_view
from errata.commands.situation import hint_next_step, suggest_steps
from errata.delivery.alarms import raise_alarm
from errata.delivery.copies.run_copies import run_copy_lines
from errata.delivery.payment import pay
from errata.errors import ErrataError, RunExpired, RunFailed, SourceChanged, StateRefused
from errata.failpoints import failpoint
from errata.ledger import ChunkCounts, RunRecord, current_owner
from errata.ledger.records import map_partitions_to_chunks
from errata.live_writers.freeze import enter_wave, find_freeze_setting, freeze_partitions, refuse_live_writes
from errata.live_writers.rebase import tag_rebases
from errata.model.audit import Actor
from errata.model.duration import to_days
from errata.model.manifest import Manifest
from errata.model.product import Product, Role
from errata.model.product.throttle import Throttle
from errata.model.rebase import Rebase
from errata.model.refs import run_branch
from errata.model.run import ChunkState, RunState
from errata.model.waves import WaveState, derive_run_state, list_waves
from errata.ports.hooks import ProgressListener
from errata.publishing.messages import plan_again_command
from errata.publishing.readers.ready_table import owe_ready
from errata.publishing.selection import read_refs
from errata.publishing.sweep import sweep_refs
from errata.publishing.waves import wave_views
from errata.text.numbers import plural
from errata.views import RunView
from errata.worker.attempt import RunJob
from errata.worker.canary import refuse_rejected_canary
from errata.worker.determinism import check_determinism
from errata.worker.ledger_wait import retry_ledger_call
from errata.worker.loop import WAVE_REFUSALS, is_blocked, work_until_done
from errata.workspace import RunContext, Workspace

S = RunState
_COMPUTED_STATES = frozenset(
    {S.STAGED, S.VALIDATED, S.REJECTED, S.NEEDS_ACCEPTANCE, S.PUBLISHING, S.PART_PUBLISHED, S.PUBLISHED, S.SUPERSEDED}
) | {S.ROLLED_BACK, S.ATTESTED, S.DIFFERS}


@hint_next_step
def run_chunks(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    *,
    parallel: int,
    max_chunks: int | None,
    owner_name: str | None = None,
    publish: bool = False,
) -> RunView:
    """Compute chunks until none is left to claim; safe to start on any host, any number of times.

    ``publish``: judge and publish each wave while later ones are computed.
    """
    started = time.monotonic()
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.OPERATOR,), "run", run.run_id)
    # settle what a killed process left open before reading the state, which that may change
    for warning in pay(workspace, actor, table=run.table).warnings:
        workspace.narrate(f"WARNING: {warning}")
    context = workspace.open_run(run.run_id, actor)
    run = context.run
    if context.manifest.repairs:
        return _run_view(workspace, repair_copies(context).run, already=run.state is S.PUBLISHED, started=started)
    refuse_rejected_canary(workspace, run)
    work = _Work(parallel, max_chunks, owner_name, started)
    if publish and len(list_waves(context.manifest)) > 1:
        return _compute_and_publish(context, work)
    if run.state in _COMPUTED_STATES:
        return _run_view(workspace, run, already=True, started=started)
    require_sealed_engine(context)
    with _start(context) as context:
        return _pass_to_gate(context, started) if not context.manifest.chunks else _join_run(context, work)


@dataclass(frozen=True, slots=True)
class _Work:
    """How much a worker does, and since when."""

    parallel: int
    max_chunks: int | None
    owner_name: str | None
    started: float


@contextmanager
def _start(context: RunContext) -> Iterator[RunContext]:
    """The run, started if it was not; what is computed is frozen if the plan says so."""
    run = context.run
    if run.state is S.APPROVED:  # before the freeze blocks any live job
        require_approvals(context, "run")
    with freeze_partitions(context) as just_now:
        for n in just_now:
            # cooperating live jobs stay out from here on, so one check covers the time since the plan
            refuse_live_writes(context, n)
        if run.state is S.APPROVED and context.manifest.chunks:
            enter_wave(context, 1)
        yield context if run.state is S.RUNNING else replace(context, run=start_run(context))


def _compute_and_publish(context: RunContext, work: _Work) -> RunView:
    """Judge and publish each wave as soon as it is computed, until nothing more may go."""
    stream = WaveStream(context.workspace, context.actor, context.run_id)
    already = context.run.state in _COMPUTED_STATES and not stream.drain()
    while (context := context.reload()).run.state not in _COMPUTED_STATES:
        already = False
        require_sealed_engine(context)
        with _start(context) as started:
            refused = _compute_beside(started, work, stream)
        # a wait for consumers must not keep live jobs out; each publication freezes what it commits
        stream.drain()
        if refused is not None:
            raise refused
        if work.max_chunks is not None or not _is_rebased(context):
            break
    return _run_view(context.workspace, context.reload().run, already=already, started=work.started)


def _compute_beside(context: RunContext, work: _Work, stream: WaveStream) -> ErrataError | None:
    """Compute while waves are judged and published; returns why the next wave was not computed, if it was refused."""
    with publish_beside(stream):
        try:
            _join_run(context, work)
        except WAVE_REFUSALS as refused:
            return refused  # the waves before it can go
    return None


def _is_rebased(context: RunContext) -> bool:
    """Whether a live write won after this worker had found nothing left to compute."""
    run, counts = context.reload().run, context.ledger.progress.counts(context.run_id)
    waves = context.ledger.waves.list(context.run_id)
    is_rejected = any(wave.state is WaveState.REJECTED for wave in waves)
    return run.state is S.RUNNING and bool(counts.pending) and not is_rejected


def _join_run(context: RunContext, work: _Work) -> RunView:
    failpoint("run.after_start")
    # the limits first, because the cores of a session are fixed when it starts
    product = context.workspace.project.products.get(context.manifest.product)
    throttle = (product.throttle if product else None) or context.workspace.project.throttle
    context.engines.hold_to(throttle)
    with closing(_open_progress(context)) as progress:
        progress.prepare("starting Spark…")
        context.engines.start_early()
        job = _work_on(context, work, product, throttle, progress)
    return _finish_run(job, work.started)


def _open_progress(context: RunContext) -> ProgressListener:
    manifest = context.manifest
    return context.workspace.progress(context.run_id, len(manifest.partitions), manifest.target.grain.value)


def _work_on(
    context: RunContext, work: _Work, product: Product | None, throttle: Throttle, progress: ProgressListener
) -> RunJob:
    """Compute until nothing is left to claim."""
    rebases = context.ledger.rebases.list(context.run_id)
    _require_pins(context, rebases)
    tag_rebases(context.workspace, context.actor, context.run)
    _prepare_branch(context)
    sweep_refs(context.workspace, context.actor, context.run.table)
    job = RunJob(
        context.workspace,
        context.actor,
        context.run,
        context.manifest,
        _read_parts(context.workspace, context.manifest),
        progress,
        context.workspace.project.attempts,
    )
    chunks = context.ledger.progress.chunks(context.run_id)
    done = {chunk.chunk_id for chunk in chunks if chunk.state is ChunkState.DONE}
    if staged := [name for name, chunk_id in map_partitions_to_chunks(chunks).items() if chunk_id in done]:
        progress.advance(staged, 0)
    _warn_about_uncounted_rows(context, throttle)
    health = (*context.workspace.project.health, *(product.health if product else ()))
    if throttle != Throttle() or health:
        signals = [signal.name for signal in health]
        context.ledger.audit.note(
            context.run_id, context.actor, "throttle.applied", {"throttle": to_plain(throttle), "signals": signals}
        )
    progress.prepare(None)  # what is left of it is in the time of the first chunk, which shows
    check_determinism(job)
    work_until_done(
        job,
        current_owner(work.owner_name),
        parallel=work.parallel,
        max_chunks=work.max_chunks,
        throttle=throttle,
        health=health,
        enter_wave=partial(enter_wave, context) if find_freeze_setting(context) else None,
    )
    return job


def _pass_to_gate(context: RunContext, started: float) -> RunView:
    """Finish a run that computes nothing: the gate judges main itself, so no branch is created."""
    failpoint("run.after_start")
    _require_pins(context, ())
    context.ledger.runs.move(context.run_id, S.STAGED, actor=context.actor, body={"rows": 0}, expect={S.RUNNING})
    return _run_view(context.workspace, context.reload().run, already=False, started=started)


def _warn_about_uncounted_rows(context: RunContext, throttle: Throttle) -> None:
    """Say which inputs a limit on rows does not hold back: the rows of files that planning did not open."""
    pins = context.manifest.inputs if throttle.rows_per_minute else ()
    if uncounted := [pin.name for pin in pins if pin.kind == "files" and pin.file_count and not pin.counts]:
        context.workspace.narrate(
            f"WARNING: throttle.rows_per_minute does not count the rows of {', '.join(uncounted)}, whose files are not "
            "opened; throttle.bytes_per_minute counts them"
        )


def start_run(context: RunContext) -> RunRecord:
    """Move an approved run to running if its approvals are still valid; another worker may have been faster.

    A run that changes nothing needs no approval and starts as it was planned.
    """
    run = context.run
    if run.state is S.APPROVED:
        require_approvals(context, "run")
        raise_alarm(context.workspace, context.actor, run)
    try:
        ready = S.APPROVED if context.manifest.changes_table else S.PLANNED
        return context.ledger.runs.move(run.run_id, S.RUNNING, actor=context.actor, expect={ready})
    except StateRefused:
        run = context.ledger.runs.get(run.run_id)
        if run.state is not S.RUNNING:
            raise
        return run


def _require_pins(context: RunContext, rebases: tuple[Rebase, ...]) -> None:
    """Expire the run if a pinned snapshot is gone; an input is never silently resolved again."""
    pins = (*context.manifest.inputs, *(pin for rebase in rebases for pin in rebase.inputs))
    pinned = [(pin.location, one) for pin in pins if pin.kind == "table" for one in pin.snapshot_ids]
    bases = [context.manifest.target.base_snapshot_id, *(rebase.base_snapshot_id for rebase in rebases)]
    pinned += [(context.manifest.target.table, base) for base in bases if base]
    gone = [
        (table, snapshot) for table, snapshot in pinned if not context.engines.pins.snapshot_exists(table, snapshot)
    ]
    if gone:
        told = ", ".join(f"{table} @ {snapshot}" for table, snapshot in gone)
        owes = owe_ready(context.workspace.project, S.EXPIRED.value)
        context.ledger.runs.move(context.run_id, S.EXPIRED, actor=context.actor, body={"gone": told}, owes=owes)
        raise RunExpired(
            f"run {context.run_id} has expired: {told} was pinned and is gone",
            state="main is unchanged",
            hint=f'errata plan {context.run.product} … --supersede {context.run_id} --reason "…"',
        )


def _prepare_branch(context: RunContext) -> None:
    target = context.manifest.target
    if run_branch(context.run_id) not in (read_refs(context.workspace, target.staging.table) or ()):
        # audited before it is created, so that no branch exists without an audit entry
        intended = {"branch": run_branch(context.run_id), "table": target.staging.table}
        context.ledger.audit.note(context.run_id, context.actor, "refs.intended", intended)
    guard = context.engines.staging.prepare(target, context.run_id, to_days(context.workspace.project.retention.staged))
    failpoint("run.after_branch")
    if context.ledger.guards.get(target.table_uuid) != guard:
        context.ledger.guards.record(target.table_uuid, guard, context.actor, target.table)


def _read_parts(workspace: Workspace, manifest: Manifest) -> dict[str, bytes]:
    """The code zip and the pinned file lists, by digest."""
    digests = [manifest.code.zip_digest, *(pin.files_part for pin in manifest.inputs if pin.files_part)]
    return {digest: workspace.ledger.parts.get(digest) for digest in digests}


def _record_end_state(job: RunJob) -> tuple[RunRecord, ChunkCounts]:
    """Move the run to staged or failed if nothing is left to compute; otherwise leave it to other workers."""
    workspace, actor = job.workspace, job.actor
    run = workspace.ledger.runs.get(job.run.run_id)
    counts = workspace.ledger.progress.counts(run.run_id)
    try:
        if run.state is S.RUNNING and counts.done == counts.total:
            failpoint("run.before_staged")
            # waves may have been judged and be out by now; whatever happens to one from here on moves the run itself
            waves = workspace.ledger.waves.list(run.run_id)
            state = S.STAGED if len(waves) == 1 else derive_run_state([wave.state for wave in waves])
            run = workspace.ledger.runs.move(
                run.run_id, state, actor=actor, expect={S.RUNNING}, body={"rows": counts.rows}
            )
        elif run.state is S.RUNNING and not counts.running and (not counts.pending or is_blocked(job)):
            body = {"failed": counts.failed + counts.quarantined}
            run = workspace.ledger.runs.move(run.run_id, S.FAILED, actor=actor, body=body)
    except StateRefused:
        # another worker finished at the same moment and recorded it first
        run = workspace.ledger.runs.get(run.run_id)
    return run, counts


def _finish_run(job: RunJob, started: float) -> RunView:
    workspace = job.workspace
    run, counts = retry_ledger_call(lambda: _record_end_state(job), workspace)
    refuse_rejected_canary(workspace, run)
    view = _run_view(workspace, run, already=False, started=started)
    if run.state is S.FAILED:
        first = str(view.failures[0]["error"]) if view.failures else "unknown"
        kept = f"staged and kept: {plural(counts.done, 'chunk')}" if counts.done else "no chunk is staged"
        raise RunFailed(
            f"{counts.failed + counts.quarantined} of {counts.total} chunks failed; first: {first.splitlines()[0]}",
            state=f"{kept}; main is unchanged",
            hint=_advise_failed(job, view),
            run=view,
        )
    return view


def _advise_failed(job: RunJob, view: RunView) -> str:
    run, manifest = job.run, job.manifest
    command = next(iter(suggest_steps(job.workspace, job.actor, run.run_id)), f"errata status {run.run_id}")
    if {failure["code"] for failure in view.failures} != {SourceChanged.code}:
        return f"fix the cause, then: {command}"
    again = plan_again_command(run.product, run.run_id, manifest.target.grain, manifest.partitions)
    # the pin has the modification time too: the same bytes in a new file are not the planned file
    return (
        f"put the planned files back with their modification time (cp -p keeps it), then: {command}\n"
        f"or plan with the files that are there now: {again}"
    )


def _run_view(workspace: Workspace, run: RunRecord, *, already: bool, started: float) -> RunView:
    counts, manifest = workspace.ledger.progress.counts(run.run_id), workspace.ledger.runs.manifest(run.run_id)
    return RunView(
        run.run_id,
        run.state.value,
        already,
        counts_view(counts),
        counts.recomputed,
        counts.rows,
        round(time.monotonic() - started, 3),
        str(workspace.engines.log),
        failures_view(workspace.ledger.progress.chunks(run.run_id)),
        kind=manifest.kind,
        grain=manifest.target.grain.value,
        waves=wave_views(workspace, run, workspace.ledger.waves.list(run.run_id)),
        copies=run_copy_lines(workspace, run),
    )
