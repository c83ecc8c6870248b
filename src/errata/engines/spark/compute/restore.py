"""Read the target's rows at an older snapshot in its current schema. Runs no transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope
from errata.engines.spark.compute.output_contract import conform_output
from errata.engines.spark.inputs.frames import add_later_columns, read_snapshot
from errata.model.partition_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from errata.model.manifest import Manifest, Restored


def read_restored_rows(
    session: SparkSession, manifest: Manifest, restored: Restored, partitions: Sequence[str]
) -> DataFrame:
    """The snapshot's rows with deletes applied; columns added since are NULL, renamed ones have their current name."""
    target = manifest.target
    rows = read_snapshot(session, target.table, restored.snapshot_id, len(partitions))
    named = rows.select(*[F.col(quoted(then)).alias(now) for now, then in restored.columns.items()])
    cut = named.where(in_scope(target, partitions))
    return conform_output(add_later_columns(cut, target), target)
