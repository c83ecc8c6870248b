"""`errata status CAMPAIGN`: every member with its run, and the next commands; reads only, and never starts a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from errata.approval.quorum import to_approval_views
from errata.approval.suggestion import complete_commands
from errata.commands.campaign.member_state import (
    DRIFT,
    FAILED,
    NOT_APPROVED,
    READY,
    CampaignState,
    read_campaign,
)
from errata.commands.campaign.show import name_state
from errata.commands.situation import suggest_steps
from errata.model.audit import Actor
from errata.model.partition import format_partition_list
from errata.model.run import RunState
from errata.views.campaign import CampaignView, MemberView
from errata.workspace import Workspace

_GOES_ON = frozenset({READY, RunState.APPROVED, RunState.RUNNING, RunState.STAGED, FAILED})


def build_campaign_status(
    workspace: Workspace,
    actor: Actor,
    campaign_id: str,
    *,
    problems: Mapping[str, str] | None = None,
    exit_code: int = 0,
) -> CampaignView:
    """Where a campaign is; ``problems`` are those that a command met."""

    def read() -> CampaignView:
        found = read_campaign(workspace, campaign_id)
        record = found.record
        later = next(
            (
                one.campaign_id
                for one in workspace.ledger.campaigns.list()
                if one.supersedes == record.campaign_id and one.state == "open"
            ),
            None,
        )
        return CampaignView(
            campaign_id=record.campaign_id,
            campaign_digest=record.digest,
            state=_name_state(found),
            product=record.product,
            reason=record.reason,
            requested_by=record.planned_by,
            members=found.members,
            valid_until=record.until,
            approvals=to_approval_views(workspace.ledger.campaigns.approvals(record.campaign_id)),
            next=tuple(complete_commands(workspace, actor, one) for one in _list_next(workspace, actor, found)),
            problems=problems,
            exit_code=exit_code,
            single_user=found.campaign.single_user,
            superseded_by=later,
        )

    return workspace.ledger.read_together(read)


def _name_state(found: CampaignState) -> str:
    if found.is_done:
        return "done"
    gone = any(one.state == RunState.ROLLED_BACK for one in found.members)
    return "rolled_back" if gone and found.record.state == "cancelled" else name_state(found.record)


def _list_next(workspace: Workspace, actor: Actor, found: CampaignState) -> list[str]:
    """The commands to type next, each once: decisions first, then what continues by itself."""
    steps: list[str] = []
    goes_on = False
    for member in found.members:
        if member.state == NOT_APPROVED:
            steps.append(f"errata approve {found.record.campaign_id}")
        elif member.state == DRIFT and member.is_dbt:
            goes_on = True  # once it is as it was approved
        elif member.state == DRIFT:
            steps.append(format_new_campaign(found, member))
        elif member.state in _GOES_ON and (member.run_id is None or member.state != RunState.FAILED):
            goes_on = True
        elif member.run_id is not None and member.state != RunState.PUBLISHED:
            steps += suggest_steps(workspace, actor, member.run_id)[:1]
    if goes_on:
        steps.append(f"errata run {found.record.campaign_id}")
    return list(dict.fromkeys(steps))


def format_new_campaign(found: CampaignState, member: MemberView) -> str:
    """The command that plans a member and what follows from it again, for a new approval."""
    sealed = found.campaign.find(member.product).manifest
    names = format_partition_list(sealed.target.grain, member.partitions)
    place = f"--cascade --supersede {found.record.campaign_id}"
    return f'errata plan {member.product} --partitions {names} {place} --reason "…"'
