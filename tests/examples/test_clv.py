"""The customer-value example: its data, its two releases, its independent reader, and a small governed correction."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, cast
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.clv import demo, generate, history, independent, picture, workshop
from examples.clv.lake import FIRST_DAY, MONTH, VALUE, WEEK, Lake, days
from examples.finsight.pipeline import load_release

import errata
from errata.errors import ApprovalRefused, PermissionRefused
from errata.wiring import build_client, open_workspace
from errata.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.wiring.engines import ProjectEngines

EXAMPLE = Path(generate.__file__).parent
RIGHT = EXAMPLE / "transforms" / "customer_value.py"
DAY = date(2023, 6, 1)
SMALL = 60


class TestGenerator:
    def test_same_seed_gives_the_same_rows(self):
        """Whoever runs the demo gets the numbers that the documentation shows."""
        rows = generate.events(DAY, 100)
        digest = hashlib.sha256(json.dumps(rows.to_pylist(), default=str).encode()).hexdigest()
        assert rows == generate.events(DAY, 100)
        assert digest == "ec69118cf62d24b58a85ca120967ed40339cc93086aac05eaa0d433c7df2e114"

    def test_another_day_or_seed_gives_other_rows(self):
        """No day is a copy of another one."""
        rows = generate.events(DAY, 100)
        assert rows["amount"] != generate.events(DAY + timedelta(1), 100)["amount"]
        assert rows["amount"] != generate.events(DAY, 100, seed=1)["amount"]

    def test_a_touch_has_a_campaign_and_an_order_an_amount(self):
        """Never both, never neither; every moment lies in its day."""
        known = {name for name, *_ in generate.CAMPAIGN_ROWS}
        for row in generate.events(DAY, 500).to_pylist():
            assert (row["campaign_id"] in known, row["amount"] is not None) == (
                row["event_type"] == "touch",
                row["event_type"] == "order",
            )
            assert row["event_ts"].date() == DAY

    def test_five_years_are_1825_days_with_a_file_each(self, tmp_path: Path):
        """One directory a day; the default is what the story says."""
        assert len(days()) == 1_825
        assert days()[-1] == date(2025, 12, 30)
        total = generate.generate(tmp_path / "lake", count=5, events_per_day=20)
        parts = sorted((tmp_path / "lake" / "raw" / "events").glob("*/*.parquet"))
        assert len(parts) == 5
        assert total == sum(pq.read_metadata(part).num_rows for part in parts)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty days of the example, without history."""
    place = tmp_path_factory.mktemp("clv") / "project"
    workshop.lay_out(place, chunk_kilobytes=28, wave_days=SMALL // 2)
    generate.generate(place / "lake", count=SMALL, events_per_day=40)
    return place


@pytest.mark.spark
class TestReleases:
    def test_an_order_is_credited_to_the_last_touch_before_it(self, base_spark: SparkSession):
        """Ten past nine beats nine; eleven is too late; an order before any touch is direct."""
        assert self.built(base_spark, RIGHT) == {
            "C-1": (2, Decimal("300.00"), Decimal("20.00"), Decimal("280.00"), 1, Decimal("200.00"), Decimal("0.9333")),
            "C-2": (1, Decimal("50.00"), Decimal("0.00"), Decimal("50.00"), 1, Decimal("50.00"), Decimal("1.0000")),
        }

    def test_release_1_4_0_credited_touches_that_came_after_the_order(self, base_spark: SparkSession):
        """The bug that the demo corrects: the same revenue, other costs."""
        assert self.built(base_spark, history.WRONG) == {
            "C-1": (2, Decimal("300.00"), Decimal("90.00"), Decimal("210.00")),
            "C-2": (1, Decimal("50.00"), Decimal("2.50"), Decimal("47.50")),
        }

    def built(self, spark: SparkSession, path: Path) -> dict[str, tuple[object, ...]]:
        rows = [
            ("C-1", "09:00", None, "100.00"),
            ("C-1", "09:10", "search", None),
            ("C-1", "10:00", None, "200.00"),
            ("C-1", "11:00", "retargeting", None),
            ("C-2", "09:00", None, "50.00"),
            ("C-2", "09:05", "mail", None),
        ]
        events = spark.createDataFrame(
            [
                (DAY, f"E-{n}", stamp(time), who, "order" if price else "touch", name, price and Decimal(price))
                for n, (who, time, name, price) in enumerate(rows)
            ],
            "event_date date, event_id string, event_ts timestamp, customer_id string, event_type string, "
            "campaign_id string, amount decimal(12,2)",
        )
        shares = [("mail", "0.05"), ("search", "0.1"), ("retargeting", "0.3"), ("direct", "0")]
        campaigns = spark.createDataFrame(
            [(name, Decimal(share)) for name, share in shares], "campaign_id string, share decimal(6,4)"
        )
        frame = load_release(path, "0").build(None, events, campaigns)
        features = [("direct_orders", "bigint"), ("largest_order", "decimal(12,2)"), ("margin_rate", "decimal(9,4)")]
        assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
            ("event_date", "date"),
            ("customer_id", "string"),
            ("orders", "bigint"),
            ("revenue", "decimal(18,2)"),
            ("cost", "decimal(18,2)"),
            ("margin", "decimal(18,2)"),
            *(features if path == RIGHT else []),
        ]
        return {row.customer_id: tuple(row)[2:] for row in frame.collect()}


