"""The enforcement-deadline example: the law in plain Python, its data, its two releases, its reader, and the demo."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from examples.case_sla import calendars, demo, generate, history, independent, law, workshop
from examples.case_sla.lake import EVENTS, Lake, months, text_of
from examples.finsight.pipeline import load_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(generate.__file__).parent
RIGHT = EXAMPLE / "transforms" / "case_sla.py"
SMALL = 25
NEW_YORK, BERLIN = (generate.calendars_of(calendars.RESTATED)[name] for name in ("US-NY", "DE-BE"))


def filed(moment: str, *, case_type: str = "urgent", **more: Any) -> law.Case:
    return law.Case("C-1", "US-NY", case_type, datetime.fromisoformat(moment).replace(tzinfo=UTC), **more)


class TestLaw:
    def test_the_clock_starts_on_the_local_day_of_filing(self):
        """20:30 on Tuesday in New York is Wednesday in UTC; five business days after Tuesday is the next Tuesday."""
        stands = law.standing(filed("2025-06-04T00:30"), NEW_YORK, date(2025, 6, 1))
        assert (stands.opened_on, stands.due_on) == (date(2025, 6, 3), date(2025, 6, 10))

    def test_a_deadline_ends_at_local_midnight(self):
        """The instant after the last second of the day it is due on, summer time included."""
        stands = law.standing(filed("2025-06-04T00:30"), NEW_YORK, date(2025, 6, 1))
        assert stands.due_at == datetime(2025, 6, 11, 4, tzinfo=UTC)

    def test_holidays_and_weekends_do_not_count(self):
        """Filed on Monday 6 January 2025: the Day of Mourning on the Thursday puts the deadline off by a day."""
        case = filed("2025-01-06T15:00")
        recorded = generate.calendars_of(calendars.AS_RECORDED)["US-NY"]
        assert law.standing(case, recorded, date(2025, 1, 1)).due_on == date(2025, 1, 13)
        assert law.standing(case, NEW_YORK, date(2025, 1, 1)).due_on == date(2025, 1, 14)

    def test_an_escalation_stops_the_clock(self):
        """Paused on Wednesday, running again on Friday: two business days are added and not used."""
        case = filed("2025-06-03T15:00", pauses=((date(2025, 6, 4), date(2025, 6, 6)),), effective_on=date(2025, 6, 10))
        stands = law.standing(case, NEW_YORK, date(2025, 6, 1))
        assert (stands.paused_days, stands.due_on, stands.days_used) == (2, date(2025, 6, 12), 3)

    def test_a_pending_escalation_stops_the_clock_up_to_the_end_of_the_month(self):
        """What happens in July is not known in June."""
        case = filed("2025-06-24T15:00", pauses=((date(2025, 6, 26), None),))
        assert law.standing(case, NEW_YORK, date(2025, 6, 1)).paused_days == 3  # 26, 27 and 30 June

    @pytest.mark.parametrize(
        "effective_on, breached_on", [("2025-06-10", None), ("2025-06-11", "2025-06-11"), ("2025-06-20", "2025-06-11")]
    )
    def test_a_breach_is_a_decision_that_takes_effect_after_the_deadline(
        self, effective_on: str, breached_on: str | None
    ):
        """On the day it is due is in time; the breach is dated on the first day that is not."""
        case = filed("2025-06-03T15:00", effective_on=date.fromisoformat(effective_on))
        stands = law.standing(case, NEW_YORK, date(2025, 6, 1))
        assert stands.breached_on == (date.fromisoformat(breached_on) if breached_on else None)
        assert stands.new_breach == bool(breached_on)

    def test_an_open_case_is_in_breach_from_the_day_after_its_deadline(self):
        """Due on the last of June: in breach in July, not in June; and new only once."""
        case = filed("2025-06-23T15:00")
        assert law.standing(case, NEW_YORK, date(2025, 6, 1)).breached_on is None
        july = law.standing(replace(case, effective_on=date(2025, 7, 9)), NEW_YORK, date(2025, 7, 1))
        assert (july.breached_on, july.new_breach) == (date(2025, 7, 1), 1)
        assert law.standing(case, NEW_YORK, date(2025, 8, 1)).new_breach == 0


class TestGenerator:
    def test_same_seed_gives_the_same_rows(self):
        """Whoever runs the demo gets the numbers that the documentation shows."""
        rows = generate.events(SMALL)
        digest = hashlib.sha256(json.dumps(rows.to_pylist(), default=str).encode()).hexdigest()
        assert digest == "ac25d3a27721200d106dcca350b3881cf17b2e5de0b8cff567698f9a1b543276"

    def test_a_case_is_on_the_docket_of_two_months_at_most(self):
        """Otherwise a look-back of one month would not be enough."""
        listed: dict[str, set[str]] = {}
        for event in generate.events(SMALL).to_pylist():
            if event["event_type"] in ("opened", "carried"):
                listed.setdefault(event["case_id"], set()).add(text_of(event["event_date"]))
        assert {len(found) for found in listed.values()} == {1, 2}

    def test_only_filings_come_near_midnight(self):
        """The bug is about the day of filing: everything else happens on the same date in UTC and at the registry."""
        for event in generate.events(SMALL).to_pylist():
            here = generate.calendars_of(calendars.RESTATED)[event["jurisdiction"]].local_day(event["event_ts"])
            if event["event_type"] in ("paused", "resumed", "decided", "breach_notice"):
                assert here == event["event_date"]
            elif event["event_type"] == "opened":
                assert event["event_date"] - here in (timedelta(0), timedelta(1))

    def test_the_restated_calendar_has_three_days_more(self):
        """And differs in nothing else."""
        old, new = ({(r["jurisdiction"], r["day"]): r["holiday"] for r in calendars.rows(v)}
                    for v in (calendars.AS_RECORDED, calendars.RESTATED))  # fmt: skip
        changed = {(name, day.isoformat()) for (name, day), holiday in new.items() if old[name, day] != holiday}
        assert changed == {("US-NY", "2025-01-09"), ("US-IL", "2025-01-09"), ("DE-BE", "2025-05-08"),
                           ("BR-SP", "2024-11-20"), ("BR-SP", "2025-11-20")}  # fmt: skip


class TestProject:
    def test_the_project_files_load(self):
        """The product declares the release, the warm-up, the corrected calendar and every rule."""
        from errata.model.product.product import LINEAGE_BY_DEFAULT
        from errata.project import load_project

        product = load_project(EXAMPLE).products["silver.case_sla"]
        sources = {source.name: source for source in product.inputs}
        assert product.transform.version == "3.1.0"
        assert dict(product.transform.config["sla_days"]) == law.SLA_DAYS
        assert sources["case_events"].lookback == "1mo"
        assert (sources["calendar"].version, sources["calendar"].reference) == (calendars.RESTATED, "corrected_truth")
        assert generate.LINEAGE == LINEAGE_BY_DEFAULT

    def test_the_releases_differ_in_the_local_day_alone(self):
        """What the demo corrects is one expression, and nothing else changed along with it."""
        old, new = (path.read_text(encoding="utf-8").splitlines() for path in (history.WRONG, RIGHT))
        assert [(a, b) for a, b in zip(old[1:], new[1:], strict=True) if a != b] == [
            ("    return F.to_date(F.col(moment))",
             '    return F.to_date(F.from_utc_timestamp(F.col(moment), F.col("zone")))')
        ]  # fmt: skip

    def test_a_directory_that_is_not_a_demo_is_left_alone(self, tmp_path: Path):
        """Wiping is for the demo's own leavings."""
        (tmp_path / "thesis.txt").write_text("five years", encoding="utf-8")
        with pytest.raises(workshop.DemoError, match="not a demo"):
            workshop.lay_out(tmp_path, chunk_kilobytes=1)
        assert (tmp_path / "thesis.txt").exists()


