"""Quorum: who approved, whose approval still counts, and who is missing.

Roles, teams and aliases come from the current project file; quorum, owner and maximum age come from the sealed plan.
Age is measured by the ledger's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from errata.approval.permissions import is_single_user
from errata.errors import ApprovalRefused
from errata.ledger import ApprovalRecord, RunRecord
from errata.ledger.store.approvals import QuorumCheck
from errata.model.approval import QuorumStatus, Voters, count_approvals
from errata.model.manifest import Manifest
from errata.model.product import Project, Role
from errata.model.run import FINAL
from errata.views import ApprovalView, QuorumView
from errata.workspace import RunContext, Workspace


def build_voters(project: Project, owner: str, *, single_user: bool) -> Voters:
    """People whose approval counts for a product of this owner."""
    team = frozenset(name for name, person in project.people.items() if owner in person.teams)
    return Voters(
        approvers=frozenset(project.list_with_role(Role.APPROVER)),
        breakers=frozenset(project.list_with_role(Role.BREAK_GLASS)),
        owner=owner if team else "",
        team=team,
        single_user=single_user,
    )


def build_quorum_check(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumCheck:
    """Quorum rule of this run as a function, so that the ledger can evaluate it inside its transaction."""
    voters = build_voters(workspace.project, manifest.owner, single_user=is_single_user(workspace.project, manifest))
    requester = workspace.project.find_case_variant(run.planned_by) or run.planned_by

    def judge(given: Iterable[ApprovalRecord], at: str) -> QuorumStatus:
        now = datetime.fromisoformat(at)
        return count_approvals(
            manifest.approval, voters, given, digest=run.manifest_digest, requester=requester, now=now
        )

    return judge


def evaluate_quorum(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumStatus:
    """Current quorum status of a run."""
    return build_quorum_check(workspace, run, manifest)(
        workspace.ledger.approvals.list(run.run_id), workspace.ledger.now()
    )


def require_approvals(context: RunContext, action: str) -> QuorumStatus:
    """Refuse ``action`` when the approvals of the run no longer meet the quorum."""
    stands = evaluate_quorum(context.workspace, context.run, context.manifest)
    if stands.is_met:
        return stands
    error = ApprovalRefused(
        f"{action} of {context.run_id} was refused; {'; '.join(stands.missing)}",
        state="nothing was changed",
        hint=format_approve_hint(context.run, stands),
        may=list(stands.may),
    )
    context.ledger.audit.record_refusal(context.run_id, context.actor, action, error.message)
    raise error


def format_approve_hint(run: RunRecord, stands: QuorumStatus) -> str:
    """The command that approves again, and who may run it."""
    who = f", by {' or '.join(stands.may)}" if stands.may else ""
    return f"approve again{who}: errata approve {run.run_id}"


def current_quorum_view(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumView | None:
    """Quorum status of an active run; None once the run has ended, or if it changes nothing and needs no approval."""
    return (
        None
        if run.state in FINAL or not manifest.changes_table
        else quorum_view(evaluate_quorum(workspace, run, manifest))
    )


def quorum_view(stands: QuorumStatus) -> QuorumView:
    """Quorum status as a view."""
    return QuorumView(
        needed=stands.quorum,
        given=min(len(stands.counted), stands.quorum),
        met=stands.is_met,
        people=stands.counted,
        told=stands.told,
        lacks_owner=stands.lacks_owner or None,
        may=stands.may,
        void=dict(stands.void),
    )


def approvals_view(workspace: Workspace, run_id: str) -> tuple[ApprovalView, ...]:
    """Decisions on a run: who approved or declined it."""
    return tuple(
        ApprovalView(a.person, a.decision, a.digest, a.at, a.note, a.break_glass or None)
        for a in workspace.ledger.approvals.list(run_id)
    )
