"""The FinSight example: its data, its transform, its project files and its independent reader."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.finsight import daily, generate, history, independent, pipeline, warehouse, workshop
from examples.finsight.claims import print_claims, same
from examples.finsight.lake import FIRST_DAY, FIXED_ON, TODAY, Lake, days

from errata.ledger import Ledger
from errata.model.run import RunState
from unit.ledger.steps import BO, plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(generate.__file__).parent
DAY = date(2026, 1, 17)


def digest(table: pa.Table) -> str:
    return hashlib.sha256(json.dumps(table.to_pylist(), default=str).encode()).hexdigest()


class TestGenerator:
    def test_same_seed_gives_the_same_rows(self):
        """Whoever runs the demo gets the numbers that the documentation shows."""
        rows = generate.transactions(DAY, 500)
        assert digest(rows) == digest(generate.transactions(DAY, 500))
        assert digest(rows) == "7a126ac12c8c7111b9a25dc4f90d4a5c3ffaa80fbf737fc5d22cac81fe181ebb"
        assert digest(generate.fx_rates()) == "2d1107517db7f73b96c72b084a98cf80eba2f8cb6a483a42df5be36864606648"

    def test_another_day_or_seed_gives_other_rows(self):
        """No day is a copy of another one."""
        rows = generate.transactions(DAY, 500)
        assert rows["amount"] != generate.transactions(DAY + timedelta(1), 500)["amount"]
        assert rows["amount"] != generate.transactions(DAY, 500, seed=1)["amount"]

    def test_transactions_are_numbered_once_and_belong_to_their_day(self):
        """Ids are unique, every timestamp lies in the business date, and amounts are positive."""
        rows = generate.transactions(DAY, 2_000)
        assert len(set(rows["transaction_id"].to_pylist())) == 2_000
        assert {stamp.date() for stamp in rows["event_ts"].to_pylist()} == {DAY}
        assert min(rows["amount"].to_pylist()) > 0
        assert set(rows["currency"].to_pylist()) == {"USD", "EUR", "GBP"}

    def test_a_lake_has_every_day_and_an_empty_governed_table(self, tmp_path: Path):
        """Sixty days of raw files in several parts, rates for each, and the table without rows."""
        total = generate.generate(tmp_path / "lake", rows_per_day=100)
        parts = list((tmp_path / "lake" / "raw" / "transactions").glob("*/*.parquet"))
        assert len(parts) == 60 * generate.FILES_PER_DAY
        assert total == sum(pq.read_metadata(part).num_rows for part in parts)
        table = independent.open_table(tmp_path / "lake")
        assert table.current_snapshot() is None
        assert table.properties["commit.retry.num-retries"] == "30"
        assert [field.name for field in table.spec().fields] == ["business_date"]

    def test_the_incident_is_45_of_60_days(self):
        """The story's numbers are the calendar's numbers."""
        assert len(days(FIRST_DAY, TODAY)) == 60
        assert len(days(FIRST_DAY, FIXED_ON)) == 45


class TestProject:
    def test_the_project_files_load(self):
        """Every product file is valid and its inputs are inside the project."""
        from errata.project import load_project

        project = load_project(EXAMPLE)
        product = project.products["fin.daily_revenue"]
        assert product.transform.version == "2.4.1"
        assert product.target.table == "lake.fin.daily_revenue"
        (transactions,) = [source for source in product.inputs if source.files]
        assert transactions.files is not None
        assert transactions.files.startswith(str(EXAMPLE / "lake" / "raw"))

    def test_the_table_has_every_lineage_column(self):
        """The generator makes the columns that Errata fills."""
        from errata.model.product.product import LINEAGE_BY_DEFAULT

        assert generate.LINEAGE == LINEAGE_BY_DEFAULT


class TestDailyPipeline:
    def test_a_day_ends_with_a_rewrite_and_the_next_begins(self):
        """Ten appends and two rewrites make a day."""
        first = list(islice(daily.batches(), 13))
        assert [batch.operation for batch in first].count("overwrite") == 2
        assert first[11].operation == "overwrite"
        assert {batch.day for batch in first[:12]} == {TODAY}
        assert first[12].day == TODAY + timedelta(1)

    def test_batches_of_a_day_share_no_account(self):
        """Appending them gives every key once."""
        appended = [batch for batch in islice(daily.batches(), 12) if batch.operation == "append"]
        seen = [set(daily.arrivals(batch)["account_id"].to_pylist()) for batch in appended]
        assert sum(map(len, seen)) == len(set().union(*seen))

    def test_contents_are_counted_per_account_and_currency(self):
        """The journal's row count is the number of keys, its gross the sum of amounts."""
        table = mini_transactions()
        assert daily.contents(table) == (4, "1112.51")


