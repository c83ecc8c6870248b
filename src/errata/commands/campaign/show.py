"""`errata show CAMPAIGN`: a campaign as it is approved, fresh or read back from the ledger."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from errata.approval.quorum import quorum_view, to_approval_views
from errata.approval.reservations import evaluate_member
from errata.ledger import CampaignRecord
from errata.model.campaign.campaign_manifest import Campaign, DbtStep, Member
from errata.publishing.waves import describe_waves
from errata.views.campaign import CampaignPlanView, DbtStepView, MemberPlanView
from errata.workspace import Workspace


def show_campaign(workspace: Workspace, campaign_id: str) -> CampaignPlanView:
    """View of a campaign from its sealed manifest."""

    def read() -> CampaignPlanView:
        record = workspace.ledger.campaigns.get(campaign_id)
        campaign = workspace.ledger.campaigns.manifest(record.campaign_id)
        planned = workspace.ledger.audit.readable_entries(record.campaign_id, actions=("campaign.planned",))[0].body
        return campaign_plan_view(
            workspace, campaign, record.digest, record, notes=planned["notes"],
            verdicts=planned["verdicts"],
        )  # fmt: skip

    return workspace.ledger.read_together(read)


def campaign_plan_view(
    workspace: Workspace,
    campaign: Campaign,
    digest: str,
    record: CampaignRecord | None,
    *,
    campaign_id: str = "",
    already: bool = False,
    notes: Sequence[str] = (),
    verdicts: Mapping[str, Sequence[Sequence[Any]]] | None = None,
) -> CampaignPlanView:
    """View of a campaign; without a record it is a dry run."""
    if record is not None and verdicts is None:
        entries = workspace.ledger.audit.readable_entries(record.campaign_id, actions=("campaign.planned",))
        verdicts = entries[0].body["verdicts"]
    approvals = workspace.ledger.campaigns.approvals(record.campaign_id) if record else ()
    return CampaignPlanView(
        campaign_id=record.campaign_id if record else campaign_id,
        campaign_digest=digest,
        state=name_state(record) if record else "dry-run",
        already=already,
        product=campaign.product,
        reason=campaign.reason,
        requested_by=workspace.ledger.people.name(campaign.requested_by),
        members=tuple(
            _member_view(workspace, record, one, (verdicts or {}).get(one.product, ())) for one in campaign.members
        ),
        dbt=tuple(map(_dbt_view, campaign.dbt)),
        left_out={one.product: one.why for one in campaign.left_out},
        notes=tuple(notes),
        valid_for=campaign.valid_for,
        valid_until=record.until if record else "",
        supersedes=campaign.supersedes,
        single_user=campaign.single_user,
        approvals=to_approval_views(approvals),
    )


def name_state(record: CampaignRecord) -> str:
    """State of a campaign as people read it."""
    return "expired" if record.state == "open" and record.is_expired else record.state


def _member_view(
    workspace: Workspace, record: CampaignRecord | None, member: Member, verdicts: Sequence[Sequence[Any]]
) -> MemberPlanView:
    manifest = member.manifest
    gate = (manifest.checks, manifest.reconcile, manifest.compare, manifest.control, manifest.distribution)
    warned = [
        f"{rule}: {message}" + (f" (set aside: {why})" if why else "")
        for rule, level, message, why in verdicts
        if level == "warn"
    ]
    reads_files = any(pin.kind == "files" for pin in manifest.inputs)
    return MemberPlanView(
        product=member.product,
        partitions=manifest.partitions,
        after=member.after,
        table=manifest.target.table,
        owner=manifest.owner,
        grain=manifest.target.grain.value,
        transform=f"{manifest.code.call} {manifest.code.version}",
        rows=0 if reads_files else manifest.estimate.rows,
        chunks=len(manifest.chunks),
        mode=manifest.publish.mode,
        checks=sum(map(len, gate)),
        warnings=tuple(warned),
        live_inputs=member.live_inputs,
        quorum=quorum_view(evaluate_member(workspace, record, member)) if record else None,
        manual=manifest.manual,
        waves=describe_waves(manifest).get("waves"),
        new_columns={column.name: column.type for column in manifest.target.new_columns},
    )


def _dbt_view(step: DbtStep) -> DbtStepView:
    return DbtStepView(
        select=step.select,
        relation=step.relation,
        after=step.after,
        start=step.start,
        end=step.end,
        command=shlex.join(build_arguments(step)),
    )


def build_arguments(step: DbtStep) -> list[str]:
    """How dbt is called to build a step."""
    times = ["--event-time-start", step.start, "--event-time-end", step.end]
    return [*step.command, "build", "--select", step.select, *times]
