"""The independent reader: computes every deadline in plain Python, without Spark or Errata, and reads the table.

pyiceberg reads the register, the calendar and the report; :mod:`examples.case_sla.law` says what each row should be. An
expected row is built from the same two months that the law of the case needs, and from nothing that came later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from examples.case_sla import law
from examples.case_sla.lake import CALENDAR, EVENTS, SLA, Lake, month_of, next_month, text_of

Key = tuple[str, str]
"""A month as ``2025-01``, and a case."""

Row = Mapping[str, Any]
CONTENT = (
    "jurisdiction",
    "case_type",
    "zone",
    "opened_at",
    "opened_on",
    "sla_days",
    "paused_days",
    "due_on",
    "due_at",
    "effective_on",
    "days_used",
    "breached_on",
    "new_breach",
)


def report(lake: Lake, months: Iterable[str], snapshot_id: int | None = None) -> dict[Key, Row]:
    """The rows of these months that readers see, or those of a snapshot; a second row of a case is an error."""
    wanted, found = set(months), {}
    for row in lake.catalog().load_table(SLA).scan(snapshot_id=snapshot_id).to_arrow().to_pylist():
        key = (text_of(row["report_month"]), row["case_id"])
        if key[0] in wanted:
            assert key not in found, f"{key} is there twice"
            found[key] = row
    return found


def register(lake: Lake) -> list[Row]:
    """Every event."""
    rows: list[Row] = lake.catalog().load_table(EVENTS).scan().to_arrow().to_pylist()
    return rows


def calendar_snapshot(lake: Lake, version: str) -> int:
    """The snapshot that a version of the calendar is tagged on."""
    found = lake.catalog().load_table(CALENDAR).snapshot_by_name(version)
    assert found is not None, f"no version {version}"
    return found.snapshot_id


def calendars(lake: Lake, version: str) -> dict[str, law.Calendar]:
    """The calendars in that version, by jurisdiction."""
    scan = lake.catalog().load_table(CALENDAR).scan(snapshot_id=calendar_snapshot(lake, version))
    return law.calendars(scan.to_arrow().to_pylist())


def expected(
    events: Iterable[Row], calendars: Mapping[str, law.Calendar], months: Iterable[str], *, warm_up: bool = True
) -> dict[Key, Row | None]:
    """What the report should say; None for a case whose opening is not among the events that may be read."""
    by_case: dict[str, list[Row]] = {}
    for event in events:
        by_case.setdefault(event["case_id"], []).append(event)
    found: dict[Key, Row | None] = {}
    for text in months:
        month = date.fromisoformat(f"{text}-01")
        since = month_of(month - timedelta(1)) if warm_up else month
        for case_id, own in by_case.items():
            known = [event for event in own if since <= event["event_date"] < next_month(month)]
            listed = [e for e in known if e["event_type"] in ("opened", "carried") and e["event_date"] >= month]
            if listed:
                found[text, case_id] = _row(known, calendars[listed[0]["jurisdiction"]], month)
    return found


def _row(known: Sequence[Row], calendar: law.Calendar, month: date) -> Row | None:
    case = _case(known, calendar)
    if case is None:
        return None
    stands = asdict(law.standing(case, calendar, month))
    own = {"jurisdiction": case.jurisdiction, "case_type": case.case_type, "zone": calendar.zone}
    return {
        **own,
        "opened_at": case.opened_at,
        "sla_days": law.SLA_DAYS[case.case_type],
        "effective_on": case.effective_on,
        **stands,
    }


def _case(known: Sequence[Row], calendar: law.Calendar) -> law.Case | None:
    ordered = sorted(known, key=lambda event: event["event_ts"])
    by_type: dict[str, list[Row]] = {}
    for event in ordered:
        by_type.setdefault(event["event_type"], []).append(event)
    if "opened" not in by_type:
        return None
    (opened,) = by_type["opened"]
    starts = [calendar.local_day(event["event_ts"]) for event in by_type.get("paused", ())]
    ends: list[date | None] = [calendar.local_day(event["event_ts"]) for event in by_type.get("resumed", ())]
    ends += [None] * (len(starts) - len(ends))
    decided = [event["effective_on"] for event in by_type.get("decided", ())]
    return law.Case(
        case_id=opened["case_id"],
        jurisdiction=opened["jurisdiction"],
        case_type=opened["case_type"],
        opened_at=opened["event_ts"],
        pauses=tuple(zip(starts, ends, strict=True)),
        effective_on=decided[-1] if decided else None,
    )


def differing(found: Mapping[Key, Row], wanted: Mapping[Key, Row | None]) -> list[Key]:
    """The rows that are missing, superfluous, or different in any column that is not lineage."""
    return sorted(key for key in found.keys() | wanted.keys() if _content(found.get(key)) != _content(wanted.get(key)))


def _content(row: Row | None) -> tuple[Any, ...] | None:
    return None if row is None else tuple(row[name] for name in CONTENT)


def notices(events: Iterable[Row], months: Iterable[str]) -> Counter[tuple[str, str]]:
    """Notices of breach that the registries served, by month and jurisdiction."""
    wanted = set(months)
    served = (event for event in events if event["event_type"] == "breach_notice")
    return Counter((text_of(e["event_date"]), e["jurisdiction"]) for e in served if text_of(e["event_date"]) in wanted)


def breaches(rows: Mapping[Key, Row | None]) -> Counter[tuple[str, str]]:
    """New breaches that a report shows, by month and jurisdiction."""
    return Counter((month, row["jurisdiction"]) for (month, _), row in rows.items() if row and row["new_breach"])


def disputed(events: Iterable[Row], rows: Mapping[Key, Row]) -> list[Key]:
    """Cases with a notice of breach in a month whose report knows of none: these respondents wrote letters."""
    served = {(text_of(e["event_date"]), e["case_id"]) for e in events if e["event_type"] == "breach_notice"}
    return sorted(key for key in served & rows.keys() if not rows[key]["new_breach"])


def files_by_month(lake: Lake) -> dict[str, frozenset[str]]:
    """The data files that readers of the report see now, by month."""
    found: dict[str, set[str]] = {}
    for task in lake.catalog().load_table(SLA).scan().plan_files():
        assert not task.delete_files, "this reader does not apply deletes"
        number = int(task.file.partition[0])  # months since 1970
        found.setdefault(f"{1970 + number // 12}-{number % 12 + 1:02d}", set()).add(task.file.file_path)
    return {month: frozenset(paths) for month, paths in found.items()}


def data_files_on_disk(lake: Lake) -> set[str]:
    """Every Parquet file in the report's directory, referenced or not."""
    return {str(path) for path in (lake.warehouse / "silver" / "case_sla").rglob("*.parquet")}
