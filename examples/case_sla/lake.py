"""Where the regulator's lake is and which months it has; its jobs reach the catalog as FinSight's do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from examples.finsight.lake import Lake as CatalogLake

EVENTS = "bronze.case_events"
CALENDAR = "ref.jurisdiction_calendar"
SLA = "silver.case_sla"

FIRST_DAY = date(2024, 12, 1)  # the register's first day
FIXED_ON = date(2026, 1, 1)  # release 3.1.0 went live; everything before it was computed by 2.4.1
TODAY = date(2026, 2, 1)  # nothing after this has happened
YEAR = 2025  # the reports to restate


@dataclass(frozen=True, slots=True)
class Lake(CatalogLake):
    """The directory that replaces the bucket: one SQLite catalog and its tables, no raw files."""


def month_of(day: date) -> date:
    """The first day of its month."""
    return day.replace(day=1)


def next_month(month: date) -> date:
    """The first day of the month after."""
    return month_of(month_of(month) + timedelta(31))


def months(start: date, end: date) -> list[date]:
    """The first day of every month of ``[start, end)``."""
    found, month = [], month_of(start)
    while month < end:
        found.append(month)
        month = next_month(month)
    return found


def text_of(month: date) -> str:
    """A month as Errata writes it."""
    return f"{month:%Y-%m}"
