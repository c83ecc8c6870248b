"""How many cores and workers a deadline takes, and at what cost: for `errata plan` and `errata submit`. Pure.

``now`` is an argument. The answer rests on measured or assumed rates and says which; it is never part of the manifest.
More cores share the work, but neither the driver's time per chunk nor the throttle's limits, so some deadlines cannot
be met with any number of cores, and the answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from zoneinfo import ZoneInfo

from errata.errors import Refused, UsageError
from errata.model.duration import LENGTH, to_seconds
from errata.model.product.throttle import Throttle
from errata.planning.estimate import JOB_SECONDS, START_SECONDS, Rates, Work, compute_usd, count_busy_seconds
from errata.text.numbers import format_duration, plural
from errata.views import DeadlineView

_MOST_CORES = 10_000
_FAR = timedelta(days=3660)
_STATE = "nothing was started; main is unchanged"


def parse_deadline(text: str, now: datetime) -> datetime:
    """Parse a length from now (``8h``) or an instant with its zone (``2026-11-17T06:00Z``).

    >>> parse_deadline("8h", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T08:00:00+00:00'
    """
    expected = "expected a length such as 8h or 2d, or an instant with its zone such as 2026-11-17T06:00Z"
    if re.fullmatch(LENGTH, text, re.ASCII):
        by = now + timedelta(seconds=to_seconds(text))
    else:
        try:
            by = datetime.fromisoformat(text)
            by = by if by.tzinfo is None else by.astimezone(UTC)
        except (ValueError, OverflowError):
            raise UsageError(f"--deadline {text!r} was refused; {expected}") from None
    if by.tzinfo is None:
        raise UsageError(f"--deadline {text!r} was refused; {expected}; found no zone")
    if by <= now:
        raise UsageError(f"--deadline {text!r} was refused; expected an instant to come; it is {now:%Y-%m-%dT%H:%MZ}")
    if by - now > _FAR:
        raise UsageError(f"--deadline {text!r} was refused; expected an instant within the next {_FAR.days} days")
    return by.astimezone(UTC)


def count_open_seconds(throttle: Throttle, now: datetime, by: datetime) -> int:
    """Seconds until the deadline that lie within the throttle's hours."""
    if not throttle.hours:
        return int((by - now).total_seconds())
    return int(count_busy_seconds(_iterate_spans(throttle, now, by)))


def _iterate_spans(throttle: Throttle, now: datetime, by: datetime) -> Iterator[tuple[float, float]]:
    zone = ZoneInfo(throttle.zone)
    # from the day before, because a span may cross midnight
    day = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    while day.astimezone(UTC) < by:
        for span in throttle.hours:
            first, last = (_parse_minutes(end) for end in span.split("-"))
            start = day + timedelta(minutes=first)
            end = day + timedelta(minutes=last if last > first else last + 24 * 60)
            low, high = max(start.timestamp(), now.timestamp()), min(end.timestamp(), by.timestamp())
            if low < high:
                yield low, high
        day += timedelta(days=1)


def _parse_minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def evaluate_deadline(
    by: datetime, now: datetime, work: Work, rates: Rates, cores: int, core_hour_usd: str, throttle: Throttle
) -> DeadlineView:
    """Whether the configured cores suffice, and how many would."""
    available = count_open_seconds(throttle, now, by)
    _, slow = rates.core_seconds(work)
    held, by_what = _find_throttle_bound(work, throttle)
    serial = START_SECONDS + work.jobs * JOB_SECONDS
    pauses = (max(0, work.jobs - 1) // throttle.burst) * throttle.pause_seconds if throttle.burst else 0

    def takes(count: int) -> int:
        return ceil(max(serial + slow / count, held) + pauses)

    room = available - pauses - serial
    needed = ceil(slow / room) if room > 0 and held + pauses <= available else None
    if needed is not None:
        needed = max(1, needed)
        needed += takes(needed) > available  # make up for rounding
        needed = needed if needed <= _MOST_CORES else None
    meets = takes(cores) <= available
    used = cores if meets or needed is None else needed
    core_seconds = takes(used) * used
    return DeadlineView(
        by=by.isoformat(timespec="minutes").replace("+00:00", "Z"),
        available_seconds=available,
        cores_configured=cores,
        cores_needed=needed,
        seconds_configured=takes(cores),
        seconds=takes(used),
        core_hours=f"{core_seconds / 3600:.2f}",
        usd=compute_usd(core_hour_usd, core_seconds),
        meets=meets,
        measured=rates.is_measured,
        basis=rates.basis + (f"; {by_what} holds the run to {held + pauses} s" if held + pauses > serial else ""),
    )


def _find_throttle_bound(work: Work, throttle: Throttle) -> tuple[int, str]:
    """Lower bound on seconds that the throttle sets for any number of cores, and the setting responsible."""
    limits = (
        (work.rows, throttle.rows_per_minute, 60, "rows_per_minute"),
        (work.bytes, throttle.bytes_per_minute, 60, "bytes_per_minute"),
        (work.jobs, throttle.commits_per_hour, 3600, "commits_per_hour"),
    )
    found = [(ceil(amount / most * unit), f"throttle.{name}") for amount, most, unit, name in limits if most]
    return max(found, default=(0, "throttle.burst"))


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
