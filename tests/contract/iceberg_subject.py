"""A real Iceberg table for the contracts: the adapters that a project gets, and a live job in Spark SQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.engines.spark.write.append import SparkWriter
from errata.ledger import Ledger
from errata.model.refs import run_branch
from errata.ports.publish import ContentPort, PublishTable
from errata.ports.ready import ReadyTables
from errata.project import load_project
from errata.testing.contracts.ready_table import ReadySubject
from errata.testing.contracts.subject import HISTORY, Sale, Subject
from errata.wiring.engines import ProjectEngines
from support.lakes import sqlite_lake
from support.world import PRODUCT_FILE, PROJECT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODES = ", ".join(f"'write.{verb}.mode'='merge-on-read'" for verb in ("delete", "update", "merge"))


@contextmanager
def open_engines(root: Path, spark: SparkSession) -> Iterator[ProjectEngines]:
    """The engines of an empty project with a catalog of its own."""
    lake = sqlite_lake(root)
    words = {"LEDGER": "sqlite:///.errata/ledger.db", "CHUNK_BYTES": "1MiB", "LAKE": lake.yaml, "STORAGE": lake.storage}
    text = PROJECT
    for word, value in words.items():
        text = text.replace(word, value)
    for place, content in {
        "errata.yaml": text, "products/sales.yaml": PRODUCT_FILE, "transforms/sales.py": "def build(ctx, raw): ...\n",
    }.items():  # fmt: skip
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(content, "utf-8")
    (root / ".errata").mkdir()
    project = load_project(root)
    with Ledger.open(project.ledger) as ledger:
        engines = ProjectEngines(project, ledger, spark)
        engines.runtime.session.sql("CREATE NAMESPACE IF NOT EXISTS lake.fin")
        yield engines
        engines.close()


@dataclass
class IcebergSubject:
    """One table of the project's catalog."""

    engines: ProjectEngines
    table: str = field(default_factory=lambda: f"lake.fin.t{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        self._sql(
            f"CREATE TABLE {self.table} (day date, account string, amount decimal(12,2)) USING iceberg "
            f"PARTITIONED BY (day) TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='hash', {_MODES})"
        )
        self.staging, self.pins, self.targets = self.engines.staging, self.engines.pins, self.engines.targets
        self.history, self.outside, self.rows = self.engines.history, self.engines.outside, self.engines.rows
        self.measurer, self.inputs = self.engines.measurer, self.engines.inputs
        self.lake_rows = self.engines.lake_rows
        self.append(*HISTORY)

    @property
    def publishing(self) -> PublishTable:
        """Publications on Iceberg."""
        return self.engines.publishing

    @property
    def content(self) -> ContentPort:
        """Content digests by Spark."""
        return self.engines.content

    def _sql(self, text: str) -> list[Any]:
        return self.engines.runtime.session.sql(text).collect()

    def append(self, *sales: Sale) -> None:
        """See the protocol."""
        values = ", ".join(f"(date'{day}', '{account}', {amount})" for day, account, amount in sales)
        self._sql(f"INSERT INTO {self.table} VALUES {values}")

    def delete(self, day: str, account: str) -> None:
        """See the protocol."""
        self._sql(f"DELETE FROM {self.table} WHERE day = date'{day}' AND account = '{account}'")

    def compact(self) -> None:
        """See the protocol."""
        name = self.table.removeprefix("lake.")
        self._sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all','true'))")

    def expire(self) -> None:
        """See the protocol."""
        name = self.table.removeprefix("lake.")
        self._sql(
            f"CALL lake.system.expire_snapshots(table => '{name}', older_than => timestamp'2100-01-01', "
            "retain_last => 1)"
        )

    def expire_and_clear_parents(self) -> None:
        """See the protocol."""
        table = self.engines.catalogs.load(self.table)
        kept = {ref.snapshot_id for ref in table.metadata.refs.values()}
        gone = [one.snapshot_id for one in table.snapshots() if one.snapshot_id not in kept]
        table.maintenance.expire_snapshots().by_ids(gone).commit()

    def stage(self, run_id: str, attempt: str, sales: Sequence[Sale]) -> None:
        """See the protocol."""
        values = ", ".join(
            f"(date'{day}', '{account}', cast({amount} as decimal(12,2)))" for day, account, amount in sales
        )
        frame = self.engines.runtime.session.sql(f"SELECT * FROM VALUES {values} AS t(day, account, amount)")
        SparkWriter(self.engines.java).append(
            frame, self.table, run_branch(run_id), ("errata.attempt", attempt), {"errata.run": run_id}
        )

    def read(self, snapshot_id: str) -> list[Sale]:
        """See the protocol."""
        rows = self._sql(f"SELECT * FROM {self.table} VERSION AS OF {snapshot_id}")
        return sorted((str(row["day"]), row["account"], str(row["amount"])) for row in rows)


_conforms: type[Subject] = IcebergSubject


@dataclass
class IcebergReadySubject:
    """A ready table of the project's catalog, in a namespace that does not exist before the first one."""

    engines: ProjectEngines
    table: str = field(default_factory=lambda: f"lake.errata.r{uuid.uuid4().hex[:12]}")

    @property
    def ready(self) -> ReadyTables:
        """See the protocol."""
        return self.engines.ready


_is_ready_subject: type[ReadySubject] = IcebergReadySubject
