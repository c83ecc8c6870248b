"""`errata approve` and `errata decline`: a person's decision about a sealed plan."""

from __future__ import annotations

from errata.approval.break_glass import find_last_break_glass, owe_alarm, require_break_glass
from errata.approval.permissions import refuse_requester, require_person, require_role
from errata.approval.quorum import approvals_view, build_quorum_check, evaluate_quorum, quorum_view
from errata.canonical import parse_digest
from errata.commands.plan.show import show_plan
from errata.commands.situation import hint_next_step
from errata.delivery.alarms import raise_alarm
from errata.delivery.obligations import APPROVED, list_owed
from errata.errors import ApprovalRefused, StateRefused
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.consumer.outbox import Owed
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.run import RunState
from errata.publishing.live_writes import notice_live_writes, read_live_writes
from errata.text.escape import require_reason
from errata.views import DecisionView
from errata.workspace import RunContext, Workspace

S = RunState


@hint_next_step
def approve(
    workspace: Workspace, actor: Actor, run_id: str, digest: str | None, note: str, break_glass: str | None = None
) -> DecisionView:
    """Approve the plan with this digest; without one, refuse and show what would be signed.

    ``break_glass`` is the reason for deciding alone, without the quorum.
    """
    run = workspace.ledger.runs.get(run_id)
    if break_glass is not None:
        require_break_glass(workspace, actor, break_glass, "approve", run.run_id)
    else:
        require_role(workspace, actor, (Role.APPROVER,), "approve", run.run_id)
        require_person(workspace, actor, (Role.APPROVER,), "approve", run.run_id)
        refuse_requester(workspace, actor, run.planned_by, "approve", run.run_id)
    if not workspace.ledger.runs.manifest(run.run_id, actor).changes_table:
        raise StateRefused(
            f"approve of {run.run_id} was refused; it changes nothing and needs no approval",
            state="nothing was changed",
            run_id=run.run_id,
        )
    given = parse_digest(digest or "")
    if not given:
        raise ApprovalRefused(
            f"approve of {run.run_id} was refused; expected the digest of the plan, found none",
            state="nothing was changed",
            hint=f"look at the plan, then on a terminal: errata approve {run.run_id}; a program passes --digest",
            plan=show_plan(workspace, actor, run.run_id),
        )
    return _record_decision(workspace, actor, run, given, "approved", note, break_glass or "")


@hint_next_step
def decline(workspace: Workspace, actor: Actor, run_id: str, note: str) -> DecisionView:
    """Decline the plan; this is final."""
    run = workspace.ledger.runs.get(run_id)
    require_reason("decline", note, f"errata decline {run.run_id}")
    require_role(workspace, actor, (Role.APPROVER,), "decline", run.run_id)
    require_person(workspace, actor, (Role.APPROVER,), "decline", run.run_id)
    refuse_requester(workspace, actor, run.planned_by, "decline", run.run_id)
    return _record_decision(workspace, actor, run, run.manifest_digest, "declined", note)


def _list_owed(workspace: Workspace, run: RunRecord, manifest: Manifest, decision: str) -> tuple[Owed, ...]:
    return list_owed(workspace, run, manifest, APPROVED, run.partitions) if decision == "approved" else ()


def _record_decision(
    workspace: Workspace, actor: Actor, run: RunRecord, digest: str, decision: str, note: str, break_glass: str = ""
) -> DecisionView:
    if member := workspace.ledger.members.of_run(run.run_id):
        verb = "approve" if decision == "approved" else "decline"
        raise ApprovalRefused(
            f"{verb} of {run.run_id} was refused; it is a member of {member.campaign_id}, which is decided as a whole",
            state="nothing was changed",
            hint=f"errata show {member.campaign_id}",
        )
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    workspace.log_about(run.run_id, manifest)
    run, already = workspace.ledger.approvals.decide(
        run.run_id, digest, actor.person, decision, note, actor,
        judge=build_quorum_check(workspace, run, manifest), break_glass=break_glass,
        owes=(*owe_alarm(workspace, break_glass), *_list_owed(workspace, run, manifest, decision)),
    )  # fmt: skip
    raise_alarm(workspace, actor, run)
    if decision == "approved":
        notice_live_writes(RunContext(workspace, actor, run, manifest), "approve")
    return DecisionView(
        run.run_id,
        run.state.value,
        already,
        run.manifest_digest,
        approvals_view(workspace, run.run_id),
        quorum=quorum_view(evaluate_quorum(workspace, run, manifest)),
        break_glass=find_last_break_glass(workspace, run.run_id),
        single_user=actor.single_user,
        live_writes=read_live_writes(workspace, run) if decision == "approved" else (),
    )
