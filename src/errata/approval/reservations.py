"""Partitions that approved campaigns keep for members that have not started, until the campaign is no longer valid."""

from __future__ import annotations

from collections.abc import Iterable

from errata.approval.quorum import build_member_check
from errata.ledger import CampaignRecord
from errata.model.approval import QuorumStatus
from errata.model.campaign.campaign_manifest import Campaign, Member
from errata.model.run import WITHOUT_RESULT
from errata.views.status import ReservationView
from errata.workspace import Workspace


def evaluate_member(workspace: Workspace, record: CampaignRecord, member: Member) -> QuorumStatus:
    """Whether a member's own rule is met by the approvals of its campaign, with the current roles."""
    check = build_member_check(workspace, member.manifest, record.digest, record.planned_by)
    return check(workspace.ledger.campaigns.approvals(record.campaign_id), workspace.ledger.now())


def list_reservations(workspace: Workspace, table: str | None = None) -> tuple[ReservationView, ...]:
    """Reserved partitions of a table (default: of all tables), newest campaign first."""
    records = workspace.ledger.campaigns.list()
    taken = find_superseding(workspace, records)
    found = []
    for record in records:
        if record.state != "open" or record.is_expired or not workspace.ledger.campaigns.approvals(record.campaign_id):
            continue
        campaign, started = (
            workspace.ledger.campaigns.manifest(record.campaign_id),
            workspace.ledger.members.list(record.campaign_id),
        )
        for member in campaign.members:
            if member.product in started or (table is not None and member.manifest.target.table != table):
                continue
            if (record.campaign_id, member.product) in taken or not evaluate_member(workspace, record, member).is_met:
                continue
            found.append(
                ReservationView(
                    record.campaign_id,
                    member.product,
                    member.manifest.partitions,
                    record.until,
                    member.manifest.target.grain.value,
                )
            )
    return tuple(found)


def find_superseding(workspace: Workspace, records: Iterable[CampaignRecord]) -> dict[tuple[str, str], str]:
    """Members whose place a member of a later campaign took: campaign and product → the later campaign.

    A later campaign that is over keeps the places only of the members that it brought to a result.
    """
    found: dict[tuple[str, str], str] = {}
    for record in records:
        if not record.supersedes:
            continue
        later: Campaign = workspace.ledger.campaigns.manifest(record.campaign_id)
        is_open = record.state == "open" and not record.is_expired
        started = workspace.ledger.members.list(record.campaign_id)
        for one in later.members:
            run = workspace.ledger.runs.get(started[one.product].run_id) if one.product in started else None
            if is_open if run is None else run.state not in WITHOUT_RESULT:
                found[record.supersedes, one.product] = record.campaign_id
    return found
