"""Quorum: who approved, whose approval counts today, and who is still missing.

Roles, teams and aliases are read from the project file as it is now; quorum, owner and age are those that the plan
sealed. Age is measured by the ledger's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from errata.errors import ApprovalRefused
from errata.ledger import ApprovalRecord, RunRecord
from errata.ledger.store.approvals import QuorumCheck
from errata.model.approval import QuorumStatus, Voters, count_approvals
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.product import Project, Role
from errata.model.run import FINAL
from errata.views import ApprovalView, QuorumView
from errata.workspace import Workspace


def build_voters(project: Project, owner: str, *, single_user: bool) -> Voters:
    """Who counts for a product of this owner."""
    team = frozenset(name for name, person in project.people.items() if owner in person.teams)
    return Voters(
        approvers=frozenset(project.list_with_role(Role.APPROVER)),
        breakers=frozenset(project.list_with_role(Role.BREAK_GLASS)),
        owner=owner if team else "",
        team=team,
        single_user=single_user,
    )


def build_quorum_check(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumCheck:
    """What approvals of this run amount to, as a question that the ledger can ask inside a transaction."""
    single_user = manifest.single_user and workspace.project.single_user
    voters = build_voters(workspace.project, manifest.owner, single_user=single_user)
    requester = workspace.project.find_case_variant(run.planned_by) or run.planned_by

    def judge(given: Iterable[ApprovalRecord], at: str) -> QuorumStatus:
        now = datetime.fromisoformat(at)
        return count_approvals(
            manifest.approval, voters, given, digest=run.manifest_digest, requester=requester, now=now
        )

    return judge


def evaluate_quorum(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumStatus:
    """What the approvals of a run amount to now."""
    return build_quorum_check(workspace, run, manifest)(
        workspace.ledger.approvals.list(run.run_id), workspace.ledger.now()
    )


def require_approvals(
    workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest, action: str
) -> QuorumStatus:
    """Refuse ``action`` when what was approved once is no longer enough."""
    stands = evaluate_quorum(workspace, run, manifest)
    if stands.is_met:
        return stands
    error = ApprovalRefused(
        f"{action} of {run.run_id} was refused; {'; '.join(stands.missing)}",
        state="nothing was changed",
        hint=format_approve_hint(run, stands),
        may=list(stands.may),
    )
    workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
    raise error


def format_approve_hint(run: RunRecord, stands: QuorumStatus) -> str:
    """The command that mends it, and who may type it."""
    who = f" (as {' or '.join(stands.may)})" if stands.may else ""
    return f"approve again: errata approve {run.run_id} --digest {run.manifest_digest}{who}"


def current_quorum_view(workspace: Workspace, run: RunRecord, manifest: Manifest) -> QuorumView | None:
    """What the approvals of a run under way amount to; of one that is over nobody asks any more."""
    return None if run.state in FINAL else quorum_view(evaluate_quorum(workspace, run, manifest))


def quorum_view(stands: QuorumStatus) -> QuorumView:
    """For people and programs."""
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
    """Decisions over a run."""
    return tuple(
        ApprovalView(a.person, a.decision, a.digest, a.at, a.note, a.break_glass or None)
        for a in workspace.ledger.approvals.list(run_id)
    )
