"""Rewrite rows of a table to new files on a branch: rows of partitions, or rows that only share files with them.

This is the only place where publishing writes data. Files are read with the table's current schema, so a renamed column
is the same column. The written rows are read back and must match by count and by two checksums over every column, or
nothing is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope
from errata.engines.spark.inputs.access import NO_ACCESS, InputAccess
from errata.engines.spark.inputs.frames import read_snapshot
from errata.engines.spark.inputs.protection import drop_listed
from errata.engines.spark.measure.checksums import hash_sum_sql, row_hash_sql
from errata.engines.spark.runtime.spark_session import SparkRuntime
from errata.engines.spark.versions import build_read_options
from errata.engines.spark.write.append import SparkWriter
from errata.errors import EngineError
from errata.model.manifest import TargetPin
from errata.model.partition_sql import quoted
from errata.model.product.erasure import ErasurePin

_FILE = "_file"
_A, _B = "__errata_a", "__errata_b"


class SparkRewriter:
    """Rewrites rows through one Spark session."""

    def __init__(self, runtime: SparkRuntime, writer: SparkWriter, access: InputAccess = NO_ACCESS) -> None:
        self._runtime = runtime
        self._writer = writer
        self._access = access

    def find_files_with_rows(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> frozenset[str]:
        """The files of a snapshot that hold rows of the partitions.

        Reads one column, because bounds only tell which rows a file may contain.
        """
        rows = read_snapshot(self._runtime.session, target.table, snapshot_id, len(partitions))
        inside = in_scope(target, partitions)
        return frozenset(row[_FILE] for row in rows.where(inside).select(_FILE).distinct().collect())

    def copy_rows(
        self,
        target: TargetPin,
        table: Any,
        staged: str,
        partitions: Sequence[str],
        branch: str,
        *,
        inside: bool,
        without: ErasurePin | None = None,
    ) -> str:
        """Append the rows inside the partitions, or the rows outside all of them, to the branch; returns the snapshot.

        Reads exactly the files of the staged scan, with their deletes applied, except rows of subjects on the list
        ``without``. Raises ``EngineError`` if the branch then holds anything else.
        """
        names = [F.col(quoted(str(field.name()))) for field in table.schema().columns()]
        chosen = F.coalesce(in_scope(target, partitions), F.lit(False))  # noqa: FBT003 - a literal is a value
        # in format 3 the frame also has the row ids, which the rows keep when written back
        reader = self._runtime.session.read.format("iceberg").options(**build_read_options(staged))
        wanted = reader.load(staged).where(chosen if inside else ~chosen)
        if without is not None:
            wanted = drop_listed(wanted, without.columns, self._access.for_list(without))
        return self._write(target, wanted, names, branch)

    def _write(self, target: TargetPin, rows: DataFrame, names: Sequence[Column], branch: str) -> str:
        meant = _compute_digest(rows.select(*names))
        made = self._writer.append(rows, target.table, branch, ("errata.rewrite", branch))
        written = read_snapshot(self._runtime.session, target.table, made, 1)
        if (found := _compute_digest(written.select(*names))) != meant:
            raise EngineError(
                f"rows of {target.table} were not written as they were read: expected {_format_digest(meant)}, "
                f"found {_format_digest(found)}",
                state="main is unchanged",
                hint="repeat the command; if it stays so, the table's files or the cluster are at fault",
            )
        return made


def _compute_digest(rows: DataFrame) -> tuple[int, str, str]:
    """Row count, and the exact sums of two hashes over every column."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    first, second = row_hash_sql(kinds, rows.columns)
    hashed = rows.select(F.expr(first).alias(_A), F.expr(second).alias(_B))
    found = hashed.agg(
        F.count("*").alias("rows"), F.expr(hash_sum_sql(_A)).alias("a"), F.expr(hash_sum_sql(_B)).alias("b")
    )
    row = found.collect()[0]
    return int(row["rows"]), str(row["a"]), str(row["b"])


def _format_digest(digest: tuple[int, str, str]) -> str:
    return f"{digest[0]} rows with checksum {digest[1]}/{digest[2]}"
