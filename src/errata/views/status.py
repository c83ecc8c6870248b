"""Status of runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from errata.canonical import LEFT_OUT
from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_moment

if TYPE_CHECKING:
    from errata.model.run import RunCounts
    from errata.views.approval import ApprovalView, BreakGlassView, QuorumView, ReleasedView
    from errata.views.copies import CopyLine
    from errata.views.live_writes import LateInputView, LiveWriteView
    from errata.views.outbox import OutboxItemView
    from errata.views.publish import FreezeView, HazardView, WaveTurnView, WaveView
    from errata.views.readiness import HoldView
    from errata.views.recovery_line import RecoveryLine


@dataclass(frozen=True, slots=True)
class PartitionView:
    """State of one partition of a run."""

    partition: str
    state: str


@dataclass(frozen=True, slots=True)
class SetBackView:
    """Partitions in which main lacks the current data: someone set main back, or replaced the table."""

    table: str
    grain: str
    partitions: tuple[str, ...]
    run_id: str
    publication_id: str
    kind: str  # publish | rollback
    at: str  # when it was committed
    snapshot_id: str  # its snapshot
    set_back_at: str | None  # None: the table no longer shows it
    main_snapshot_id: str | None  # where main was set; None: the table was replaced
    next: str  # the command that restores it

    @property
    def told(self) -> str:
        """Describe what happened in one sentence."""
        scope = format_ranges(Grain(self.grain), self.partitions)
        when = f" at {format_moment(self.set_back_at)} UTC" if self.set_back_at else ""
        how = f"set back by its owner{when} to snapshot {self.main_snapshot_id}"
        if self.main_snapshot_id is None:
            how = f"replaced by its owner{when}"
        rows = "the rows from before" if self.kind == "publish" and self.main_snapshot_id else "other rows"
        deed = "published" if self.kind == "publish" else "rolled back"
        return (
            f"{scope} was {deed} at {format_moment(self.at)} UTC as snapshot {self.snapshot_id}, but main "
            f"of {self.table} was "
            f"{how} (no run of Errata did that); readers see {rows}"
        )


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in the list of all runs."""

    run_id: str
    product: str
    state: str
    partitions: int
    first: str
    last: str
    requested_by: str
    reason: str
    planned_at: str
    chunks: RunCounts


@dataclass(frozen=True, slots=True)
class CampaignLine:
    """A campaign in the list of runs."""

    campaign_id: str
    product: str
    state: str
    members: int
    requested_by: str
    reason: str
    planned_at: str


@dataclass(frozen=True, slots=True)
class ReservationView:
    """Partitions that an approved campaign keeps for a member that has not started."""

    campaign_id: str
    product: str
    partitions: tuple[str, ...]
    until: str
    grain: str


@dataclass(frozen=True, slots=True)
class CostView:
    """Time and cost of a run so far, next to the estimate (of the canary, once it has run)."""

    seconds: int  # in which some worker had a chunk
    core_seconds: int
    usd: str
    estimated_seconds: tuple[int, int]
    estimated_usd: str
    basis: str
    worker_count: int
    attempt_count: int
    commit_count: int
    input_bytes: int
    shuffle_bytes: int
    output_bytes: int
    output_file_count: int


@dataclass(frozen=True, slots=True)
class StatusView:
    """All runs, or one run in detail."""

    runs: tuple[RunLine, ...] = ()
    campaigns: tuple[CampaignLine, ...] = field(default=(), metadata=LEFT_OUT)
    reserved: tuple[ReservationView, ...] = field(default=(), metadata=LEFT_OUT)
    run_id: str | None = None
    product: str | None = None
    state: str | None = None
    grain: str = "day"
    order: str = "newest"
    kind: str = field(default="restate", metadata=LEFT_OUT)
    chunks: RunCounts | None = None
    recomputed: int = 0
    rows: int = 0
    partitions: tuple[PartitionView, ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()
    failures: tuple[Mapping[str, Any], ...] = ()
    approvals: tuple[ApprovalView, ...] = ()
    publications: tuple[Mapping[str, Any], ...] = ()
    next: str = ""
    warnings: tuple[str, ...] = ()
    cost: CostView | None = None
    canary: Mapping[str, Any] | None = None
    determinism: Mapping[str, Any] | None = None
    held: str = ""  # why no new chunk starts, as last reported by a worker
    input_rows: Mapping[str, Mapping[str, int | str]] = field(
        default_factory=dict
    )  # per input: rows used and set aside
    accepted: tuple[Mapping[str, str], ...] = ()  # accepted warnings: check, why, person
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None  # the newest
    release_digest: str | None = None
    release: ReleasedView | None = None
    single_user: bool = False
    waves: tuple[WaveView, ...] = ()
    turn: WaveTurnView | None = None  # None: the run is one wave
    dark: Mapping[str, Any] | None = None  # the name under which the candidate is readable, since when, by whom
    freeze: FreezeView | None = None  # set while live jobs are kept out
    hazards: tuple[HazardView, ...] = ()  # restored files that only the guard protects
    set_back: tuple[SetBackView, ...] = ()  # publications that main no longer has
    rebases: tuple[Mapping[str, Any], ...] = ()  # partitions pinned again after a live write, oldest first
    live_writes: tuple[LiveWriteView, ...] = ()  # into partitions that are not published, since planning
    late_inputs: tuple[LateInputView, ...] = ()  # new data in inputs since they were pinned
    campaign: str | None = field(default=None, metadata=LEFT_OUT)  # that the run is a member of
    holds: tuple[HoldView, ...] = field(default=(), metadata=LEFT_OUT)  # of consumers that wait for it now
    recovery: str | None = field(default=None, metadata=LEFT_OUT)  # None: nothing of it reaches a consumer
    recoveries: tuple[RecoveryLine, ...] = field(default=(), metadata=LEFT_OUT)  # by consumer
    owed_items: int = field(default=0, metadata=LEFT_OUT)  # of all runs: not paid yet
    failed_items: int = field(default=0, metadata=LEFT_OUT)  # of all runs: every attempt failed
    delivered: str | None = field(default=None, metadata=LEFT_OUT)  # yes | pending | failed | waived; None: no copies
    copies: tuple[CopyLine, ...] = field(default=(), metadata=LEFT_OUT)  # in warehouses, one line each
    owed: tuple[OutboxItemView, ...] = field(default=(), metadata=LEFT_OUT)  # because of it: not paid, or failed

    @property
    def noticed(self) -> tuple[str, ...]:
        """Describe writes by others since planning, one sentence each."""
        writes = (one.text(self.grain) for one in self.live_writes)
        return (*writes, *(one.text(self.grain) for one in self.late_inputs))

    def _repr_html_(self) -> str:
        from errata.views.notebook import render_status

        return render_status(self)
