"""Quorum: who approved, whose approval still counts, and who is missing.

Roles, teams and aliases come from the current project file; quorum, owner and maximum age come from the sealed plan.
Age is measured by the ledger's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from errata.approval.permissions import is_single_user
from errata.approval.standing import explain_void_standing
from errata.approval.voters import build_voters
from errata.errors import ApprovalRefused
from errata.ledger import ApprovalRecord, RunRecord
from errata.ledger.store.approvals import QuorumCheck
from errata.model.approval import QuorumStatus, count_approvals
from errata.model.manifest import Manifest
from errata.model.run import FINAL
from errata.views import ApprovalView, QuorumView
from errata.workspace import RunContext, Workspace


def build_quorum_check(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumCheck:
    """Quorum rule of this run as a function, so that the ledger can evaluate it inside its transaction."""
    # a member of a campaign is approved by signatures over the campaign's digest, under its own product's rule
    return build_member_check(workspace, manifest, manifest.campaign or run.manifest_digest, run.planned_by)


def build_member_check(workspace: Workspace, manifest: Manifest, digest: str, planned_by: str) -> QuorumCheck:
    """The quorum rule of one product, met by approvals of this digest."""
    voters = build_voters(workspace.project, manifest.owner, single_user=is_single_user(workspace.project, manifest))
    requester = workspace.project.find_case_variant(planned_by) or planned_by

    def judge(given: Iterable[ApprovalRecord], at: str) -> QuorumStatus:
        now = datetime.fromisoformat(at)
        return count_approvals(manifest.approval, voters, given, digest=digest, requester=requester, now=now)

    return judge


def evaluate_quorum(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumStatus:
    """Current quorum status of a run, by the approvals of its plan or by a standing approval that covers it."""
    given, now = list_approvals(workspace, run), workspace.ledger.now()
    found = build_quorum_check(workspace, run, manifest)(given, now)
    used = None if found.is_met else workspace.ledger.standing.find_used(run.run_id)
    if used is None:
        return found
    why = explain_void_standing(workspace, run, manifest, used)
    if not why:
        return replace(found, standing=used.digest)
    return replace(found, void={**found.void, f"standing approval {used.digest[:12]}": f"does not count: {why}"})


def list_approvals(workspace: Workspace, run: RunRecord) -> tuple[ApprovalRecord, ...]:
    """Decisions on a run, or on the campaign that it is a member of; oldest first."""
    member = workspace.ledger.members.of_run(run.run_id)
    if member is not None:
        return workspace.ledger.campaigns.approvals(member.campaign_id)
    return workspace.ledger.approvals.list(run.run_id)


def require_approvals(context: RunContext, action: str) -> QuorumStatus:
    """Refuse ``action`` when the approvals of the run no longer meet the quorum."""
    stands = evaluate_quorum(context.workspace, context.run, context.manifest)
    if stands.is_met:
        return stands
    error = ApprovalRefused(
        f"{action} of {context.run_id} was refused; {'; '.join(stands.missing)}",
        state="nothing was changed",
        hint=format_approve_hint(context.workspace, context.run, stands),
        may=list(stands.may),
    )
    context.ledger.audit.record_refusal(context.run_id, context.actor, action, error.message)
    raise error


def format_approve_hint(workspace: Workspace, run: RunRecord, stands: QuorumStatus) -> str:
    """The command that approves again, and who may run it."""
    who = f", by {' or '.join(stands.may)}" if stands.may else ""
    member = workspace.ledger.members.of_run(run.run_id)
    return f"approve again{who}: errata approve {member.campaign_id if member else run.run_id}"


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
    """Decisions on a run: who approved or declined it, or the campaign that it is a member of."""
    return to_approval_views(list_approvals(workspace, workspace.ledger.runs.get(run_id)))


def to_approval_views(given: Iterable[ApprovalRecord]) -> tuple[ApprovalView, ...]:
    """Decisions as views."""
    return tuple(ApprovalView(a.person, a.decision, a.digest, a.at, a.note, a.break_glass or None) for a in given)
