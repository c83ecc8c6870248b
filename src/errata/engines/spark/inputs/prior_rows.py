"""Read the rows that a merge keeps, at the base that the publication replaces, without those of erased subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.frames import read_partitions
from errata.engines.spark.inputs.protection import mark_subjects
from errata.model.manifest import Manifest
from errata.ports.measure import LISTED


@dataclass(slots=True)
class PriorRows:
    """Counts the rows that a merge reads and leaves out, while Spark writes what it keeps."""

    table: str
    seen: Observation | None = field(default=None)

    def count(self) -> Mapping[str, int]:
        """Counts by outcome, under the name of the target, after the write; empty if the target names no subjects."""
        if self.seen is None:
            return {}
        read, erased = (int(self.seen.get[name] or 0) for name in ("rows_in", "rows_suppressed"))
        found = {"rows_in": read, "rows_used": read - erased, "rows_quarantined": 0, "rows_suppressed": erased}
        return {f"{name}:{self.table}": rows for name, rows in found.items()}


def read_prior_rows(
    session: SparkSession,
    manifest: Manifest,
    partitions: Sequence[str],
    access: InputAccess,
    counted: PriorRows | None = None,
) -> DataFrame:
    """Rows that a merge starts from. Those of erased subjects are left out, and counted if asked."""
    rows = _read_rows(session, manifest, partitions)
    if not manifest.leaves_out_prior_rows or manifest.erasure is None:
        return rows
    marked = mark_subjects(rows, manifest.erasure.columns, access.for_list(manifest.erasure))
    if counted is not None:
        counted.seen = Observation()
        listed = F.count_if(F.col(LISTED)).alias("rows_suppressed")
        marked = marked.observe(counted.seen, F.count(F.lit(1)).alias("rows_in"), listed)
    return marked.where(~F.col(LISTED)).drop(LISTED)


def read_listed_prior_rows(
    session: SparkSession, manifest: Manifest, partitions: Sequence[str], access: InputAccess
) -> DataFrame | None:
    """The rows that :func:`read_prior_rows` leaves out for this access; None if it leaves out none."""
    if not manifest.leaves_out_prior_rows or manifest.erasure is None:
        return None
    rows = _read_rows(session, manifest, partitions)
    return mark_subjects(rows, manifest.erasure.columns, access).where(F.col(LISTED))


def _read_rows(session: SparkSession, manifest: Manifest, partitions: Sequence[str]) -> DataFrame:
    return read_partitions(session, manifest.target, manifest.target.base_snapshot_id, partitions)
