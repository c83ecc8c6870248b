"""Where runs stand. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_moment
from errata.views.approval import ApprovalView, BreakGlassView, QuorumView, ReleasedView
from errata.views.live_writes import LateInputView, LiveWriteView
from errata.views.publish import FreezeView, GroupsView, HazardView
from errata.views.run import RunCounts


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Where one partition of a run stands."""

    partition: str
    state: str


@dataclass(frozen=True, slots=True)
class SetBackView:
    """Partitions in which main does not hold what the ledger has accepted: someone set main back, or made it anew."""

    table: str
    grain: str
    partitions: tuple[str, ...]
    run_id: str
    publication_id: str
    kind: str  # publish | rollback
    at: str  # when that landed
    snapshot_id: str  # as which
    set_back_at: str | None  # None: the table does not say any more
    main_snapshot_id: str | None  # where main was set; None: it was made anew
    next: str  # the command that brings it back

    @property
    def told(self) -> str:
        """What happened, for people."""
        scope = format_ranges(Grain(self.grain), self.partitions)
        when = f" at {format_moment(self.set_back_at)} UTC" if self.set_back_at else ""
        how = f"set back by its owner{when} to snapshot {self.main_snapshot_id}"
        if self.main_snapshot_id is None:
            how = f"made anew by its owner{when}"
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
class CostView:
    """What a run took so far, beside what was expected (by the canary, once it has run)."""

    seconds: int  # in which some chunk was in hand
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
    """All runs, or one run whole."""

    runs: tuple[RunLine, ...] = ()
    run_id: str | None = None
    product: str | None = None
    state: str | None = None
    grain: str = "day"
    order: str = "newest"
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
    held: str = ""  # why nothing new starts, as a worker said last
    input_rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # what became of them, where rows go out
    accepted: tuple[Mapping[str, str], ...] = ()  # warnings that a person took responsibility for: check, why, person
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None  # the newest
    release_digest: str | None = None
    release: ReleasedView | None = None
    single_user: bool = False
    groups: GroupsView | None = None
    dark: Mapping[str, Any] | None = None  # the name under which the candidate is readable, since when, by whom
    freeze: FreezeView | None = None  # live jobs are held off now
    hazards: tuple[HazardView, ...] = ()  # files that its rollbacks brought back and only the guard protects
    set_back: tuple[SetBackView, ...] = ()  # what main does not hold any more
    rebases: tuple[Mapping[str, Any], ...] = ()  # partitions that live wrote and that were pinned again, oldest first
    live_writes: tuple[LiveWriteView, ...] = ()  # into partitions that are not published, since planning
    late_inputs: tuple[LateInputView, ...] = ()  # what came into the inputs after they were pinned

    @property
    def noticed(self) -> tuple[str, ...]:
        """What others did since planning, in sentences."""
        writes = (one.text(self.grain) for one in self.live_writes)
        return (*writes, *(one.text(self.grain) for one in self.late_inputs))
