"""Decisions on a run: approvals, releases, break-glass. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.views.live_writes import LiveWriteView


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """One person's decision."""

    person: str
    decision: str
    digest: str
    at: str
    note: str = ""
    break_glass: str | None = None  # the reason for not waiting for a second person


@dataclass(frozen=True, slots=True)
class QuorumView:
    """Quorum status of a run."""

    needed: int
    given: int
    met: bool
    people: tuple[str, ...]
    told: str
    lacks_owner: str | None = None  # the team whose approval is missing
    may: tuple[str, ...] = ()  # who may still approve
    void: Mapping[str, str] = field(default_factory=dict)  # person → why the approval is not valid


@dataclass(frozen=True, slots=True)
class BreakGlassView:
    """A break-glass decision."""

    person: str
    why: str
    at: str
    deed: str  # approve | publish
    alarm: str  # rung | failed: … | not rung yet | none


@dataclass(frozen=True, slots=True)
class ReleasedView:
    """The newest release of a run."""

    digest: str
    person: str
    at: str
    kind: str  # release | publish | automatic
    note: str
    valid: bool
    void: str | None = None  # why it is no longer valid
    break_glass: str | None = None
    published_by: str | None = None  # who published with it; None: nobody yet


@dataclass(frozen=True, slots=True)
class DecisionView:
    """An approval or a decline, with the digest it covers."""

    run_id: str
    state: str
    already: bool
    manifest_digest: str
    approvals: tuple[ApprovalView, ...]
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None
    single_user: bool = False
    live_writes: tuple[LiveWriteView, ...] = ()  # into the partitions, since planning


@dataclass(frozen=True, slots=True)
class ReleaseView:
    """A release, or what a release would cover."""

    run_id: str
    state: str
    already: bool
    release_digest: str
    manifest_digest: str
    candidate: str
    candidate_digest: str
    snapshot_id: str
    partitions: tuple[str, ...]
    checks: Mapping[str, int]  # findings of the verdict by level
    accepted: tuple[Mapping[str, str], ...]  # check, why, person
    release: ReleasedView | None = None
    grain: str = "day"
    product: str = ""
    requested_by: str = ""
    single_user: bool = False
