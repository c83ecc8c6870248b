"""Freeze: keep cooperating live jobs out of a run's partitions while commands work on the run.

The freeze opens with the first `errata run`, waits for live jobs that hold a lease, and is renewed while a command of
the run is active. The ledger ends it together with the state change that makes it unnecessary. It saves a run from
conflicts but replaces no check: writes of live jobs that do not cooperate are detected as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from errata.errors import EngineError, PublishConflict, ScopeLocked
from errata.failpoints import failpoint
from errata.ledger import FreezeRecord, LiveWriteRecord, PartitionState, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges
from errata.model.product import Freeze
from errata.model.run import RunState
from errata.publishing.expected_files import build_replacement
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
def freeze_partitions(context: RunContext) -> Iterator[bool]:
    """Keep live jobs out while this command works on the run; yields whether the freeze took effect just now."""
    freeze = context.manifest.publish.freeze
    if (
        context.manifest.publish.on_live_write != FREEZE_POLICY
        or freeze is None
        or context.run.state not in _FREEZABLE_STATES
    ):
        yield False
        return
    before = context.ledger.freezes.find_freeze(context.run_id)
    opened = _open_freeze(context.workspace, context.actor, context.run, freeze)
    # open first and wait afterwards: new live jobs are refused at once, so the wait for the others ends
    if opened.is_open:
        failpoint("freeze.after_open")
        opened = _wait_for_writers(context, opened, freeze)
    if not opened.is_open:
        context.workspace.narrate(
            f"WARNING: the freeze of {context.run_id} expired at {format_moment(opened.at_most)} UTC (freeze.at_most). "
            "Live jobs may write again; a write in scope is now a conflict"
        )
    try:
        with _keep_freeze_alive(context.workspace, context.run, freeze):
            yield opened.is_open and not (before and before.is_open and before.granted_at)
    except PublishConflict as error:
        if written := error.fields.get("partitions"):
            # this run can no longer publish these partitions, so they need not stay frozen
            context.ledger.freezes.end_freeze(context.run_id, context.actor, "written by someone else", written)
        raise


def refuse_live_writes(context: RunContext) -> None:
    """Refuse a run whose partitions live jobs wrote between plan and freeze, before anything is computed."""
    with audit_conflicts(context.workspace, context.actor, context.run, "run"):
        try:
            order = build_replacement(
                context.workspace, context.run, context.manifest, _list_unpublished(context.workspace, context.run)
            )
            examine_version(order, context.engines.publishing.version(context.manifest.target), context.engines.content)
        except PublishConflict:
            context.ledger.freezes.end_freeze(context.run_id, context.actor, "refused")
            raise


def _open_freeze(workspace: Workspace, actor: Actor, run: RunRecord, freeze: Freeze) -> FreezeRecord:
    return workspace.ledger.freezes.open_freeze(
        run.run_id,
        _list_unpublished(workspace, run),
        idle_seconds=freeze.idle,
        most_seconds=freeze.at_most,
        actor=actor,
    )


def _list_unpublished(workspace: Workspace, run: RunRecord) -> tuple[str, ...]:
    states = workspace.ledger.partitions.states(run.run_id)
    return tuple(name for name in run.partitions if states[name] is PartitionState.UNPUBLISHED)


def _wait_for_writers(context: RunContext, opened: FreezeRecord, freeze: Freeze) -> FreezeRecord:
    """Wait until the freeze is granted and keep it alive meanwhile; returns it granted, or not open after at_most."""
    waited, said = 0.0, False
    while writing := context.ledger.freezes.grant_freeze(context.run_id, context.actor):
        if waited > WAIT_SECONDS:
            context.ledger.freezes.end_freeze(context.run_id, context.actor, "live jobs kept writing")
            raise _scope_locked_error(context.run, context.manifest, opened, writing)
        if not said:
            context.workspace.narrate(
                f"waiting for live jobs that write already: {', '.join(map(_format_writer, writing))}"
            )
            said = True
        context.workspace.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
        context.ledger.freezes.renew_freeze(context.run_id, freeze.idle)
    # nobody to wait for is also the answer for a freeze that lapsed
    found = context.ledger.freezes.find_freeze(context.run_id) or opened
    if not found.is_open and context.ledger.now_ms() < found.most_until:
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
def _keep_freeze_alive(workspace: Workspace, run: RunRecord, freeze: Freeze) -> Iterator[None]:
    """Renew the freeze from its own thread, because a command may wait for Spark longer than the freeze lasts."""

    def renew() -> bool:
        workspace.ledger.freezes.renew_freeze(run.run_id, freeze.idle)
        return True

    with beating(freeze.idle, renew, f"freeze-{run.run_id}"):
        yield
        with suppress(EngineError):
            # start the full idle time at the end, so that a person has all of it to take the next step
            renew()
