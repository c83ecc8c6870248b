"""How many workers with how many cores meet a deadline, and what they cost. Pure; ``now`` is an argument."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil

from errata.errors import Refused
from errata.model.product.throttle import Throttle
from errata.planning.deadline import evaluate_deadline
from errata.planning.estimate import Rates, Work, compute_usd
from errata.text.numbers import format_duration, plural
from errata.views import DeadlineView

_STATE = "nothing was started; main is unchanged"


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """Workers to start; ``cores`` is the cap of each, None if there is none."""

    workers: int
    cores: int | None
    deadline: DeadlineView | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may cost, and what it has cost so far."""

    most_usd: str | None
    spent_usd: str
    core_hour_usd: str


def size_workers(
    by: datetime, now: datetime, left: Work, rates: Rates, each: int, throttle: Throttle, budget: Budget
) -> WorkerSize:
    """The fewest cores that finish the work that is left in time, as workers of at most ``each`` cores.

    Refused if no number of cores does, if that takes more workers than there are chunks, or if it costs too much.
    """

    def ask(cores: int) -> DeadlineView:
        return evaluate_deadline(by, now, left, rates, cores, budget.core_hour_usd, throttle)

    needed = ask(each).cores_needed
    if needed is None:
        raise _refuse(by, f"no number of cores finishes {left.jobs} chunks in the "
                      f"{format_duration(ask(each).available_seconds)} that are left ({ask(each).basis})",
                      "ask for a later deadline; docs/guides/size-and-deadline.md")  # fmt: skip
    workers = ceil(needed / each)
    if workers > left.jobs:
        raise _refuse(by, f"it takes {needed} cores, which are {workers} workers of {each}, and {left.jobs} chunks are "
                      "left for them", "raise throttle.cores in errata.yaml, or ask for a later deadline")  # fmt: skip
    cores = ceil(needed / workers)
    found = ask(workers * cores)
    total = Decimal(budget.spent_usd) + Decimal(found.usd)
    if budget.most_usd is not None and total > Decimal(budget.most_usd):
        raise _refuse_cost(by, now, workers * cores, found, ask(1), budget)
    return WorkerSize(workers, cores, found)


def _refuse_cost(
    by: datetime, now: datetime, cores: int, found: DeadlineView, least: DeadlineView, budget: Budget
) -> Refused:
    ends = now + timedelta(seconds=least.seconds_configured)
    alone = compute_usd(budget.core_hour_usd, least.seconds_configured)
    return _refuse(
        by,
        f"{plural(cores, 'core')} for {format_duration(found.seconds)} cost ${found.usd}, ${budget.spent_usd} are "
        f"spent, and limits.max_usd of the plan is ${budget.most_usd}; one core would cost ${alone} and need until "
        f"{ends:%Y-%m-%d %H:%M} UTC",
        "ask for a later deadline, or plan again with a higher limits.max_usd",
    )


def _refuse(by: datetime, why: str, hint: str) -> Refused:
    return Refused(f"deadline {by:%Y-%m-%d %H:%M} UTC was refused; {why}", state=_STATE, hint=hint)
