"""A person's decision over a sealed plan, and the control of a run: approve, decline, pause, resume, cancel, retry."""

from __future__ import annotations

from errata.errors import StateRefused
from errata.executor.approving import judge_of, quorum_view, standing_of
from errata.executor.desk import Desk
from errata.executor.glass import may_break, newest_broken, raise_alarm
from errata.executor.grouping import set_going
from errata.executor.noticing import live_writes_of, notice_live_writes
from errata.executor.views import approvals_view
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RunState
from errata.model.views import DecisionView, StateView

__all__ = ["approve", "cancel", "decline", "pause", "resume", "retry"]

S = RunState


def approve(
    desk: Desk, actor: Actor, run_id: str, digest: str, note: str, break_glass: str | None = None
) -> DecisionView:
    """Approve the plan with this digest; ``break_glass`` says why no second person and no quorum can be waited for."""
    run = desk.ledger.run(run_id)
    if break_glass is not None:
        may_break(desk, actor, break_glass, "approve", run.run_id)
    else:
        desk.allow(actor, (Role.APPROVER,), "approve", run.run_id)
        desk.persons_only(actor, (Role.APPROVER,), "approve", run.run_id)
        desk.not_the_requester(actor, run.planned_by, "approve", run.run_id)
    wanted = digest.removeprefix("sha256:").lower()
    return _decide(desk, actor, run, wanted, "approved", note, break_glass or "")


def decline(desk: Desk, actor: Actor, run_id: str, note: str) -> DecisionView:
    """Say no, for good."""
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.APPROVER,), "decline", run.run_id)
    desk.persons_only(actor, (Role.APPROVER,), "decline", run.run_id)
    desk.not_the_requester(actor, run.planned_by, "decline", run.run_id)
    return _decide(desk, actor, run, run.manifest_digest, "declined", note)


def _decide(
    desk: Desk, actor: Actor, run: RunRecord, digest: str, decision: str, note: str, break_glass: str = ""
) -> DecisionView:
    manifest = desk.ledger.manifest(run.run_id, actor)
    run, already = desk.ledger.decide(
        run.run_id, digest, actor.person, decision, note, actor,
        judge=judge_of(desk, run, manifest), break_glass=break_glass,
    )  # fmt: skip
    raise_alarm(desk, actor, run)
    if decision == "approved":
        notice_live_writes(desk, actor, run, manifest, "approve")
    return DecisionView(
        run.run_id,
        run.state.value,
        already,
        run.manifest_digest,
        approvals_view(desk, run.run_id),
        quorum=quorum_view(standing_of(desk, run, manifest)),
        break_glass=newest_broken(desk, run.run_id),
        single_user=actor.single_user,
        live_writes=live_writes_of(desk, run) if decision == "approved" else (),
    )


def pause(desk: Desk, actor: Actor, run_id: str) -> StateView:
    """No new chunk is claimed, and no further group published; what is under way finishes."""
    return set_going(desk, actor, run_id, going=False) or _control(desk, actor, run_id, S.PAUSED, {S.RUNNING}, "pause")


def resume(desk: Desk, actor: Actor, run_id: str) -> StateView:
    """Chunks may be claimed again, and groups published."""
    return set_going(desk, actor, run_id, going=True) or _control(desk, actor, run_id, S.RUNNING, {S.PAUSED}, "resume")


def cancel(desk: Desk, actor: Actor, run_id: str, *, now: bool = False) -> StateView:
    """The run ends; what was staged is swept by ``errata cleanup``; main was never touched.

    Chunks in flight finish; with ``now`` they are taken from their workers, which stop their Spark jobs at the next
    heartbeat.
    """
    ends = {S.PLANNED, S.APPROVED, S.RUNNING, S.PAUSED, S.FAILED, S.STAGED, S.REJECTED, S.VALIDATED}
    view = _control(desk, actor, run_id, S.CANCELLED, ends, "cancel")
    if now:
        desk.ledger.release_all(view.run_id, actor=actor, reason="cancelled")
    return view


def _control(desk: Desk, actor: Actor, run_id: str, to: RunState, start: set[RunState], action: str) -> StateView:
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.OPERATOR,), action, run.run_id)
    if run.state is to:
        return StateView(run.run_id, run.state.value, already=True)
    moved = desk.ledger.move(run.run_id, to, actor=actor, expect=start)
    return StateView(moved.run_id, moved.state.value)


def retry(desk: Desk, actor: Actor, run_id: str, chunk: str | None) -> StateView:
    """Failed chunks may be claimed again."""
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.OPERATOR,), "retry", run.run_id)
    again = desk.ledger.retry(run.run_id, chunk, actor)
    if not again and run.state is not S.FAILED:
        raise StateRefused(
            f"retry of {run.run_id} was refused; it has no failed chunk",
            state="nothing was changed",
            hint=f"errata status {run.run_id}",
        )
    if run.state is S.FAILED:
        run = desk.ledger.move(run.run_id, S.RUNNING, actor=actor, action="run.retried")
    return StateView(run.run_id, run.state.value)
