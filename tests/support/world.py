"""A small governed lake for tests: one product, raw files, a wrong history, two people, and eyes of its own.

What it says about the table is read with pyiceberg and never through Errata.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

from errata.client import Client
from errata.ledger import Ledger
from errata.wiring import build_client, open_workspace
from errata.wiring.engines import ProjectEngines
from errata.workspace import Workspace
from support.lakes import Lake, sqlite_lake

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

TABLE = "lake.fin.sales"
PRODUCT = "fin.sales"
FIRST = date(2026, 1, 1)

PROJECT = """
project: test
ledger: LEDGER
catalogs:
  lake: LAKE
storage: STORAGE
spark:
  master: "local[2]"
  conf:
    spark.driver.memory: 1g
    spark.sql.shuffle.partitions: "2"
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
  cy: {roles: [requester, operator, approver, publisher]}
limits: {max_partitions: 400}
chunk_bytes: CHUNK_BYTES
"""

PRODUCT_FILE = """
product: fin.sales
owner: finance
target:
  table: lake.fin.sales
  partition: {column: day, grain: day}
  key: [day, account]
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw:
    files: "raw/day={day}/*.parquet"
    partition: day
publish: {mode: replace_partitions, rollback_window: 30d}
checks:
  - {metric: rowCount, mustBeGreaterOrEqualTo: 0}
  - {metric: nullValues, column: account, mustBe: 0}
  - {metric: duplicateValues, columns: [day, account], mustBe: 0}
reconcile:
  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}
lineage_columns: [produced_by_run_id, restatement_reason]
"""

TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    return raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
"""


STATES = ("new", "planned", "approved", "staged", "validated", "published")


