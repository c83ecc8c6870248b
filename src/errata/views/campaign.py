"""Campaigns: what was planned, and where each member is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.views.approval import ApprovalView, QuorumView


@dataclass(frozen=True, slots=True)
class MemberPlanView:
    """One product of a campaign, as it is sealed."""

    product: str
    partitions: tuple[str, ...]
    after: tuple[str, ...]  # members that are published before it starts
    table: str
    owner: str
    grain: str
    transform: str
    rows: int  # that it reads; 0: unknown, because planning opens no files
    chunks: int
    mode: str
    checks: int
    warnings: tuple[str, ...] = ()  # of guardrails, and rules that were set aside
    live_inputs: tuple[str, ...] = ()  # read as they are when the member starts
    quorum: QuorumView | None = None  # by the approvals of the campaign
    manual: bool = True  # False: published by itself when the gate finds nothing
    waves: Mapping[str, Any] | None = None  # as in the plan of a run; None: published as a whole
    new_columns: Mapping[str, str] = field(default_factory=dict)  # name → type, visible with the publication


@dataclass(frozen=True, slots=True)
class DbtStepView:
    """A model that dbt builds last."""

    select: str
    relation: str
    after: tuple[str, ...]
    start: str
    end: str
    command: str
    note: str = "dbt builds it; Errata cannot undo it"


@dataclass(frozen=True, slots=True)
class CampaignPlanView:
    """A sealed campaign, as it is approved."""

    campaign_id: str
    campaign_digest: str
    state: str  # dry-run | open | declined | cancelled | expired
    already: bool
    product: str
    reason: str
    requested_by: str
    members: tuple[MemberPlanView, ...]
    dbt: tuple[DbtStepView, ...]
    left_out: Mapping[str, str]  # product → why
    notes: tuple[str, ...]
    valid_for: str
    valid_until: str
    supersedes: str | None
    single_user: bool
    approvals: tuple[ApprovalView, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberView:
    """Where a member is: a run, or what it waits for."""

    product: str
    run_id: str | None
    state: str
    partitions: tuple[str, ...]
    after: tuple[str, ...]
    grain: str = ""
    told: str = ""  # what it waits for, or why it stopped
    is_dbt: bool = False


@dataclass(frozen=True, slots=True)
class CampaignView:
    """Where a campaign is."""

    campaign_id: str
    campaign_digest: str
    state: str  # open | done | rolled_back | declined | cancelled | expired
    product: str
    reason: str
    requested_by: str
    members: tuple[MemberView, ...]
    valid_until: str
    approvals: tuple[ApprovalView, ...] = ()
    next: tuple[str, ...] = ()
    problems: Mapping[str, str] | None = None  # member → why it stopped in this command
    exit_code: int = 0
    single_user: bool = False
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class MemberUndoView:
    """What a rollback does with a member, or would do."""

    product: str
    run_id: str | None
    state: str  # can | cannot | left | nothing | rolled_back
    partitions: tuple[str, ...]
    grain: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class CampaignRollbackView:
    """What can be rolled back, or was; in the order in which it is done."""

    campaign_id: str
    acted: bool
    members: tuple[MemberUndoView, ...]
    next: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()  # what was left and follows from what was rolled back
