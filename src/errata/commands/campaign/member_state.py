"""Where each member of a campaign is; read from the ledger, and never from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.approval.reservations import evaluate_member, find_superseding
from errata.commands.campaign.show import name_state
from errata.ledger import CampaignRecord, RunRecord
from errata.model.campaign.campaign_manifest import Campaign, Member, list_ancestors
from errata.model.run import RunState
from errata.views.campaign import MemberView
from errata.workspace import Workspace

S = RunState
DRIFTED = "member.drifted"
"""Action of the audit entry that says why a member needs a new approval."""
READY, WAITING, STOPPED, NOT_APPROVED = "ready", "waiting", "stopped", "not_approved"
DRIFT, SUPERSEDED, BUILT, FAILED = "drifted", "superseded", "built", "failed"
_ENDS = frozenset({S.REJECTED, S.CANCELLED, S.EXPIRED, S.DECLINED, S.ROLLED_BACK, S.SUPERSEDED})
_ENDED = frozenset({*(state.value for state in _ENDS), STOPPED, DRIFT, SUPERSEDED})
"""States after which the members that read it cannot continue in this campaign."""
OUT = frozenset({S.PUBLISHED.value, BUILT})


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign, and where each of its members is."""

    record: CampaignRecord
    campaign: Campaign
    members: tuple[MemberView, ...]  # members, then models of dbt, in order

    def find(self, name: str) -> MemberView:
        """One member or model of dbt."""
        return next(one for one in self.members if one.product == name)

    @property
    def is_done(self) -> bool:
        """Whether everything is published and built."""
        return all(one.state in OUT for one in self.members)


def read_campaign(workspace: Workspace, campaign_id: str) -> CampaignState:
    """The campaign with this id or unique part of one, as it is now."""
    return workspace.ledger.read_together(lambda: _read_campaign(workspace, campaign_id))


def _read_campaign(workspace: Workspace, campaign_id: str) -> CampaignState:
    record = workspace.ledger.campaigns.get(campaign_id)
    campaign = workspace.ledger.campaigns.manifest(record.campaign_id)
    started = workspace.ledger.members.list(record.campaign_id)
    runs = {product: workspace.ledger.runs.get(one.run_id) for product, one in started.items()}
    taken = find_superseding(workspace, workspace.ledger.campaigns.list())
    drifted = _read_drift(workspace, record)
    found: dict[str, MemberView] = {}
    for member in campaign.members:
        later = taken.get((record.campaign_id, member.product))
        found[member.product] = _member_view(
            workspace, record, campaign, member, runs.get(member.product), found, later, drifted
        )
    outcomes = {one.step: one for one in workspace.ledger.campaigns.steps(record.campaign_id)}
    for step in campaign.dbt:
        last = outcomes.get(step.select)
        state, told = last.outcome if last else "", ""
        if state != BUILT:
            waits, told = _find_obstacle(record, campaign, step.select, found)
            # a model is approved with the members that it reads
            state = waits or (FAILED if state == FAILED else DRIFT if step.select in drifted else READY)
            told = told or (drifted.get(step.select, "") if state == DRIFT else "")
        span = f"{step.start} … {step.end}"
        found[step.select] = MemberView(step.select, None, state, (span,), step.after, told=told, is_dbt=True)
    return CampaignState(record, campaign, tuple(found.values()))


def _member_view(
    workspace: Workspace,
    record: CampaignRecord,
    campaign: Campaign,
    member: Member,
    run: RunRecord | None,
    before: Mapping[str, MemberView],
    later: str | None,
    drifted: Mapping[str, str],
) -> MemberView:
    state, told = _find_state(workspace, record, campaign, member, run, before, later, drifted)
    grain = member.manifest.target.grain.value
    run_id = run.run_id if run else None
    return MemberView(member.product, run_id, state, member.manifest.partitions, member.after, grain, told)


def _find_state(
    workspace: Workspace,
    record: CampaignRecord,
    campaign: Campaign,
    member: Member,
    run: RunRecord | None,
    before: Mapping[str, MemberView],
    later: str | None,
    drifted: Mapping[str, str],
) -> tuple[str, str]:
    if run is not None:
        return run.state.value, ""
    if later is not None:
        return SUPERSEDED, f"{later} takes its place"
    state, told = _find_obstacle(record, campaign, member.product, before)
    if state in ("", WAITING):
        quorum = evaluate_member(workspace, record, member)
        if not quorum.is_met:
            who = f"; may approve: {', '.join(quorum.may)}" if quorum.may else ""
            return NOT_APPROVED, f"{'; '.join(quorum.missing)}{who}"
    if not state and member.product in drifted:
        return DRIFT, drifted[member.product]
    return state or READY, told


def _find_obstacle(
    record: CampaignRecord, campaign: Campaign, name: str, before: Mapping[str, MemberView]
) -> tuple[str, str]:
    """Why a step cannot start because of what comes before it; empty if it can."""
    if (over := name_state(record)) != "open":
        return over, f"the campaign is {over}"
    ended = [one for one in list_ancestors(campaign.list_steps(), name) if before[one].state in _ENDED]
    if ended:
        return STOPPED, f"{ended[0]} is {before[ended[0]].state.replace('_', ' ')}"
    after = dict(campaign.list_steps())[name]
    if waits := [one for one in after if before[one].state not in OUT]:
        return WAITING, f"for {' and '.join(waits)}"
    return "", ""


def _read_drift(workspace: Workspace, record: CampaignRecord) -> dict[str, str]:
    """What last kept each member from starting, in words."""
    entries = workspace.ledger.audit.readable_entries(record.campaign_id, actions=(DRIFTED,))
    bodies: list[Mapping[str, Any]] = [entry.body for entry in entries]
    return {str(body["member"]): str(body["told"]) for body in bodies}