@dataclass(eq=False)
class World:
    """One project directory with its lake; ``client`` and ``spark`` are sessions of the shared application."""

    root: Path
    base: SparkSession = field(repr=False)
    days: tuple[str, ...]
    lake: Lake
    workspace: Workspace = field(init=False, repr=False)
    engines: ProjectEngines = field(init=False, repr=False)
    start: int | None = field(init=False, default=None)
    """Main's head when the world was made."""
    client: Client = field(init=False)
    spark: SparkSession = field(init=False)
    said: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # publications of a ledger that an older copy took the place of

    @classmethod
    def make(
        cls,
        root: Path,
        base: SparkSession,
        *,
        days: int = 4,
        spec: str = "day",
        chunk_bytes: str = "1MiB",
        transform: str = TRANSFORM,
        product: str = PRODUCT_FILE,
        rows: int = 3,
        properties: Mapping[str, str] | None = None,
        history: bool = True,
        project: str = "",
        lake: Lake | None = None,
        ledger: str = "sqlite:///.errata/ledger.db",
    ) -> World:
        """Files, table and client. The history is wrong: every gross is doubled."""
        lake = lake or sqlite_lake(root)
        words = {"LEDGER": ledger, "CHUNK_BYTES": chunk_bytes, "LAKE": lake.yaml, "STORAGE": lake.storage}
        text = PROJECT
        for word, value in words.items():
            text = text.replace(word, value)
        _write(root / "errata.yaml", text + project)
        _write(root / "products/sales.yaml", product)
        _write(root / ("transforms/sales.sql" if "sales.sql" in product else "transforms/sales.py"), transform)
        names = tuple((FIRST + timedelta(days=n)).isoformat() for n in range(days))
        for name in names:
            write_raw(root, name, rows)
        (root / ".errata").mkdir(exist_ok=True)
        world = cls(root, base, names, lake)
        world.open()
        world.create(spec, properties or {})
        if history:
            world.write_history(names)
        world.start = world.snapshot()
        return world

    def open(self) -> None:
        """A new client with a session of its own, which does what the live pipeline does as well."""
        self.workspace = open_workspace(self.root, spark=self.base, narrate=self.said.append)
        self.engines = cast("ProjectEngines", self.workspace.engines)
        self.client = build_client(self.workspace)
        self.spark = self.engines.runtime.session

    @property
    def ledger(self) -> Ledger:
        """The ledger as the client has it open."""
        return self.workspace.ledger

    def configure(self, old: str, new: str) -> None:
        """Change the project file and open it again."""
        place = self.root / "errata.yaml"
        assert old in place.read_text()
        place.write_text(place.read_text().replace(old, new))
        self.client.close()
        self.open()

    def copy_ledger(self) -> Path:
        """A copy of the ledger as it is now, made while nobody has it open."""
        self.client.close()
        place = self.root / f"ledger-{len(list(self.root.glob('ledger-*')))}.db"
        shutil.copy(self.root / ".errata/ledger.db", place)
        self.open()
        return place

    def put_back(self, copy: Path) -> None:
        """The copy instead of the ledger, as after a restore from a backup."""
        runs = self.ledger.runs.list()
        self.lost |= {one.pub_id for run in runs for one in self.ledger.publications.list(run.run_id)}
        self.client.close()
        for file in (self.root / ".errata").glob("ledger.db*"):
            file.unlink()
        shutil.copy(copy, self.root / ".errata/ledger.db")
        self.open()

    def publication(self, run: str, n: int = 1) -> str:
        """The id of the run's n-th publication or rollback."""
        return next(one.pub_id for one in self.ledger.publications.list(run) if one.n == n)

    def create(self, spec: str, properties: Mapping[str, str]) -> None:
        """The target table."""
        wanted = {"format-version": "2", "write.distribution-mode": "hash", "commit.retry.num-retries": "30"}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in (wanted | dict(properties)).items())
        self.sql("CREATE NAMESPACE IF NOT EXISTS lake.fin")
        self.sql(
            f"CREATE TABLE {TABLE} (day date, account string, gross decimal(12,2), n bigint, "
            f"produced_by_run_id string, restatement_reason string) USING iceberg "
            f"{f'PARTITIONED BY ({spec}) ' if spec else ''}TBLPROPERTIES ({listed})"
        )

    def write_history(self, names: Sequence[str]) -> None:
        """What the live pipeline left behind: right rows, wrong gross."""
        rows = [row for name in names for row in correct_rows(self.root, name)]
        values = ", ".join(
            f"(date'{d}', '{a}', cast({g * 2} as decimal(12,2)), bigint({n}), null, null)" for d, a, g, n in rows
        )
        if values:
            self.sql(f"INSERT INTO {TABLE} VALUES {values}")

    def sql(self, text: str) -> list[Any]:
        """Run SQL as the live pipeline would."""
        return self.spark.sql(text).collect()

    def live(self, day: str, account: str = "live", gross: str = "1.00") -> None:
        """One live append."""
        self.sql(f"INSERT INTO {TABLE} VALUES (date'{day}', '{account}', {gross}, bigint(1), null, null)")

    def another_client(self) -> Client:
        """A client of one's own, as another process has it."""
        return build_client(open_workspace(self.root, spark=self.base, narrate=self.said.append))

    def compact(self, *, only_split: bool = False) -> None:
        """Rewrite the data files, all of them or only those of partitions with several."""
        options = "'min-input-files','2'" if only_split else "'rewrite-all','true'"
        self.sql(f"CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map({options}))")

    def expire(self) -> None:
        """Expire every snapshot that no ref keeps."""
        self.sql(
            "CALL lake.system.expire_snapshots("
            "table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
        )

    def expire_by_pyiceberg(self) -> None:
        """The same by PyIceberg, which clears the parent of the oldest snapshot that it keeps."""
        with closing(load_catalog("lake", **self.lake.pyiceberg)) as catalog:
            table = catalog.load_table("fin.sales")
            kept = {ref.snapshot_id for ref in table.metadata.refs.values()}
            gone = [one.snapshot_id for one in table.snapshots() if one.snapshot_id not in kept]
            table.maintenance.expire_snapshots().by_ids(gone).commit()

    def drop_refs(self, *names: str) -> None:
        """Drop branches and tags, as a tool does that does not know them."""
        held = self.table().metadata.refs
        for name in names:
            self.sql(f"ALTER TABLE {TABLE} DROP {held[name].snapshot_ref_type.upper()} `{name}`")

    def set_main(self, snapshot_id: int) -> None:
        """Set main back, as its owner may."""
        self.sql(f"CALL lake.system.rollback_to_snapshot('fin.sales', {snapshot_id})")

    def remove_day(self, day: str) -> None:
        """Delete all rows of a day."""
        self.sql(f"DELETE FROM {TABLE} WHERE day = date'{day}'")

    def plan(self, partitions: str | None = None, **options: Any) -> Any:
        """Plan the given days, all by default."""
        scope = partitions or f"{self.days[0]}..{self.days[-1]}"
        return self.client.plan(
            PRODUCT, partitions=scope, reason=options.pop("reason", "doubled"), as_="ana", **options
        )

    def to(self, state: str, partitions: str | None = None, **options: Any) -> str:
        """A run brought to this state: planned, approved, staged, validated or published."""
        run = ""
        for name in STATES[1 : STATES.index(state) + 1]:
            run = self.step(name, run, partitions, **options)
        return run

    def step(self, state: str, run: str, partitions: str | None = None, **options: Any) -> str:
        """One command: the run is now in this state, after the one before it in ``STATES``."""
        if state == "planned":
            return str(self.plan(partitions, **options).id)
        steps = {
            "approved": lambda: self.client.approve(run, digest=self.client.show(run).digest, as_="bo"),
            "staged": lambda: self.client.run(run, as_="ana"),
            "validated": lambda: self.client.validate(run, as_="ana"),
            "published": lambda: self.client.publish(run, as_="bo"),
        }
        steps[state]()
        return run

    def table(self) -> Table:
        """The table through pyiceberg, fresh."""
        with closing(load_catalog("lake", **self.lake.pyiceberg)) as catalog:
            return catalog.load_table("fin.sales")

    def snapshot(self) -> int | None:
        """Main's head."""
        return self.table().metadata.current_snapshot_id

    def count_publications(self) -> int:
        """Number of snapshots of the table that say they are a publication."""
        summaries = [one.summary.additional_properties for one in self.table().snapshots() if one.summary]
        return sum(1 for summary in summaries if summary.get("errata.kind") == "publish")

    def files(self, snapshot_id: int | None = None) -> dict[str, frozenset[str]]:
        """Partition → live data files, by pyiceberg."""
        table = self.table()
        snapshot = table.snapshot_by_id(snapshot_id) if snapshot_id else table.current_snapshot()
        found: dict[str, set[str]] = {}
        for manifest in snapshot.manifests(table.io) if snapshot else ():
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                file = entry.data_file
                if int(file.content) == 0:
                    found.setdefault(str(file.partition[0]), set()).add(file.file_path)
        epoch = date(1970, 1, 1)
        return {
            (epoch + timedelta(days=int(key))).isoformat() if key.lstrip("-").isdigit() else key: frozenset(paths)
            for key, paths in found.items()
        }

    def rows(self, snapshot_id: int | None = None) -> list[tuple[str, str, Decimal, int]]:
        """Business columns of every row, by pyiceberg, sorted."""
        found = self.table().scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        return sorted((str(r["day"]), r["account"], r["gross"], r["n"]) for r in found)

    def expected(self, days: Iterable[str] | None = None) -> list[tuple[str, str, Decimal, int]]:
        """The right answer, computed here."""
        return sorted(row for name in (days or self.days) for row in correct_rows(self.root, name))

    def wrong(self, days: Iterable[str] | None = None) -> list[tuple[str, str, Decimal, int]]:
        """What the history held."""
        return sorted((d, a, g * 2, n) for d, a, g, n in self.expected(days))

    def refs(self) -> set[str]:
        """Branches and tags."""
        return set(self.table().metadata.refs)