@pytest.mark.spark
class TestReleases:
    MONTHS = ("2025-01", "2025-02")

    @pytest.fixture(scope="class")
    @classmethod
    def events(cls) -> list[dict[str, Any]]:
        wanted = {text_of(month) for month in months(date(2024, 12, 1), date(2025, 4, 1))}
        return [row for row in generate.events(SMALL).to_pylist() if text_of(row["event_date"]) in wanted]

    def built(self, spark: SparkSession, path: Path, events: list[dict[str, Any]]) -> dict[independent.Key, Any]:
        context = SimpleNamespace(partitions=self.MONTHS, config={"sla_days": law.SLA_DAYS})
        register = spark.createDataFrame(pa.Table.from_pylist(events, schema=generate.EVENT_SCHEMA))
        days = spark.createDataFrame(generate.calendar_rows(calendars.RESTATED))
        frame = load_release(path, "0").build(context, register, days)
        moments = {"opened_at", "due_at"}
        # collect() gives naive datetimes of this machine's zone; seconds since 1970 have none
        shown = [f"unix_seconds({name}) as {name}" if name in moments else name for name in frame.columns]
        return {
            (text_of(row["report_month"]), row["case_id"]): row
            | {name: row[name] and datetime.fromtimestamp(row[name], UTC) for name in moments}
            for row in (found.asDict() for found in frame.selectExpr(*shown).collect())
        }

    def wanted(self, events: list[dict[str, Any]], **how: Any) -> Mapping[independent.Key, Any]:
        return independent.expected(events, generate.calendars_of(calendars.RESTATED), self.MONTHS, **how)

    def test_release_3_1_0_agrees_with_plain_python(self, base_spark: SparkSession, events: list[dict[str, Any]]):
        """Row for row, and events of March that were read along with it change nothing."""
        found = self.built(base_spark, RIGHT, events)
        assert len(found) > 2 * SMALL
        assert independent.differing(found, self.wanted(events)) == []

    def test_release_2_4_1_is_late_for_evening_filings_in_the_west(
        self, base_spark: SparkSession, events: list[dict[str, Any]]
    ):
        """Never early, and never wrong in Berlin or Singapore."""
        found, wanted = self.built(base_spark, history.WRONG, events), self.wanted(events)
        wrong = independent.differing(found, wanted)
        assert {wanted[key]["jurisdiction"] for key in wrong} == {"US-NY", "US-IL", "BR-SP"}
        assert all(found[key]["opened_on"] - wanted[key]["opened_on"] == timedelta(1) for key in wrong)
        assert all(found[key]["due_on"] >= wanted[key]["due_on"] for key in wrong)
        assert any(found[key]["due_on"] > wanted[key]["due_on"] for key in wrong)

    def test_without_december_january_has_cases_without_a_deadline(
        self, base_spark: SparkSession, events: list[dict[str, Any]]
    ):
        """The warm-up is needed: exactly the cases opened in December have no deadline, and February is unharmed."""
        cold = [row for row in events if row["event_date"] >= date(2025, 1, 1)]
        found, wanted = self.built(base_spark, RIGHT, cold), self.wanted(events)
        lost = {key for key, row in found.items() if row["due_on"] is None}
        assert lost == set(independent.differing(found, wanted))
        assert lost == {key for key in wanted if key[0] == "2025-01" and wanted[key]["opened_at"] < january()}
        assert lost


