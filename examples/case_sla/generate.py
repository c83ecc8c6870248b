"""The regulator's lake before anybody complained: the events of the case register, the calendar, and an empty report.

Cases are filed through a portal that is open from eight to midnight, local time; everything else happens in office
hours. Every registry serves a notice of breach by its own clock on the first day after a deadline that was missed, and
on the first of a month the register carries forward every case that is still open. The same seed gives the same rows on
every machine. Needs no JVM.

    python -m examples.case_sla.generate DIRECTORY [--cases-per-month 200]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from examples.case_sla import calendars, law
from examples.case_sla.lake import CALENDAR, EVENTS, FIRST_DAY, SLA, TODAY, Lake, months, next_month

SEED = 20241201
CASES_PER_MONTH = 200
EVENING_SHARE = 0.3  # of filings that come in after seven, local time
PAUSED_SHARE, PAUSED_TWICE_SHARE = 0.3, 0.08
# Staff work towards the deadline: most decisions take effect just before it, one in five after it.
DAYS_FROM_DEADLINE = {-4: 14, -3: 14, -2: 16, -1: 17, 0: 17, 1: 9, 2: 6, 3: 4, 5: 3}

EVENT_SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_date", pa.date32()),  # UTC
        ("event_ts", pa.timestamp("us", tz="UTC")),
        ("case_id", pa.string()),
        ("jurisdiction", pa.string()),
        ("event_type", pa.string()),  # opened | carried | paused | resumed | decided | breach_notice
        ("case_type", pa.string()),  # of opened
        ("effective_on", pa.date32()),  # of decided: a date of the jurisdiction
    ]
)
CALENDAR_SCHEMA = pa.schema(
    [
        ("jurisdiction", pa.string()),
        ("zone", pa.string()),
        ("day", pa.date32()),
        ("is_business_day", pa.bool_()),
        ("holiday", pa.string()),
        ("version", pa.string()),
    ]
)
LINEAGE = (
    "produced_by_run_id",
    "produced_by_transform",
    "transform_version",
    "input_snapshot_id",
    "input_range_start",
    "input_range_end",
    "processing_mode",
    "reference_data_version",
    "restatement_reason",
)
TABLE_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "30",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "1000",
}


@cache
def calendars_of(version: str) -> dict[str, law.Calendar]:
    """The calendars of one version, by jurisdiction."""
    return law.calendars(calendars.rows(version))


def cases(month: date, count: int, *, seed: int = SEED) -> Iterator[tuple[law.Case, date]]:
    """Cases filed in one month, each with the day on which its decision was recorded."""
    for number in range(count):
        draw = random.Random(f"{seed}/{month.isoformat()}/{number}")
        calendar = calendars_of(calendars.RESTATED)[draw.choice(list(calendars.ZONES))]
        opened_on = month + timedelta(draw.randrange((next_month(month) - month).days))
        hour = draw.randrange(19, 24) if draw.random() < EVENING_SHARE else draw.randrange(8, 19)
        filed = law.Case(
            case_id=f"C-{month:%y%m}-{number:05d}",
            jurisdiction=calendar.jurisdiction,
            case_type=draw.choice(list(law.SLA_DAYS)),
            opened_at=calendar.moment(opened_on, time(hour, draw.randrange(60), draw.randrange(60))),
            pauses=_pauses(draw, opened_on),
        )
        yield _decided(draw, filed, calendar, opened_on)


def _pauses(draw: random.Random, opened_on: date) -> tuple[tuple[date, date], ...]:
    """Up to two escalations, always begun before the deadline."""
    chance = draw.random()
    if chance >= PAUSED_SHARE:
        return ()
    start = opened_on + timedelta(draw.randrange(1, 4))
    end = start + timedelta(draw.randrange(1, 6))
    if chance >= PAUSED_TWICE_SHARE:
        return ((start, end),)
    again = end + timedelta(draw.randrange(1, 3))
    return ((start, end), (again, again + timedelta(draw.randrange(1, 4))))


def _decided(draw: random.Random, case: law.Case, calendar: law.Calendar, opened_on: date) -> tuple[law.Case, date]:
    due_on = law.standing(case, calendar, next_month(next_month(opened_on))).due_on
    offset = draw.choices(list(DAYS_FROM_DEADLINE), list(DAYS_FROM_DEADLINE.values()))[0]
    earliest = max([opened_on + timedelta(1), *(end for _, end in case.pauses if end)])
    latest = opened_on + timedelta(law.LONGEST_LIFE)
    effective_on = min(max(due_on + timedelta(offset), earliest), latest)
    recorded_on = max(effective_on - timedelta(draw.randrange(4)), earliest)
    return replace(case, effective_on=effective_on), recorded_on


def events_of(case: law.Case, recorded_on: date) -> list[dict[str, Any]]:
    """Everything the register writes about a case, in the order in which it happens."""
    calendar, effective_on = calendars_of(calendars.RESTATED)[case.jurisdiction], case.effective_on
    assert effective_on is not None
    draw = random.Random(case.case_id)

    def office_hours(day: date) -> datetime:
        return calendar.moment(day, time(draw.randrange(9, 16), draw.randrange(60)))

    happened: list[tuple[datetime, str, dict[str, Any]]] = [(case.opened_at, "opened", {"case_type": case.case_type})]
    for start, end in case.pauses:
        assert end is not None
        happened += [(office_hours(start), "paused", {}), (office_hours(end), "resumed", {})]
    happened.append((office_hours(recorded_on), "decided", {"effective_on": effective_on}))
    for month in months(next_month(case.opened_at.date()), effective_on + timedelta(1)):
        happened.append((datetime.combine(month, time(0, 5), UTC), "carried", {}))
    if breached_on := law.standing(case, calendar, next_month(effective_on)).breached_on:
        happened.append((calendar.moment(breached_on, time(9)), "breach_notice", {}))
    return [
        {
            "event_id": f"{case.case_id}-{number}",
            "event_date": moment.date(),
            "event_ts": moment,
            "case_id": case.case_id,
            "jurisdiction": case.jurisdiction,
            "event_type": kind,
            **more,
        }
        for number, (moment, kind, more) in enumerate(sorted(happened, key=lambda one: one[0]), 1)
    ]


def events(cases_per_month: int = CASES_PER_MONTH, *, seed: int = SEED) -> pa.Table:
    """The whole register up to today."""
    rows = [
        event
        for month in months(FIRST_DAY, TODAY)
        for case, recorded_on in cases(month, cases_per_month, seed=seed)
        for event in events_of(case, recorded_on)
        if event["event_date"] < TODAY
    ]
    return pa.Table.from_pylist(rows, schema=EVENT_SCHEMA).sort_by(
        [("event_ts", "ascending"), ("event_id", "ascending")]
    )


def calendar_rows(version: str) -> pa.Table:
    """The reference table in that version."""
    return pa.Table.from_pylist(list(calendars.rows(version)), schema=CALENDAR_SCHEMA)


def create_tables(lake: Lake) -> None:
    """The register by event date, the calendar, and the governed report with every lineage column and no rows."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform, MonthTransform
    from pyiceberg.types import DateType, IntegerType, NestedField, StringType, TimestamptzType

    text, day, number, moment = StringType(), DateType(), IntegerType(), TimestamptzType()
    register = {"event_id": text, "event_date": day, "event_ts": moment, "case_id": text, "jurisdiction": text,
                "event_type": text, "case_type": text, "effective_on": day}  # fmt: skip
    report = {"report_month": day, "case_id": text, "jurisdiction": text, "case_type": text, "zone": text,
              "opened_at": moment, "opened_on": day, "sla_days": number, "paused_days": number, "due_on": day,
              "due_at": moment, "effective_on": day, "days_used": number, "breached_on": day, "new_breach": number,
              **dict.fromkeys(LINEAGE, text)}  # fmt: skip

    def schema(columns: dict[str, Any]) -> Schema:
        return Schema(
            *(NestedField(n, name, kind, required=False) for n, (name, kind) in enumerate(columns.items(), 1))
        )

    by_day = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "event_date"))
    by_month = PartitionSpec(PartitionField(1, 1000, MonthTransform(), "report_month_month"))
    catalog = lake.catalog()
    for namespace in ("bronze", "ref", "silver"):
        catalog.create_namespace(namespace)
    catalog.create_table(EVENTS, schema(register), partition_spec=by_day, properties={"format-version": "2"})
    catalog.create_table(CALENDAR, CALENDAR_SCHEMA, properties={"format-version": "2"})
    catalog.create_table(SLA, schema(report), partition_spec=by_month, properties=TABLE_PROPERTIES)


def publish_calendar(lake: Lake, version: str) -> int:
    """What the calendar's owner does: the table holds one version at a time, and a tag keeps each by its name."""
    table = lake.catalog().load_table(CALENDAR)
    write = table.append if table.current_snapshot() is None else table.overwrite
    write(calendar_rows(version))
    current = table.refresh().current_snapshot()
    assert current is not None
    table.manage_snapshots().create_tag(current.snapshot_id, version).commit()
    return current.snapshot_id


def generate(root: Path, *, cases_per_month: int = CASES_PER_MONTH) -> int:
    """Make the lake in an empty directory; returns the number of events."""
    lake = Lake(root.absolute())
    lake.create()
    create_tables(lake)
    register = events(cases_per_month)
    lake.catalog().load_table(EVENTS).append(register)
    publish_calendar(lake, calendars.AS_RECORDED)
    return int(register.num_rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Generate the regulator's lake.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cases-per-month", type=int, default=CASES_PER_MONTH)
    asked = parser.parse_args()
    total = generate(asked.directory, cases_per_month=asked.cases_per_month)
    print(f"{total:,} events in {asked.directory}")


if __name__ == "__main__":
    main()
