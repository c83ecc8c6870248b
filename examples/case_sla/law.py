"""What the law says about a deadline, in plain Python: zones, business days, pauses. No Spark and nothing of Errata.

The clock of a case starts on the day it was filed *where it was filed*, runs on business days of that jurisdiction,
pauses while an escalation is pending, and stops on the day the decision takes effect. The registries serve their
notices by these rules (``generate``), and the published table is compared with them (``independent``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from examples.case_sla.lake import month_of, next_month

SLA_DAYS = {"urgent": 5, "standard": 10, "complex": 14}
"""Business days to a decision, as ``transform.config`` of the product has them."""

LONGEST_LIFE = 26
"""Days after filing by which every decision is in effect: a case is on the docket of two months at most."""


@dataclass(frozen=True)
class Calendar:
    """The business days of one jurisdiction in one version of the calendar."""

    jurisdiction: str
    zone: str
    holidays: Mapping[date, str]
    first: date
    last: date

    @cached_property
    def business_days(self) -> list[date]:
        """Weekdays that are no holiday, in order."""
        every = (self.first + timedelta(n) for n in range((self.last - self.first).days + 1))
        return [day for day in every if day.weekday() < 5 and day not in self.holidays]

    def local_day(self, moment: datetime) -> date:
        """The date on the wall of the registry at that moment."""
        return moment.astimezone(ZoneInfo(self.zone)).date()

    def moment(self, day: date, clock: time) -> datetime:
        """That time on the registry's clock, in UTC."""
        return datetime.combine(day, clock, ZoneInfo(self.zone)).astimezone(UTC)

    def count(self, start: date, end: date) -> int:
        """Business days of ``[start, end)``."""
        return bisect_left(self.business_days, end) - bisect_left(self.business_days, start)

    def after(self, day: date, count: int) -> date:
        """The so-many-th business day after a day."""
        return self.business_days[bisect_right(self.business_days, day) + count - 1]


@dataclass(frozen=True, slots=True)
class Case:
    """A case as far as its events are known; dates are those of its jurisdiction."""

    case_id: str
    jurisdiction: str
    case_type: str
    opened_at: datetime
    pauses: tuple[tuple[date, date | None], ...] = ()  # from the first day to the day the clock runs again
    effective_on: date | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a case at the end of a month, as the report shows it."""

    opened_on: date
    paused_days: int
    due_on: date
    due_at: datetime
    days_used: int
    breached_on: date | None
    new_breach: int


def standing(case: Case, calendar: Calendar, month: date) -> Standing:
    """The case at the end of that month; the caller leaves out events that had not happened by then."""
    after = next_month(month)
    opened_on = calendar.local_day(case.opened_at)
    paused = sum(calendar.count(start, min(end or after, after)) for start, end in case.pauses)
    due_on = calendar.after(opened_on, SLA_DAYS[case.case_type] + paused)
    measured_on = min(case.effective_on or after, after - timedelta(1))
    breached_on = due_on + timedelta(1) if due_on < measured_on else None
    return Standing(
        opened_on=opened_on,
        paused_days=paused,
        due_on=due_on,
        due_at=calendar.moment(due_on + timedelta(1), time()),
        days_used=calendar.count(opened_on + timedelta(1), measured_on + timedelta(1)) - paused,
        breached_on=breached_on,
        new_breach=int(breached_on is not None and month_of(breached_on) == month),
    )


def calendars(rows: Iterable[Mapping[str, Any]]) -> dict[str, Calendar]:
    """The calendars in the rows of the reference table, by jurisdiction."""
    own: dict[str, dict[date, Mapping[str, Any]]] = {}
    for row in rows:
        own.setdefault(row["jurisdiction"], {})[row["day"]] = row
    found = {}
    for name, days in own.items():
        closed = {day: str(row["holiday"]) for day, row in days.items() if row["holiday"]}
        zones = {str(row["zone"]) for row in days.values()}
        assert len(zones) == 1, f"{name} has {len(zones)} zones"
        found[name] = Calendar(name, zones.pop(), closed, min(days), max(days))
    return found
