"""Values that figures are returned as. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DURATION_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper ends of the buckets of durations, in seconds; a chunk is packed for two minutes."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How many durations there are, their sum, and how many are at most as long as each bucket's end."""

    count: int = 0
    seconds: float = 0.0
    within: tuple[int, ...] = (0,) * len(DURATION_BUCKETS)

    def add(self, seconds: float) -> Durations:
        """The same with one more.

        >>> Durations().add(20.0).within
        (0, 0, 0, 1, 1, 1, 1, 1, 1, 1)
        """
        within = tuple(n + (seconds <= end) for n, end in zip(self.within, DURATION_BUCKETS, strict=True))
        return Durations(self.count + 1, self.seconds + seconds, within)


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run has left to compute and what it computed lately, in bytes, or in chunks if sizes are unknown."""

    remaining: float
    done: float
    since_ms: int | None  # when the work on what was done lately began; None if nothing was

    def find_finish(self, now_ms: int) -> float | None:
        """When the last chunk is done at this pace, in seconds since 1970; None if nobody can tell.

        >>> Pace(remaining=30, done=10, since_ms=0).find_finish(20_000)
        80.0
        """
        if self.since_ms is None or self.done <= 0 or now_ms <= self.since_ms:
            return None
        return now_ms / 1000 + self.remaining * (now_ms - self.since_ms) / 1000 / self.done


@dataclass(slots=True)
class RunFigures:
    """The figures of one run."""

    run_id: str
    product: str
    table: str
    state: str
    planned_at: str
    updated_at: str
    chunks: dict[str, int] = field(default_factory=dict)  # by state
    output_rows: int = 0
    durations: Durations = field(default_factory=Durations)
    cost: dict[str, int] = field(default_factory=dict)  # sums over adopted attempts
    writes: int = 0  # adopted attempts that recorded how long their write took
    lost_attempts: int = 0
    failed_attempts: int = 0
    rejections: int = 0
    estimate_usd: str | None = None
    deadline: str | None = None
    waves: dict[str, int] = field(default_factory=dict)  # by state
    publications: dict[str, Durations] = field(default_factory=dict)  # committed ones, by kind
    visible: dict[str, Durations] = field(default_factory=dict)  # from computed to visible, by place
    deliveries: dict[str, Durations] = field(default_factory=dict)  # writes of copies, by copy
    throttle: dict[str, int] = field(default_factory=dict)  # decisions by level
    progress_at: str | None = None  # when an attempt was last adopted
    finish: float | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Something that a process has as long as it gives signs of life."""

    kind: str  # chunk, publication, freeze, live_job, delivery
    table: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class OwedFigures:
    """Items of the outbox that are not settled."""

    table: str
    effect: str
    consumer: str
    state: str
    count: int
    oldest_at: str


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """One consistent look at the ledger."""

    now_ms: int
    run_counts: Mapping[tuple[str, str], int]  # by product and state, all runs
    runs: tuple[RunFigures, ...]
    left_out: int  # active runs without figures of their own
    owed: tuple[OwedFigures, ...]
    leases: tuple[Lease, ...]
    audit_entries: int
    audit_at: str
