"""Where the shop's lake is and which days it has; its jobs reach the catalog as FinSight's do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from examples.finsight.lake import Lake as CatalogLake

VALUE = "crm.customer_value"
MONTH = "crm.value_by_month"  # computed from it
WEEK = "crm.margin_week"  # computed from it
CAMPAIGNS = "ref.campaigns"

FIRST_DAY = date(2021, 1, 1)
DAYS = 1_825


def days(count: int = DAYS, first: date = FIRST_DAY) -> list[date]:
    """This many days, beginning with the first."""
    return [first + timedelta(n) for n in range(count)]


@dataclass(frozen=True, slots=True)
class Lake(CatalogLake):
    """The directory that replaces the bucket: ``raw/events``, one SQLite catalog, and the tables."""

    @property
    def events(self) -> Path:
        """The raw files, one directory per day."""
        return self.root / "raw" / "events"

    def events_of(self, day: date) -> Path:
        """The directory of one day."""
        return self.events / f"event_date={day.isoformat()}"
