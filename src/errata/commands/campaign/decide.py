"""`errata approve`, `errata decline` and `errata cancel` of a campaign."""

from __future__ import annotations

from errata.approval.permissions import refuse_requester, require_person, require_role
from errata.canonical import parse_digest
from errata.commands.campaign.show import show_campaign
from errata.commands.campaign.status import build_campaign_status
from errata.errors import ApprovalRefused
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RUN_MOVES, RunState
from errata.publishing.readers.ready_table import owe_ready
from errata.text.escape import require_reason
from errata.views.campaign import CampaignView
from errata.workspace import Workspace


def approve_campaign(
    workspace: Workspace, actor: Actor, campaign_id: str, digest: str | None, note: str
) -> CampaignView:
    """Approve the campaign with this digest; each member still needs what its own product asks for."""
    record = workspace.ledger.campaigns.get(campaign_id)
    require_role(workspace, actor, (Role.APPROVER,), "approve", record.campaign_id)
    require_person(workspace, actor, (Role.APPROVER,), "approve", record.campaign_id)
    refuse_requester(workspace, actor, record.planned_by, "approve", record.campaign_id)
    given = parse_digest(digest or "")
    if not given:
        raise ApprovalRefused(
            f"approve of {record.campaign_id} was refused; expected the digest of the campaign, found none",
            state="nothing was changed",
            hint=f"look at it, then on a terminal: errata approve {record.campaign_id}; a program passes --digest",
            plan=show_campaign(workspace, record.campaign_id),
        )
    workspace.ledger.campaigns.decide(record.campaign_id, given, "approved", note, actor)
    return build_campaign_status(workspace, actor, record.campaign_id)


def decline_campaign(workspace: Workspace, actor: Actor, campaign_id: str, note: str) -> CampaignView:
    """Decline the campaign; this is final, and ends its runs that are not published."""
    record = workspace.ledger.campaigns.get(campaign_id)
    require_reason("decline", note, f"errata decline {record.campaign_id}")
    require_role(workspace, actor, (Role.APPROVER,), "decline", record.campaign_id)
    require_person(workspace, actor, (Role.APPROVER,), "decline", record.campaign_id)
    refuse_requester(workspace, actor, record.planned_by, "decline", record.campaign_id)
    owes = owe_ready(workspace.project, "declined")
    workspace.ledger.campaigns.decide(record.campaign_id, record.digest, "declined", note, actor, owes)
    cancel_unpublished(workspace, actor, record.campaign_id, f"{record.campaign_id} was declined")
    return build_campaign_status(workspace, actor, record.campaign_id)


def cancel_campaign(workspace: Workspace, actor: Actor, campaign_id: str, reason: str) -> CampaignView:
    """End a campaign: no member starts any more, and members that are not published are cancelled."""
    record = workspace.ledger.campaigns.get(campaign_id)
    require_reason("a cancellation", reason, f"errata cancel {campaign_id}")
    require_role(workspace, actor, (Role.OPERATOR,), "cancel", record.campaign_id)
    # the campaign first, so that nothing starts while its runs are cancelled
    workspace.ledger.campaigns.end(
        record.campaign_id, reason, actor, owe_ready(workspace.project, RunState.CANCELLED.value)
    )
    cancel_unpublished(workspace, actor, record.campaign_id, reason)
    return build_campaign_status(workspace, actor, record.campaign_id)


def cancel_unpublished(workspace: Workspace, actor: Actor, campaign_id: str, reason: str) -> None:
    """Cancel the runs of a campaign that can be cancelled."""
    for member in workspace.ledger.members.list(campaign_id).values():
        if RunState.CANCELLED in RUN_MOVES[workspace.ledger.runs.get(member.run_id).state]:
            move_body = {"reason": reason, "campaign": campaign_id}
            owes = owe_ready(workspace.project, RunState.CANCELLED.value)
            workspace.ledger.runs.move(member.run_id, RunState.CANCELLED, actor=actor, body=move_body, owes=owes)
