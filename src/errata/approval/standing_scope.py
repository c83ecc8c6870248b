"""Standing approvals: what one covers, whether it still counts, and how much of it is used. Pure.

People decide on the digest of a scope: the whole product as it is (code, config, checks, inputs by table, mode,
dependencies), the age of the partitions, and limits. Anything else needs a person for every run. What a run under it
brings to light (a finding of the gate, a conflict, a rollback) suspends it until people decide again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from errata.canonical import digest_of, from_plain, to_plain
from errata.model.approval import APPROVED, ApprovalRecord, ApprovalRules, QuorumStatus, Voters, count_approvals
from errata.model.duration import subtract_duration
from errata.model.partition import NULL, Grain, end_of
from errata.text.numbers import plural

FORMAT = "errata.standing/1"
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class StandingScope:
    """The content that people decide on."""

    project: str
    product: str
    product_digest: str
    oldest: str = "30d"  # a partition that ended longer ago is not covered
    partitions_per_run: int = 7
    runs_per_day: int = 4
    partitions_per_day: int = 14
    changes: Mapping[str, str] = field(default_factory=dict)  # rows, or a metric → the largest change
    valid: str = "90d"
    format: str = FORMAT

    @property
    def content(self) -> Mapping[str, Any]:
        """The scope in its stored form."""
        found: Mapping[str, Any] = to_plain(self)
        return found

    @property
    def digest(self) -> str:
        """The digest that people decide on."""
        return digest_of(self.content)

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> StandingScope:
        """The scope that a ledger holds."""
        return from_plain(cls, content)


@dataclass(frozen=True, slots=True)
class StandingEvent:
    """What suspends or ends a standing approval: a revocation, a finding, a conflict or a rollback."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The run that is to be covered, as its manifest has it."""

    product_digest: str
    grain: Grain
    partitions: tuple[str, ...]
    new_partitions: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    locked: frozenset[str] = frozenset()
    kind: str = "restate"
    changes: Mapping[str, str] = field(default_factory=dict)  # limits of change that its gate judges by


def count_decisions(
    scope: StandingScope,
    rules: ApprovalRules,
    voters: Voters,
    given: Iterable[ApprovalRecord],
    events: Sequence[StandingEvent],
    *,
    requester: str,
    now: datetime,
) -> QuorumStatus:
    """Quorum of a standing approval: decisions that are newer than everything that suspended or ended it."""
    last = max((datetime.fromisoformat(one.at) for one in events), default=None)
    fresh = [
        one for one in given if one.decision == APPROVED and (last is None or datetime.fromisoformat(one.at) > last)
    ]
    valid = ApprovalRules(rules.quorum, rules.owner, scope.valid)
    return count_approvals(valid, voters, fresh, digest=scope.digest, requester=requester, now=now)


def explain_uncovered(scope: StandingScope, run: PlannedRun, now: datetime) -> str:
    """Why a run is outside a scope, whatever was used of it before; empty if it is inside."""
    if run.product_digest != scope.product_digest:
        return "the product is not the one that was approved: its code, files, tables or dependencies changed"
    if run.changes != scope.changes:
        return "the plan does not have the limits of change that were approved"
    if run.overrides:
        return f"the plan overrides {', '.join(run.overrides)}"
    if run.kind != "restate":
        return f"the run is of kind {run.kind}"
    if run.locked:
        return f"{min(run.locked)} is in a closed period"
    if run.new_partitions:
        return f"{run.new_partitions[0]} does not exist yet, so that no limit of change holds for it"
    if len(run.partitions) > scope.partitions_per_run:
        return f"it has {len(run.partitions)} partitions, and a run may have {scope.partitions_per_run}"
    old = [name for name in run.partitions if not is_in_window(scope, run.grain, name, now)]
    return f"{old[0]} is older than {scope.oldest}" if old else ""


def is_in_window(scope: StandingScope, grain: Grain, partition: str, now: datetime) -> bool:
    """Whether a partition is young enough; one without an end in time never is."""
    if partition == NULL or not grain.is_time:
        return False
    return end_of(grain, partition) >= subtract_duration(scope.oldest, now)


def explain_used_up(scope: StandingScope, runs: int, partitions: int, more: int) -> str:
    """Why the limits of a day leave no room for one more run with this many partitions; empty if they do."""
    if runs + 1 > scope.runs_per_day:
        return f"{plural(runs, 'run')} used it in the last 24 hours, and {scope.runs_per_day} may"
    if partitions + more > scope.partitions_per_day:
        left = max(0, scope.partitions_per_day - partitions)
        return f"{partitions} of {scope.partitions_per_day} partitions were used in the last 24 hours, {left} are left"
    return ""
