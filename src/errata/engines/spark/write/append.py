"""Append rows to an Iceberg table: Spark writes the files, and Errata commits them in one compare-and-swap.

Spark's own append would commit through Iceberg's retries, which after a lost answer delete the manifest list of the
commit that landed. Files are therefore written as in Iceberg's rewrites: under a name, without a commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.iceberg.commits.refs import append_written_files
from errata.engines.spark.versions import add_row_lineage, build_write_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# one task per 64 MB of output instead of Iceberg's 384 MB, with which one core would write a typical chunk
WRITE_OPTIONS = {"fanout-enabled": "false", "advisory-partition-size": str(64 * 1024 * 1024)}


class SparkWriter:
    """Appends rows of data frames to tables of one JVM."""

    def __init__(self, java: JavaIceberg) -> None:
        self._java = java

    def append(
        self,
        rows: DataFrame,
        table: str,
        branch: str | None,
        mark: tuple[str, str],
        properties: Mapping[str, str] | None = None,
    ) -> str:
        """Append to a branch, or to main; returns the snapshot, which carries the mark as a property.

        A mark is appended at most once, ever: a second append with the same mark returns the first one's snapshot.
        """
        bulk, handle, name = self._java.bulk, self._java.load(table), f"errata_{uuid.uuid4().hex}"
        bulk.openWrite(handle, name)
        # Iceberg resolves the name in the catalogs of the thread's active session, and a worker's thread has none
        session = rows.sparkSession._jsparkSession  # noqa: SLF001  there is no other way to name a session to Java
        self._java.find_class("org.apache.spark.sql.classic.SparkSession").setActiveSession(session)
        try:
            options = WRITE_OPTIONS | build_write_options(name)
            format_version = int(self._java.find_class("org.apache.iceberg.TableUtil").formatVersion(handle))
            rows = add_row_lineage(rows, format_version)
            rows.write.format("iceberg").options(**options).mode("append").save(name)
            return append_written_files(self._java, table, branch, name, mark, dict(properties or {}))
        finally:
            bulk.closeWrite(handle, name)
