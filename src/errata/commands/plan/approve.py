"""A person's decision over a sealed plan, and the control of a run: approve, decline, pause, resume, cancel, retry."""

from __future__ import annotations

from errata.approval.break_glass import find_last_break_glass, raise_alarm, require_break_glass
from errata.approval.quorum import approvals_view, build_quorum_check, evaluate_quorum, quorum_view
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RunState
from errata.publishing.live_writes import notice_live_writes, read_live_writes
from errata.views import DecisionView
from errata.workspace import Desk

S = RunState


def approve(
    desk: Desk, actor: Actor, run_id: str, digest: str, note: str, break_glass: str | None = None
) -> DecisionView:
    """Approve the plan with this digest; ``break_glass`` says why no second person and no quorum can be waited for."""
    run = desk.ledger.run(run_id)
    if break_glass is not None:
        require_break_glass(desk, actor, break_glass, "approve", run.run_id)
    else:
        desk.require_role(actor, (Role.APPROVER,), "approve", run.run_id)
        desk.require_person(actor, (Role.APPROVER,), "approve", run.run_id)
        desk.refuse_requester(actor, run.planned_by, "approve", run.run_id)
    wanted = digest.removeprefix("sha256:").lower()
    return _record_decision(desk, actor, run, wanted, "approved", note, break_glass or "")


def decline(desk: Desk, actor: Actor, run_id: str, note: str) -> DecisionView:
    """Say no, for good."""
    run = desk.ledger.run(run_id)
    desk.require_role(actor, (Role.APPROVER,), "decline", run.run_id)
    desk.require_person(actor, (Role.APPROVER,), "decline", run.run_id)
    desk.refuse_requester(actor, run.planned_by, "decline", run.run_id)
    return _record_decision(desk, actor, run, run.manifest_digest, "declined", note)


def _record_decision(
    desk: Desk, actor: Actor, run: RunRecord, digest: str, decision: str, note: str, break_glass: str = ""
) -> DecisionView:
    manifest = desk.ledger.manifest(run.run_id, actor)
    run, already = desk.ledger.decide(
        run.run_id, digest, actor.person, decision, note, actor,
        judge=build_quorum_check(desk, run, manifest), break_glass=break_glass,
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
        quorum=quorum_view(evaluate_quorum(desk, run, manifest)),
        break_glass=find_last_break_glass(desk, run.run_id),
        single_user=actor.single_user,
        live_writes=read_live_writes(desk, run) if decision == "approved" else (),
    )
