"""What a look for late data found and did, and standing approvals. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LateProductView:
    """One product with a key ``late``: what is stale, and what was done about it."""

    product: str
    grain: str
    act: str  # report | propose | run, as the product says
    stale: tuple[str, ...]  # that a run makes current
    settling: tuple[str, ...] = ()  # of these: not quiet yet
    taken: tuple[str, ...] = ()  # in the run that was planned or continued
    claimed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # active run → stale partitions that it has
    run_id: str | None = None
    state: str | None = None  # of that run
    standing: str | None = None  # digest of the standing approval that covers it
    why: str = ""  # why no more was done
    next: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left for a person: nothing is stale, it is published, or its inputs are not quiet yet."""
        is_out = self.state in ("published", "part_published")
        return not self.why and (is_out or set(self.stale) <= set(self.settling))


@dataclass(frozen=True, slots=True)
class LateView:
    """One look for late data; ``ok`` if nothing is left for a person to do."""

    ok: bool
    products: tuple[LateProductView, ...]


@dataclass(frozen=True, slots=True)
class StandingDecisionView:
    """One person's decision on a standing approval."""

    person: str
    decision: str  # approved | revoked
    at: str
    note: str


@dataclass(frozen=True, slots=True)
class StandingUseView:
    """A run under a standing approval."""

    run_id: str
    state: str
    partitions: int
    at: str


@dataclass(frozen=True, slots=True)
class StandingView:
    """A standing approval: what it covers, whether it counts now, and what used it."""

    product: str
    digest: str
    product_digest: str
    oldest: str
    partitions_per_run: int
    runs_per_day: int
    partitions_per_day: int
    changes: Mapping[str, str]
    valid: str
    counts: bool
    why: str  # why it does not count; empty if it does
    already: bool = False
    decisions: tuple[StandingDecisionView, ...] = ()
    uses: tuple[StandingUseView, ...] = ()
    is_current: bool = True  # whether the product is still the one that was approved


@dataclass(frozen=True, slots=True)
class StandingsView:
    """Standing approvals, newest first."""

    standing: tuple[StandingView, ...]