def write_raw(root: Path, day: str, rows: int) -> Path:
    """Raw events of one day: deterministic, two events per account."""
    seed = date.fromisoformat(day).toordinal()
    accounts = [f"a{n}" for n in range(rows) for _ in range(2)]
    amounts = [Decimal(seed % 97 + n).scaleb(-2) + 1 for n in range(2 * rows)]
    table = pa.table(
        {"account": accounts, "amount": pa.array(amounts, pa.decimal128(12, 2))},
        schema=pa.schema([("account", pa.string()), ("amount", pa.decimal128(12, 2))]),
    )
    place = root / f"raw/day={day}/part-0.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place)
    return place


def correct_rows(root: Path, day: str) -> list[tuple[str, str, Decimal, int]]:
    """The right answer for one day, from its raw files."""
    totals: dict[str, tuple[Decimal, int]] = {}
    for file in sorted((root / f"raw/day={day}").glob("*.parquet")):
        for row in pq.read_table(file, partitioning=None).to_pylist():
            gross, n = totals.get(row["account"], (Decimal(0), 0))
            totals[row["account"]] = (gross + row["amount"], n + 1)
    return [(day, account, gross, n) for account, (gross, n) in sorted(totals.items())]


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(textwrap.dedent(text).lstrip(), "utf-8")
