"""What people decided over a run: approvals, releases, broken glass. Pure."""

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
    break_glass: str | None = None  # why no second person was waited for


@dataclass(frozen=True, slots=True)
class QuorumView:
    """What the approvals of a run amount to now."""

    needed: int
    given: int
    met: bool
    people: tuple[str, ...]
    told: str
    lacks_owner: str | None = None  # the team that has to agree and has not
    may: tuple[str, ...] = ()  # who could give what is missing
    void: Mapping[str, str] = field(default_factory=dict)  # person → why that approval does not count


@dataclass(frozen=True, slots=True)
class BreakGlassView:
    """Someone decided alone."""

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
    void: str | None = None  # why it no longer counts
    break_glass: str | None = None
    published_by: str | None = None  # who published under it; None: nothing has landed


@dataclass(frozen=True, slots=True)
class DecisionView:
    """An approval or a refusal, with what was signed."""

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
    """A release, or what one would be over."""

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