def stamp(clock: str) -> datetime:
    return datetime.fromisoformat(f"{DAY}T{clock}:00").replace(tzinfo=UTC)


@pytest.mark.spark
class TestFollowers:
    def test_a_week_ends_with_its_day_and_the_look_back_is_not_output(self, base_spark: SparkSession):
        """Seven days by the calendar, gaps included; the six days before the partitions are read and not written."""
        built = errata.sql_transform(EXAMPLE / "transforms" / "margin_week.sql")
        rows = [(DAY + timedelta(n), "C-1", 1, Decimal(10**n)) for n in (-7, -6, -1, 0, 2)]
        frame = base_spark.createDataFrame(
            rows, "event_date date, customer_id string, orders long, margin decimal(18,7)"
        )
        ctx = errata.live_context(EXAMPLE, "crm.margin_week", (DAY.isoformat(), (DAY + timedelta(3)).isoformat()))
        found = {row.event_date: (row.orders, row.margin) for row in built(ctx, days=frame).collect()}
        assert found == {DAY: (3, Decimal("1.10")), DAY + timedelta(2): (3, Decimal("101.10"))}


@pytest.mark.spark
class TestCorrection:
    @pytest.fixture
    def workspace(self, project: Path, base_spark: SparkSession) -> Workspace:
        return open_workspace(project, spark=base_spark, narrate=lambda _text: None)

    @pytest.fixture
    def client(self, workspace: Workspace) -> Iterator[errata.Client]:
        with build_client(workspace) as client:
            yield client

    @pytest.mark.slow
    def test_sixty_wrong_days_are_corrected_and_equal_the_raw_files(
        self, project: Path, workspace: Workspace, client: errata.Client
    ):
        """Bare Spark writes the wrong history; a run of two waves, interrupted after the first, corrects it."""
        lake = Lake(project / "lake")
        # The engine's session has the project's catalog under the same name as the nightly job's.
        engines = cast("ProjectEngines", workspace.engines)
        history.write_history(engines.runtime.session, lake, count=SMALL)
        wrong, before = independent.compare(lake), independent.files_of_days(lake)
        assert wrong.days == SMALL
        assert wrong.rows / 2 < wrong.wrong < wrong.rows

        end = (FIRST_DAY + timedelta(SMALL)).isoformat()
        plan = client.plan(demo.PRODUCT, FIRST_DAY.isoformat(), end, reason=demo.REASON, as_="ana")
        assert len(plan.chunks) >= 4
        client.approve(plan.id, digest=plan.digest, as_="bo")
        half = client.run(plan.id, max_chunks=len(plan.chunks) // 2, publish=True, as_=workshop.WORKERS)
        assert [wave.state for wave in half.waves] == ["validated", "computing"]
        assert not independent.columns(lake) & set(independent.FEATURES), "readers see new columns too early"

        with pytest.raises(ApprovalRefused) as refused:
            client.release(plan.id, as_="bo")
        signed = refused.value.fields["release"].release_digest
        with pytest.raises(PermissionRefused):
            client.release(plan.id, digest=signed, as_=workshop.WORKERS)
        client.release(plan.id, digest=signed, as_="bo")
        client.publish(plan.id, as_=workshop.WORKERS)
        seen = independent.look(lake, before)
        assert seen.corrected == tuple(days(SMALL)[SMALL // 2 :])
        assert (seen.wrong, seen.untouched, seen.commits) == (0, SMALL // 2, 2)
        assert set(independent.FEATURES) <= seen.columns
        assert independent.features_on(lake, FIRST_DAY) == 0

        rest = client.run(plan.id, publish=True, as_=workshop.WORKERS)
        assert (rest.state, rest.recomputed) == ("published", 0)
        assert independent.compare(lake) == independent.Compared(wrong.rows, 0, SMALL)
        assert independent.wrong_features(lake) == 0


class TestIndependentReader:
    def test_a_cent_in_the_wrong_place_is_found(self, tmp_path: Path):
        """The reader that every claim rests on sees the smallest fault and a missing row."""
        generate.generate(tmp_path / "lake", count=1, events_per_day=60)
        lake = Lake(tmp_path / "lake")
        rows = value_of(lake, FIRST_DAY)
        table = lake.catalog().load_table(generate.VALUE)
        schema = table.schema().as_arrow()

        def found(changed: list[dict[str, object]]) -> tuple[int, int]:
            if table.current_snapshot() is not None:
                table.delete()
            table.append(pa.Table.from_pylist(changed, schema=schema))
            compared = independent.compare(lake)
            return compared.rows, compared.wrong

        cent = Decimal("0.01")
        moved = [rows[0] | {"cost": rows[0]["cost"] + cent, "margin": rows[0]["margin"] - cent}, *rows[1:]]
        assert found(rows) == (len(rows), 0)
        assert found(moved) == (len(rows), 1)
        assert found(rows[1:]) == (len(rows) - 1, 1)

    def test_a_cent_in_a_table_that_follows_is_found(self, tmp_path: Path):
        """Months and weeks are worked out from the raw files too, not from the table that they are computed from."""
        generate.generate(tmp_path / "lake", count=33, events_per_day=12)  # a month and two days
        lake = Lake(tmp_path / "lake")
        value = {day: value_of(lake, day) for day in days(33)}

        def total(found: list[date], name: str) -> Decimal:
            return sum((row[name] for day in found for row in value[day]), Decimal(0))

        months = [
            {"event_month": name, "customers": len({row["customer_id"] for day in found for row in value[day]})}
            | {"orders": int(total(found, "orders")), "revenue": total(found, "revenue")}
            | {"margin": total(found, "margin")}
            for name, found in (("2021-01", days(31)), ("2021-02", days(33)[31:]))
        ]
        weeks = []
        for day in days(33):
            last_seven = [one for one in days(33) if day - timedelta(7) < one <= day]
            row = {"event_date": day, "orders": int(total(last_seven, "orders")), "margin": total(last_seven, "margin")}
            weeks.append(row)
        for name, rows in ((MONTH, months), (WEEK, weeks)):
            table = lake.catalog().load_table(name)
            schema = table.schema().as_arrow()
            table.append(pa.Table.from_pylist(rows, schema=schema))
            assert independent.compare_reader(lake, name) == independent.Compared(len(rows), 0, len(rows))
            table.delete()
            wrong = rows[-1] | {"margin": rows[-1]["margin"] + Decimal("0.01")}
            table.append(pa.Table.from_pylist([*rows[1:-1], wrong], schema=schema))
            assert independent.compare_reader(lake, name).wrong == 2, "one is missing and one has a cent too much"


def value_of(lake: Lake, day: date) -> list[dict[str, object]]:
    """The right rows of a day, in plain Python."""
    share = {name: Decimal(text) for name, _, text in generate.CAMPAIGN_ROWS}
    touched: dict[str, str] = {}
    rows: dict[str, dict[str, object]] = {}
    for event in pq.read_table(lake.events_of(day), partitioning=None).to_pylist():  # written in order of time
        who = event["customer_id"]
        if event["event_type"] == "touch":
            touched[who] = event["campaign_id"]
            continue
        row = rows.setdefault(who, {"orders": 0, "revenue": Decimal(0), "cost": Decimal(0)})
        fee = (event["amount"] * share[touched.get(who, "direct")]).quantize(Decimal("0.01"))  # half to even
        row |= {"orders": row["orders"] + 1, "revenue": row["revenue"] + event["amount"], "cost": row["cost"] + fee}
    return [
        {"event_date": day, "customer_id": who, "margin": row["revenue"] - row["cost"]} | row
        for who, row in sorted(rows.items())
    ]


class TestPicture:
    def test_the_newest_year_is_visible_first_and_tables_that_follow_last(self):
        """Rows in order of publication; a bar of what readers see begins where it became visible."""
        bars = (
            picture.Bar(VALUE, ("2025-01-01", "2025-12-31"), ((0.0, 20.0),), 30.0),
            picture.Bar(VALUE, ("2024-01-01", "2024-12-31"), ((20.0, 45.0), (60.0, 70.0)), 80.0),
            picture.Bar(MONTH, ("2024-01", "2025-12"), ((81.0, 85.0),), 90.0),
        )
        drawn = picture.draw(picture.Timeline(bars, released=28.0, killed=45.0, resumed=60.0))
        root = ET.fromstring(drawn)  # noqa: S314  our own text
        space = "{http://www.w3.org/2000/svg}"
        words = [one.text or "" for one in root.iter(f"{space}text")]
        seen = [float(one.attrib["x"]) for one in root.iter(f"{space}rect") if one.attrib["fill"] == picture.VISIBLE]
        assert seen[1:] == sorted(seen[1:]), "the first rectangle belongs to the legend"
        assert len(seen) == 4
        assert "The newest year is in use after 30 s, everything after 1 min 30 s" in words
        rows = ["2025-01-01 … 2025-12-31", "2024-01-01 … 2024-12-31", "crm.value_by_month, 2 months"]
        assert [one for one in words if one in rows] == rows


class TestWorkshop:
    def test_a_directory_that_is_not_a_demo_is_left_alone(self, tmp_path: Path):
        """Wiping is for the demo's own leavings."""
        (tmp_path / "thesis.txt").write_text("five years", encoding="utf-8")
        with pytest.raises(workshop.DemoError, match="not a demo"):
            workshop.lay_out(tmp_path, chunk_kilobytes=1)
        assert (tmp_path / "thesis.txt").exists()

    def test_the_project_files_load_with_the_sizes_that_were_asked_for(self, project: Path):
        """The demo's scale changes the copy, never the example."""
        from errata.project import load_project

        def waves(place: Path) -> str | None:
            found = load_project(place).products[demo.PRODUCT].publish.waves
            return found.size if found else None

        assert load_project(project).chunk_bytes == 28_000
        assert (waves(project), waves(EXAMPLE)) == ("30d", "365d")
        assert load_project(EXAMPLE).chunk_bytes == 140_000
        assert load_project(EXAMPLE).limits.max_partitions >= len(days())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_the_demo_of_1825_days_holds_every_claim_and_leaves_no_process(tmp_path: Path):
    """`make demo-clv` at its real size: newest year first, killed at day 1,200, joined, compared row by row."""
    command = [sys.executable, demo.__file__, "--directory", str(tmp_path / "clv")]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓ holds") == 18, done.stdout
    assert "FAILS" not in done.stdout
    bars = picture.read_timeline(tmp_path / "clv" / ".errata" / "ledger.db").bars
    assert [bar.product for bar in bars] == [VALUE] * 5 + [WEEK, MONTH]
    assert bars[0].partitions[-1] == days()[-1].isoformat()
    assert all(bar.spans and bar.spans[-1][1] <= bar.visible for bar in bars)
    left = [
        entry
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in _read(entry) and entry.parent.name != str(os.getpid())
    ]
    assert left == []


def _read(entry: Path) -> bytes:
    try:
        return entry.read_bytes()
    except OSError:
        return b""  # it ended while we looked