def january() -> datetime:
    return datetime(2025, 1, 1, tzinfo=UTC)


class TestIndependentReader:
    @pytest.fixture(scope="class")
    @classmethod
    def lake(cls, tmp_path_factory: pytest.TempPathFactory) -> Lake:
        """Two months of the register, and both versions of the calendar."""
        lake = Lake(tmp_path_factory.mktemp("case-sla") / "lake")
        lake.create()
        generate.create_tables(lake)
        register = generate.events(SMALL)
        kept = [text_of(day) in ("2024-12", "2025-01") for day in register["event_date"].to_pylist()]
        lake.catalog().load_table(EVENTS).append(register.filter(pa.array(kept)))
        for version in (calendars.AS_RECORDED, calendars.RESTATED):
            generate.publish_calendar(lake, version)
        return lake

    def test_a_day_in_the_wrong_place_is_found(self, lake: Lake):
        """The comparison that every claim rests on sees one wrong day, a missing case and a superfluous one."""
        events = independent.register(lake)
        right = independent.expected(events, independent.calendars(lake, calendars.RESTATED), ["2025-01"])
        key = next(iter(right))
        late = right | {key: right[key] | {"due_on": right[key]["due_on"] + timedelta(1)}}
        fewer = {name: row for name, row in right.items() if name != key}
        assert independent.differing(right, right) == []
        assert independent.differing(late, right) == [key]
        assert independent.differing(fewer, right) == [key]
        assert independent.differing(right, fewer) == [key]

    def test_versions_of_the_calendar_are_read_by_name(self, lake: Lake):
        """Each tag keeps the snapshot of its version."""
        day = date(2025, 5, 8)
        recorded = independent.calendars(lake, calendars.AS_RECORDED)["DE-BE"]
        restated = independent.calendars(lake, calendars.RESTATED)["DE-BE"]
        assert (day in recorded.business_days, day in restated.business_days) == (True, False)
        assert restated == BERLIN

    def test_a_breach_without_a_notice_is_found_by_month_and_jurisdiction(self):
        """Breaches and notices agree cell by cell under the restated calendar; a missing holiday shows in its month."""
        events = generate.events(100).to_pylist()
        served = independent.notices(events, demo.SCOPE)
        rows = {
            version: independent.expected(events, generate.calendars_of(version), demo.SCOPE)
            for version in (calendars.AS_RECORDED, calendars.RESTATED)
        }
        recorded = independent.breaches(rows[calendars.AS_RECORDED])
        assert independent.breaches(rows[calendars.RESTATED]) == served
        off = {cell for cell in recorded | served if recorded[cell] != served[cell]}
        assert {("2025-01", "US-NY"), ("2025-05", "DE-BE"), ("2025-11", "BR-SP")} <= off
        assert {jurisdiction for _, jurisdiction in off} <= calendars.DECLARED_LATE.keys()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_demo_holds_every_claim_and_leaves_no_process(tmp_path: Path):
    """`make demo-case-sla` at its real size: tried, rejected, superseded, accepted, published, worked out again."""
    command = [sys.executable, demo.__file__, "--directory", str(tmp_path / "case-sla")]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓ holds") == 10, done.stdout
    assert "FAILS" not in done.stdout
    assert left_behind(str(tmp_path)) == []


def left_behind(text: str) -> list[str]:
    """Processes that name it and are still there after a while: the last JVM ends a moment after its Python."""
    deadline = time.monotonic() + 20
    while (found := processes_naming(text)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def processes_naming(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended while we looked
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [command] if text in command and entry.parent.name != str(os.getpid()) else []
    return found
