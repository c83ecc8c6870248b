"""Lakes to measure on: raw events by day, a target that holds a first version of them, and a project around both.

The governed way and the bare ways use one session, one transform and one set of write options; the job as a user
writes it has a target and a session of its own, with nothing set.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import errata
from benchmarks import product
from errata.views import PlanView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from errata.client import Client

__all__ = ["FIRST", "TABLE", "Lake", "Shape", "make", "write_project"]

TABLE = "lake.bench.daily"
PLAIN = "lake.bench.plain"
FIRST = date(2020, 1, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many days, how many rows in each, and from how many accounts they are drawn, which sets the output's size."""

    days: int
    rows: int
    accounts: int
    fat: int = 1  # the first day has this many times the rows
    note: int = 0  # characters of padding in every output row
    chunk: str | None = None  # bytes of a chunk; None: as the product does by itself
    conf: tuple[tuple[str, str], ...] = ()
    cores: int = 2
    extra: str = ""  # more of errata.yaml
    waves: int = 0  # a product that is published in this many waves; 0: none
    copy: str = ""  # a copy of the target, as the product declares it

    @property
    def names(self) -> tuple[str, ...]:
        """The partitions."""
        return tuple((FIRST + timedelta(days=n)).isoformat() for n in range(self.days))

    @property
    def total(self) -> int:
        """Rows of events."""
        return (self.days - 1 + self.fat) * self.rows


@dataclass
class Lake:
    """A project directory, its session and its client."""

    root: Path
    shape: Shape
    client: Client = field(init=False)
    last: str = ""

    def __post_init__(self) -> None:
        self.client = errata.open(str(self.root))

    @property
    def spark(self) -> SparkSession:
        """The session of the project."""
        found: SparkSession = self.engines.runtime.session
        return found

    @property
    def engines(self) -> Any:
        """The adapters, for what no command shows."""
        return self.client._workspace.engines  # noqa: SLF001 - a benchmark may look inside

    def plan(self, name: str = "bench.daily", partitions: Sequence[str] | None = None) -> PlanView:
        """Every day of the lake, or these."""
        return self.client.plan(name, partitions=list(partitions or self.shape.names), reason="bench")

    def governed(self, name: str = "bench.daily") -> None:
        """Plan, approve, run, validate and publish in this session."""
        self.staged(name)
        self.client.validate(self.last)
        self.client.publish(self.last)

    def staged(self, name: str = "bench.daily") -> str:
        """Plan, approve and run only."""
        planned = self.plan(name)
        self.last = planned.id
        self.client.approve(planned.id, digest=planned.digest)
        self.client.run(planned.id)
        return planned.id

    def chunks(self) -> int:
        """Chunks of the last run."""
        return len(self.client._workspace.ledger.progress.chunks(self.last))  # noqa: SLF001

    def bare(self, days: Iterable[str] | None = None) -> None:
        """The same transform as one job, with the same write options, over all days or these."""
        from errata.engines.spark.write.append import WRITE_OPTIONS

        self.build(self.spark, days).writeTo(TABLE).options(**WRITE_OPTIONS).overwritePartitions()

    def by_day(self, step: int = 1) -> None:
        """The same job for every day, or for every ``step``-th day, one after the other."""
        for day in self.shape.names[::step]:
            self.bare([day])

    def as_written(self) -> None:
        """The job as a user writes it: Spark's and Iceberg's defaults."""
        self.build(self.default_session).writeTo(PLAIN).overwritePartitions()

    @cached_property
    def default_session(self) -> SparkSession:
        """A session of the same JVM with nothing set but the catalog."""
        session = self.spark.newSession()
        for key in ("spark.sql.shuffle.partitions", "spark.sql.ansi.enabled"):
            session.conf.unset(key)
        session.conf.set("spark.sql.shuffle.partitions", "200")
        for key, value in self.spark.conf.getAll.items():
            if key.startswith("spark.sql.catalog."):
                session.conf.set(key, value)
        return session

    def build(self, session: SparkSession, days: Iterable[str] | None = None) -> DataFrame:
        """The transform's output."""
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

        events = session.table("lake.bench.events")
        if days is not None:
            events = events.where(F.col("day").isin([date.fromisoformat(day) for day in days]))
        scope: dict[str, Any] = {}
        exec(product.transform(self.shape.note), scope)  # noqa: S102 - the project's own transform, run as it is
        frame: DataFrame = scope["build"](None, events)
        return frame

    def files(self, table: str = TABLE) -> tuple[int, int]:
        """Data files of a table now, and their bytes."""
        row = self.spark.sql(f"SELECT count(*) n, sum(file_size_in_bytes) b FROM {table}.files").first()  # noqa: S608
        assert row is not None
        return int(row["n"]), int(row["b"] or 0)

    def close(self) -> None:
        """Give the ledger's connections back."""
        self.client.close()


def write_project(root: Path, shape: Shape) -> None:
    """The project files alone."""
    conf = {"spark.driver.memory": "4g", **dict(shape.conf)}
    chunks = f"chunks: {{bytes: {shape.chunk}}}" if shape.chunk else ""
    texts = {
        "errata.yaml": product.project(shape.cores, conf, f"{chunks}\n{shape.extra}"),
        "products/daily.yaml": product.product("bench.daily", copy=shape.copy),
        "products/full.yaml": product.product("bench.full", "full"),
        "products/unique.yaml": product.product("bench.unique", "unique"),
        "transforms/daily.py": product.transform(shape.note),
    }
    if shape.waves:
        texts["products/waves.yaml"] = product.in_waves("bench.waves", -(-shape.days // shape.waves))
    (root / ".errata").mkdir(parents=True, exist_ok=True)  # of the catalog; the ledger comes with the first plan
    for name, text in texts.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text).lstrip(), "utf-8")


def make(root: Path, shape: Shape) -> Lake:
    """Events by day in an Iceberg table, and targets; the governed one holds a first version of every day."""
    write_project(root, shape)
    lake = Lake(root, shape)
    spark = lake.spark
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    spark.sql(
        "CREATE TABLE lake.bench.events (day date, account bigint, amount decimal(12,2), note string) "
        "USING iceberg PARTITIONED BY (day)"
    )
    for table in (TABLE, PLAIN):
        spark.sql(f"CREATE TABLE {table} ({product.columns(shape.note)}) USING iceberg PARTITIONED BY (day)")
    first = shape.fat * shape.rows
    spark.range(shape.total).selectExpr(
        f"date_add(date'{FIRST}', cast(greatest(0, (id - {first}) div {shape.rows} + 1) AS int)) AS day"
        if shape.fat > 1
        else f"date_add(date'{FIRST}', cast(id div {shape.rows} AS int)) AS day",
        f"pmod(xxhash64(id), {shape.accounts}) AS account",
        "cast(pmod(xxhash64(id, 1), 100000) / 100 AS decimal(12,2)) AS amount",
        "concat('note ', id) AS note",
    ).writeTo("lake.bench.events").option("fanout-enabled", "false").append()
    lake.bare()
    return lake
