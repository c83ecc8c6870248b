"""Where FinSight's lake is, and how its own jobs reach it: one SQLite catalog for Spark and pyiceberg alike.

Used by the generator, the history and the daily pipeline. It does not know Errata, apart from the jars that Errata's
set-up has already verified.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession

CATALOG = "lake"
REVENUE = "fin.daily_revenue"
RATES = "ref.fx_rates"

FIRST_DAY = date(2026, 1, 1)
FIXED_ON = date(2026, 2, 15)  # release 2.4.1 went live; the 45 days before it are wrong
TODAY = date(2026, 3, 2)  # the first day the live pipeline writes in the demo; 60 days of history end before it
LAST_RATE = date(2026, 6, 30)

CURRENCIES = ("USD", "EUR", "GBP")
ACCOUNTS = tuple(f"A-{10_000 + n}" for n in range(2_500))


def days(start: date, end: date) -> list[date]:
    """Every day of ``[start, end)``."""
    return [start + timedelta(n) for n in range((end - start).days)]


@dataclass(frozen=True, slots=True)
class Lake:
    """The directory that replaces the bucket."""

    root: Path

    @property
    def catalog_file(self) -> Path:
        """The SQLite file in which both catalogs keep their pointers."""
        return self.root / "catalog.db"

    @property
    def warehouse(self) -> Path:
        """Where Iceberg tables keep metadata and data."""
        return self.root / "warehouse"

    @property
    def transactions(self) -> Path:
        """The raw files, one directory per business date."""
        return self.root / "raw" / "transactions"

    @property
    def complete(self) -> Path:
        """There once all raw files are: the mark that jobs downstream wait for."""
        return self.transactions / "_SUCCESS"

    def transactions_of(self, day: date) -> Path:
        """The directory of one business date."""
        return self.transactions / f"business_date={day.isoformat()}"

    def catalog(self) -> Catalog:
        """The catalog without a JVM."""
        from pyiceberg.catalog import load_catalog

        uri, warehouse = f"sqlite:///{self.catalog_file}", self.warehouse.as_uri()
        return load_catalog(CATALOG, type="sql", uri=uri, warehouse=warehouse)

    def create(self) -> None:
        """Empty directories, and a catalog file in which readers do not block writers."""
        self.warehouse.mkdir(parents=True)
        self.transactions.mkdir(parents=True)
        with closing(sqlite3.connect(self.catalog_file)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")

    def spark(self, name: str, *, cores: int, memory: str, more: Sequence[str] = ()) -> SparkSession:
        """A small local session on the catalog, with more jars if a job needs them."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(name).master(f"local[{cores}]")
        for key, value in self._spark_conf(cores, memory, more).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def _spark_conf(self, cores: int, memory: str, more: Sequence[str]) -> dict[str, str]:
        from errata import jars

        paths = [*(str(path) for path in jars.require_jars()), *more]
        prefix = f"spark.sql.catalog.{CATALOG}"
        return {
            "spark.driver.memory": memory,
            "spark.driver.extraClassPath": ":".join(paths),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Jobs of seconds end before the optimising compiler pays for itself.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": str(cores),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "jdbc",
            f"{prefix}.uri": f"jdbc:sqlite:{self.catalog_file}?busy_timeout=30000&journal_mode=WAL",
            f"{prefix}.warehouse": self.warehouse.as_uri(),
            f"{prefix}.jdbc.schema-version": "V1",
            f"{prefix}.cache-enabled": "false",
            # Hadoop's own local file system starts a chmod process for every file it writes.
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        }