def mini_transactions() -> pa.Table:
    rows = [
        ("A-1", "EUR", "100.00"),
        ("A-1", "EUR", "0.01"),
        ("A-1", "USD", "12.50"),
        ("A-2", "GBP", "0.50"),
        ("A-2", "EUR", "999.50"),
    ]
    return pa.table(
        {
            "business_date": pa.array([DAY] * len(rows), pa.date32()),
            "account_id": [account for account, _, _ in rows],
            "currency": [currency for _, currency, _ in rows],
            "amount": pa.array([Decimal(amount) for _, _, amount in rows], pa.decimal128(18, 2)),
        }
    )


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that other tests of this process have, or one that ends with this module."""
    from pyspark.sql import SparkSession

    if (other := SparkSession.getActiveSession()) is not None:
        yield other.newSession()
        return
    session = Lake(tmp_path_factory.mktemp("finsight")).spark("finsight-tests", cores=1, memory="1g")
    yield session
    session.stop()


@pytest.mark.spark
class TestTransform:
    def test_revenue_is_gross_times_dollars_per_unit_half_to_even(self, spark: SparkSession):
        """Worked out by hand: 100.01 EUR at 1.1 is 110.011; 0.50 GBP at 1.25 is 0.625, rounded to the even cent."""
        found = self.built(spark, EXAMPLE / "transforms" / "daily_revenue.py")
        assert found == {
            ("A-1", "EUR"): (Decimal("100.01"), Decimal("1.100000"), Decimal("110.01"), 2),
            ("A-1", "USD"): (Decimal("12.50"), Decimal("1.000000"), Decimal("12.50"), 1),
            ("A-2", "GBP"): (Decimal("0.50"), Decimal("1.250000"), Decimal("0.62"), 1),
            ("A-2", "EUR"): (Decimal("999.50"), Decimal("1.100000"), Decimal("1099.45"), 1),
        }

    def test_release_2_3_9_applied_the_rate_the_wrong_way_round(self, spark: SparkSession):
        """The bug that the demo corrects: dollars are untouched, everything else was divided."""
        found = self.built(spark, history.WRONG)
        assert found["A-1", "USD"] == (Decimal("12.50"), Decimal("1.000000"), Decimal("12.50"), 1)
        assert found["A-1", "EUR"] == (Decimal("100.01"), Decimal("0.909091"), Decimal("90.92"), 2)
        assert found["A-2", "GBP"] == (Decimal("0.50"), Decimal("0.800000"), Decimal("0.40"), 1)

    def test_a_second_rate_for_a_day_fails_the_job(self, spark: SparkSession):
        """Two rates for one currency and day would double its rows."""
        from pyspark.errors import PySparkException

        with pytest.raises(PySparkException, match="more than one FX rate for 2026-01-17 EUR"):
            self.built(spark, EXAMPLE / "transforms" / "daily_revenue.py", extra=[("EUR", "1.2")])

    def built(
        self, spark: SparkSession, path: Path, extra: list[tuple[str, str]] | None = None
    ) -> dict[tuple[str, str], tuple[object, ...]]:
        rates = [("USD", "1"), ("EUR", "1.1"), ("GBP", "1.25"), *(extra or [])]
        context = SimpleNamespace(config={"rounding": "half_even"})
        frame = pipeline.load_release(path, "0").build(context, self.frame(spark), self.rates(spark, rates))
        assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
            ("business_date", "date"),
            ("account_id", "string"),
            ("currency", "string"),
            ("gross", "decimal(18,2)"),
            ("fx_rate", "decimal(18,6)"),
            ("revenue_usd", "decimal(18,2)"),
            ("event_count", "bigint"),
        ]
        return {(row.account_id, row.currency): tuple(row)[3:] for row in frame.collect()}

    def frame(self, spark: SparkSession) -> DataFrame:
        rows = [tuple(row.values()) for row in mini_transactions().to_pylist()]
        return spark.createDataFrame(
            rows, "business_date date, account_id string, currency string, amount decimal(18,2)"
        )

    def rates(self, spark: SparkSession, rates: list[tuple[str, str]]) -> DataFrame:
        rows = [(DAY, currency, Decimal(rate)) for currency, rate in rates]
        return spark.createDataFrame(rows, "rate_date date, currency string, usd_per_unit decimal(18,6)")


class TestTamperedCopy:
    def test_an_approval_is_given_to_who_asked(self, tmp_path: Path):
        """The log knows people by pseudonyms; the forged entry is the approval, and verification names it."""
        project = tmp_path / "project"
        (project / ".errata").mkdir(parents=True)
        (project / "errata.yaml").write_text("project: finsight\n")
        for folder in ("products", "transforms"):
            (project / folder).mkdir()
        with Ledger.open(f"sqlite:///{project}/.errata/ledger.db") as ledger:
            run = plan(ledger)
            ledger.runs.move(run.run_id, RunState.APPROVED, actor=BO)
        copy, entry = workshop.tampered_copy(project)
        assert independent.verify_chain(project / ".errata" / "ledger.db").first_bad is None
        assert independent.verify_chain(copy / ".errata" / "ledger.db").first_bad == entry


class TestIndependentReader:
    def test_an_edited_audit_entry_is_found_by_number(self, tmp_path: Path):
        """The chain is checked against the file, and the first entry that does not hold is named."""
        ledger = tmp_path / "ledger.db"
        write_chain(ledger, entries=5)
        assert independent.verify_chain(ledger) == independent.Chain(5, None)
        with sqlite3.connect(ledger) as db:
            db.execute("UPDATE audit SET person = 'mallory' WHERE seq = 3")
        assert independent.verify_chain(ledger) == independent.Chain(2, 3)

    def test_a_removed_audit_entry_is_found_by_number(self, tmp_path: Path):
        """A gap is as visible as an edit."""
        ledger = tmp_path / "ledger.db"
        write_chain(ledger, entries=5)
        with sqlite3.connect(ledger) as db:
            db.execute("DELETE FROM audit WHERE seq = 4")
        assert independent.verify_chain(ledger) == independent.Chain(3, 4)


class TestIndependentReaderOfTheTable:
    """Each reader finds the smallest fault it is there for."""

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Path:
        generate.generate(tmp_path / "lake", rows_per_day=50)
        return tmp_path / "lake"

    def test_a_cent_too_much_is_found(self, lake: Path):
        """The calculation from raw files is exact."""
        rows = revenue_of(lake, DAY)
        write_revenue(lake, rows)
        days = [DAY.isoformat()]
        assert independent.wrong_rows(lake, independent.files_at(lake), days) == (rows.num_rows, 0)
        cents = [row["revenue_usd"] + (Decimal("0.01") if n == 7 else 0) for n, row in enumerate(rows.to_pylist())]
        place = rows.schema.get_field_index("revenue_usd")
        off = rows.set_column(place, "revenue_usd", pa.array(cents, pa.decimal128(18, 2)))
        before = independent.files_at(lake)
        independent.open_table(lake).overwrite(off)
        after = independent.files_at(lake)
        assert independent.wrong_rows(lake, after, days) == (rows.num_rows, 1)
        assert independent.difference(before, after, days) == independent.Difference(
            rows.num_rows, rows.num_rows, 0, 0, 1
        )

    def test_a_missing_row_is_found(self, lake: Path):
        """Fewer rows are wrong rows."""
        rows = revenue_of(lake, DAY)
        write_revenue(lake, rows.slice(1))
        count = rows.num_rows - 1
        assert independent.wrong_rows(lake, independent.files_at(lake), [DAY.isoformat()]) == (count, 1)

    def test_a_lost_live_batch_is_found(self, lake: Path, tmp_path: Path):
        """The journal is held against contents and history, batch by batch."""
        journal = tmp_path / "journal.jsonl"
        lines = []
        for name in ("daily-b01", "daily-b02"):
            rows = revenue_of(lake, DAY, batch=name)
            write_revenue(lake, rows)
            gross = str(sum(rows["gross"].to_pylist()))
            lines.append({"batch": name, "operation": "append", "partition": DAY.isoformat(), "rows": rows.num_rows,
                          "gross": gross, "snapshot_id": str(independent.head(lake))})  # fmt: skip
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        assert independent.live_rows(lake, journal).problems == ()
        independent.open_table(lake).delete("produced_by_run_id = 'daily-b02'")
        (problem,) = independent.live_rows(lake, journal).problems
        assert problem.startswith("daily-b02: (")
        assert problem.endswith("None in the table")

    def test_a_rewrite_in_the_journal_replaces_the_batches_before_it(self, lake: Path, tmp_path: Path):
        """Batches that were rewritten are no longer expected under their own names."""
        journal = tmp_path / "journal.jsonl"
        rows = revenue_of(lake, DAY, batch="daily-full05")
        write_revenue(lake, rows)
        line = {"batch": "daily-b01", "operation": "append", "partition": DAY.isoformat(), "rows": 3, "gross": "1.00",
                "snapshot_id": str(independent.head(lake))}  # fmt: skip
        whole = line | {"batch": "daily-full05", "operation": "overwrite", "rows": rows.num_rows,
                        "gross": str(sum(rows["gross"].to_pylist()))}  # fmt: skip
        journal.write_text(f"{json.dumps(line)}\n{json.dumps(whole)}\n", encoding="utf-8")
        assert independent.live_rows(lake, journal) == independent.Live(2, rows.num_rows, (DAY.isoformat(),), ())


def revenue_of(lake: Path, day: date, batch: str = "daily") -> pa.Table:
    """The right rows of a day, in plain Python."""
    raw = pq.read_table(Lake(lake).transactions_of(day), partitioning=None).to_pylist()
    rate = {row["currency"]: row["usd_per_unit"] for row in generate.fx_rates().to_pylist() if row["rate_date"] == day}
    gross: dict[tuple[str, str], list[Decimal]] = {}
    for row in raw:
        gross.setdefault((row["account_id"], row["currency"]), []).append(row["amount"])
    rows = [
        {
            "business_date": day,
            "account_id": account,
            "currency": currency,
            "gross": sum(amounts),
            "fx_rate": rate[currency],
            "revenue_usd": (sum(amounts) * rate[currency]).quantize(Decimal("0.01"), ROUND_HALF_EVEN),
            "event_count": len(amounts),
            "produced_by_run_id": batch,
        }
        for (account, currency), amounts in sorted(gross.items())
    ]
    return pa.Table.from_pylist(rows, schema=independent.open_table(lake).schema().as_arrow())


def write_revenue(lake: Path, rows: pa.Table) -> None:
    independent.open_table(lake).append(rows)


class TestWarehouse:
    """The warehouse of the demo, with rows of the lake."""

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Path:
        generate.generate(tmp_path / "lake", rows_per_day=50)
        write_revenue(tmp_path / "lake", revenue_of(tmp_path / "lake", DAY))
        return tmp_path / "lake"

    @pytest.mark.parametrize("kind", [warehouse.POSTGRES, warehouse.SNOWFLAKE])
    def test_it_holds_the_rows_of_the_lake_and_ends_with_its_block(self, lake: Path, kind: str):
        """Loaded and read by its own client: no row differs, and one that is there twice is found."""
        files, days = independent.files_at(lake), [DAY.isoformat()]
        paths, said = list(files[days[0]]), list[str]()
        with warehouse.open_warehouse(kind, said.append) as server:
            if server is None:
                pytest.skip(said[0])
            rows = independent.revenue_rows(files, days)
            assert server.load(paths) == len(rows)
            assert independent.rows_that_differ(rows, server.read(days[0], days[0])) == 0
            assert server.count_duplicates() == 0
            server.load(paths)
            assert independent.rows_that_differ(rows, server.read(days[0], days[0])) == len(rows)
            assert server.count_duplicates() == len(rows)
            assert server.answers()
        assert not server.answers()

    def test_a_machine_without_servers_has_a_demo_without_a_warehouse(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """One sentence says why, and nothing else happens."""
        monkeypatch.setenv("PATH", str(tmp_path))
        said: list[str] = []
        with warehouse.open_warehouse(say=said.append, debian=tmp_path, emulator=tmp_path / "python") as server:
            assert server is None
        (sentence,) = said
        assert "PostgreSQL's server programs are not installed, and the Snowflake emulator is not installed" in sentence

    def test_a_project_declares_the_copy_only_with_a_warehouse(self, tmp_path: Path):
        """The laid-out files load either way."""
        from errata.project import load_project

        workshop.lay_out(tmp_path / "without")
        workshop.lay_out(
            tmp_path / "with", warehouse.Postgres("PostgreSQL", "postgresql://finsight@127.0.0.1:1/postgres")
        )
        without, copied = (load_project(tmp_path / name).products["fin.daily_revenue"] for name in ("without", "with"))
        assert without.target.copies == ()
        assert [copy.name for copy in copied.target.copies] == ["pg:fin.daily_revenue"]


class TestClaims:
    def test_one_claim_that_fails_fails_the_demo(self, capsys: pytest.CaptureFixture[str]):
        """A wrong number cannot hide among right ones."""
        right, wrong = same("files", 0, 0, want=0), same("rows", 7, 8)
        assert print_claims([right])
        assert not print_claims([right, wrong])
        assert "FAILS" in capsys.readouterr().out

    def test_two_witnesses_that_agree_on_the_wrong_number_fail(self):
        """Agreement is not enough where the number itself is the claim."""
        assert not same("days rolled back", 2, 2, want=3).holds


class TestWorkshop:
    def test_a_directory_that_is_not_a_demo_is_left_alone(self, tmp_path: Path):
        """Wiping is for the demo's own leavings."""
        (tmp_path / "thesis.txt").write_text("five years", encoding="utf-8")
        with pytest.raises(workshop.DemoError, match="not a demo"):
            workshop.lay_out(tmp_path)
        assert (tmp_path / "thesis.txt").exists()

    def test_laying_out_twice_gives_a_fresh_project(self, tmp_path: Path):
        """The demo is repeatable."""
        workshop.lay_out(tmp_path / "demo")
        (tmp_path / "demo" / "lake").mkdir()
        workshop.lay_out(tmp_path / "demo")
        assert not (tmp_path / "demo" / "lake").exists()
        assert (tmp_path / "demo" / "transforms" / "daily_revenue.py").read_bytes() == (
            EXAMPLE / "transforms" / "daily_revenue.py"
        ).read_bytes()


def write_chain(path: Path, *, entries: int) -> None:
    """A log as Errata writes it, hashed by Errata's own code."""
    from errata.ledger.audit.chain import entry_hash
    from errata.model.audit import GENESIS, Actor, AuditEntry

    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE audit (seq, previous, hash, at, person, os_user, host, single_user, action, run_id, body)"
        )
        previous = GENESIS
        for seq in range(1, entries + 1):
            actor, body = Actor("bo", "bo", "host-a"), {"note": f"Zürich {seq}", "count": seq}
            entry = AuditEntry(seq, previous, "", "2026-03-02T09:00:00Z", actor, "approved", None, body)
            previous, before = entry_hash(entry), previous
            values = (seq, before, previous, entry.at, "bo", "bo", "host-a", 0, "approved", None, json.dumps(body))
            db.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
