"""Freeze: keep cooperating live jobs out of a wave's partitions while commands work on the run.

The freeze of a wave opens before its first chunk starts, waits for live jobs that hold a lease, and is renewed while a
command of the run is active. The ledger ends it together with the state change that makes it unnecessary. It saves a
run from conflicts but replaces no check: writes of live jobs that do not cooperate are detected as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from errata.errors import EngineError, PublishConflict, ScopeLocked
from errata.failpoints import failpoint
from errata.ledger import ChunkRecord, FreezeRecord, LiveWriteRecord, PartitionState, RunRecord, WaveRecord
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges
from errata.model.product import Freeze
from errata.model.run import ChunkState, RunState
from errata.model.waves import OUT, wave_of_chunk
from errata.publishing.expected_files import build_replacement
from errata.publishing.messages import plan_again_command
from errata.publishing.replacement import examine_version
from errata.publishing.selection import audit_conflicts
from errata.text.numbers import format_moment
from errata.worker.heartbeat import beating
from errata.workspace import RunContext, Workspace

FREEZE_POLICY = "freeze"
S = RunState
_FREEZABLE_STATES = frozenset(
    {S.APPROVED, S.RUNNING, S.STAGED, S.REJECTED, S.NEEDS_ACCEPTANCE, S.VALIDATED, S.PART_PUBLISHED}
)
_POLL_SECONDS = 0.5
WAIT_SECONDS = 600.0
"""How long a command waits for live jobs that started to write before the freeze."""


@contextmanager
def freeze_partitions(context: RunContext) -> Iterator[tuple[int, ...]]:
    """Keep live jobs out while this command works on the run or wave; yields the waves that are frozen just now.

    Of a whole run with waves, those are frozen that have started and are not out.
    """
    freeze = find_freeze_setting(context)
    if freeze is None or context.run.state not in _FREEZABLE_STATES:
        yield ()
        return
    try:
        with _keep_freezes_alive(context.workspace, context.run, freeze):
            yield tuple(n for n in _list_waves_to_freeze(context) if freeze_wave(context, n))
    except PublishConflict as error:
        if written := error.fields.get("partitions"):
            # this run can no longer publish these partitions, so they need not stay frozen
            context.ledger.freezes.end_freeze(context.run_id, context.actor, "written by someone else", written)
        raise


def find_freeze_setting(context: RunContext) -> Freeze | None:
    """How long live jobs are kept out of the partitions of this run; None if they are not."""
    publish, can_conflict = context.manifest.publish, context.manifest.changes_table
    return publish.freeze if publish.on_live_write == FREEZE_POLICY and can_conflict else None


def _list_waves_to_freeze(context: RunContext) -> tuple[int, ...]:
    waves = context.ledger.waves.list(context.run_id)
    if context.wave is not None or len(waves) == 1:
        return (context.wave.n if context.wave else 1,)
    return list_waves_under_way(waves, context.ledger.progress.chunks(context.run_id))


def list_waves_under_way(waves: Sequence[WaveRecord], chunks: Sequence[ChunkRecord]) -> tuple[int, ...]:
    """Waves of which a chunk has started and not everything is out. Pure."""
    started = {wave_of_chunk(one.wave) for one in chunks if one.state is not ChunkState.PENDING}
    return tuple(wave.n for wave in waves if wave.n in started and wave.state not in OUT)


def freeze_wave(context: RunContext, n: int) -> bool:
    """Freeze a wave and wait for the live jobs that write to it; whether the freeze took effect just now."""
    freeze = find_freeze_setting(context)
    if freeze is None:
        return False
    before = _find_freeze(context, n)
    wave = context.widen().narrow(n)
    opened = context.ledger.freezes.open_freeze(
        context.run_id,
        _list_unpublished(wave.workspace, wave.run),
        idle_seconds=freeze.idle,
        most_seconds=freeze.at_most,
        actor=context.actor,
        wave=n,
    )
    # open first and wait afterwards: new live jobs are refused at once, so the wait for the others ends
    if opened.is_open:
        failpoint("freeze.after_open")
        opened = _wait_for_writers(wave, opened, freeze)
    if not opened.is_open:
        which = context.run_id if wave.wave is None else f"wave {n} of {context.run_id}"
        context.workspace.narrate(
            f"WARNING: the freeze of {which} expired at {format_moment(opened.at_most)} UTC (freeze.at_most). "
            "Live jobs may write again; a write in scope is now a conflict"
        )
    return opened.is_open and not (before and before.is_open and before.granted_at)


def _find_freeze(context: RunContext, n: int) -> FreezeRecord | None:
    return next((one for one in context.ledger.freezes.list(context.run_id) if one.wave == n), None)


def enter_wave(context: RunContext, n: int) -> None:
    """Freeze a wave before its first chunk starts, and refuse one that live jobs wrote since the plan."""
    if freeze_wave(context, n):
        # cooperating live jobs stay out from here on, so one check covers the time since the plan
        refuse_live_writes(context, n)


def refuse_live_writes(context: RunContext, n: int) -> None:
    """Refuse a wave whose partitions live jobs wrote between plan and freeze."""
    whole = context.widen()
    wave = whole.narrow(n)
    with audit_conflicts(wave.workspace, wave.actor, wave.run, "run"):
        try:
            names = _list_unpublished(wave.workspace, wave.run)
            order = build_replacement(wave.workspace, wave.run, wave.manifest, names)
            examine_version(order, wave.engines.publishing.version(wave.manifest.target), wave.engines.content)
        except PublishConflict as conflict:
            wave.ledger.freezes.end_freeze(wave.run_id, wave.actor, "refused", wave.run.partitions)
            raise _refused_error(whole, wave, conflict) from conflict


def _refused_error(whole: RunContext, wave: RunContext, conflict: PublishConflict) -> PublishConflict:
    """The conflict of a wave that is not computed for it: it and those behind it are planned again."""
    run, grain, left = whole.run, whole.manifest.target.grain, _list_unpublished(whole.workspace, whole.run)
    state = "main is unchanged; nothing more is computed"
    if wave.wave is not None:
        state = f"wave {wave.wave.n} is not computed; waves that are out stay, and those before it can go"
        before = {name for one in whole.ledger.waves.list(run.run_id) if one.n < wave.wave.n for name in one.partitions}
        left = tuple(name for name in left if name not in before)
    return PublishConflict(
        conflict.message,
        state=state,
        hint=plan_again_command(run.product, run.run_id, grain, left),
        **conflict.fields,
    )


def _list_unpublished(workspace: Workspace, run: RunRecord) -> tuple[str, ...]:
    states = workspace.ledger.partitions.states(run.run_id)
    return tuple(name for name in run.partitions if states[name] is PartitionState.UNPUBLISHED)


def _wait_for_writers(context: RunContext, opened: FreezeRecord, freeze: Freeze) -> FreezeRecord:
    """Wait until the freeze is granted and keep it alive meanwhile; returns it granted, or not open after at_most."""
    waited, said, ledger, n = 0.0, False, context.ledger, opened.wave
    while writing := ledger.freezes.grant_freeze(context.run_id, context.actor, wave=n):
        if waited > WAIT_SECONDS:
            ledger.freezes.end_freeze(context.run_id, context.actor, "live jobs kept writing", opened.partitions)
            raise _scope_locked_error(context.run, context.manifest, opened, writing)
        if not said:
            context.workspace.narrate(
                f"waiting for live jobs that write already: {', '.join(map(_format_writer, writing))}"
            )
            said = True
        context.workspace.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
        ledger.freezes.renew_freezes(context.run_id, freeze.idle)
    # nobody to wait for is also the answer for a freeze that lapsed
    found = _find_freeze(context, n) or opened
    if not found.is_open and ledger.now_ms() < found.most_until:
        raise ScopeLocked(
            f"{context.run_id} was refused; its freeze ended or expired before the live jobs finished",
            state="nothing was changed; live jobs may write",
            hint=f"errata run {context.run_id}",
            partitions=list(opened.partitions),
        )
    return found


def _scope_locked_error(
    run: RunRecord, manifest: Manifest, opened: FreezeRecord, writing: tuple[LiveWriteRecord, ...]
) -> ScopeLocked:
    grain = manifest.target.grain
    shared = [
        name for name in opened.partitions if any(not one.partitions or name in one.partitions for one in writing)
    ]
    return ScopeLocked(
        f"{run.run_id} was refused; after {WAIT_SECONDS:.0f} s live jobs still write to "
        f"{format_ranges(grain, shared)}: {', '.join(map(_format_writer, writing))}",
        state="nothing was changed; live jobs may write",
        hint=f"when they are done: errata run {run.run_id}",
        partitions=shared,
        holders=[one.owner.name for one in writing],
    )


def _format_writer(one: LiveWriteRecord) -> str:
    return f"{one.owner.name} on {one.owner.host} since {format_moment(one.started_at)} UTC"


@contextmanager
def _keep_freezes_alive(workspace: Workspace, run: RunRecord, freeze: Freeze) -> Iterator[None]:
    """Renew the freezes from a thread, because a command may wait for Spark longer than they last."""

    def renew() -> bool:
        workspace.ledger.freezes.renew_freezes(run.run_id, freeze.idle)
        return True

    with beating(freeze.idle, renew, f"freeze-{run.run_id}"):
        yield
        with suppress(EngineError):
            # start the full idle time at the end, so that a person has all of it to take the next step
            renew()
