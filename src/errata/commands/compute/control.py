"""`errata pause`, `resume`, `cancel` and `retry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from errata.approval.permissions import require_role
from errata.commands.situation import hint_next_step
from errata.errors import StateRefused
from errata.ledger import PartitionState
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RUN_MOVES, RunState
from errata.publishing.readers.ready_table import owe_ready
from errata.publishing.waves import set_waves_going
from errata.text.escape import require_reason
from errata.text.numbers import plural
from errata.views import StateView
from errata.workspace import Workspace

S = RunState


@hint_next_step
def pause(workspace: Workspace, actor: Actor, run_id: str) -> StateView:
    """Pause a run: no new chunk is claimed and no further wave published; running chunks finish."""
    return set_waves_going(workspace, actor, run_id, going=False) or _move_run(
        workspace, actor, run_id, S.PAUSED, {S.RUNNING}, "pause"
    )


@hint_next_step
def resume(workspace: Workspace, actor: Actor, run_id: str) -> StateView:
    """Resume a run: chunks may be claimed and waves published again."""
    return set_waves_going(workspace, actor, run_id, going=True) or _move_run(
        workspace, actor, run_id, S.RUNNING, {S.PAUSED}, "resume"
    )


@hint_next_step
def cancel(workspace: Workspace, actor: Actor, run_id: str, reason: str, *, now: bool = False) -> StateView:
    """End a run: what is not published never will be, and ``errata cleanup`` removes its staged output.

    What readers have already stays; the view says how to roll it back.

    The audit log keeps the reason. Running chunks finish; with ``now`` they are taken from their workers, which stop
    their Spark jobs at the next heartbeat.
    """
    require_reason("a cancellation", reason, f"errata cancel {run_id}")
    ends = {state for state in RUN_MOVES if S.CANCELLED in RUN_MOVES[state]}
    try:
        view = _move_run(workspace, actor, run_id, S.CANCELLED, ends, "cancel", {"reason": reason})
    except StateRefused as error:
        if S.ROLLED_BACK in RUN_MOVES[RunState(error.fields["found"])]:
            full = error.fields["run_id"]
            error.hint = f'roll back what is published, which ends the run: errata rollback {full} --reason "…"'
        raise
    if workspace.ledger.runs.manifest(view.run_id).repairs:
        from errata.commands.compute.repair import end_repairs

        end_repairs(workspace, actor, view.run_id, f"cancelled: {reason}")
    # after the move, so that no other worker claims a reclaimed chunk
    if now:
        workspace.ledger.chunks.reclaim(view.run_id, actor=actor, reason="cancelled")
    states = workspace.ledger.partitions.states(view.run_id).values()
    if out := sum(state is PartitionState.ACCEPTED for state in states):
        note = f"{plural(out, 'partition')} stay published; to restore the previous data: errata rollback {view.run_id}"
        return replace(view, note=f'{note} --reason "…"')
    return view


def _move_run(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    to: RunState,
    start: set[RunState],
    action: str,
    body: Mapping[str, str] | None = None,
) -> StateView:
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.OPERATOR,), action, run.run_id)
    if run.state is to:
        return StateView(run.run_id, run.state.value, already=True)
    workspace.log_about(run.run_id)
    owes = owe_ready(workspace.project, to.value) if to is S.CANCELLED else ()
    moved = workspace.ledger.runs.move(run.run_id, to, actor=actor, expect=start, body=body, owes=owes)
    return StateView(moved.run_id, moved.state.value)


@hint_next_step
def retry(workspace: Workspace, actor: Actor, run_id: str, chunk: str | None) -> StateView:
    """Let failed chunks be claimed again (default: all of them), and set a failed run to running."""
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.OPERATOR,), "retry", run.run_id)
    workspace.log_about(run.run_id)
    again = workspace.ledger.outcomes.retry(run.run_id, chunk, actor)
    if not again and run.state is not S.FAILED:
        raise StateRefused(
            f"retry of {run.run_id} was refused; it has no failed chunk",
            state="nothing was changed",
            run_id=run.run_id,
        )
    if run.state is S.FAILED:
        run = workspace.ledger.runs.move(run.run_id, S.RUNNING, actor=actor, action="run.retried")
    return StateView(run.run_id, run.state.value)
