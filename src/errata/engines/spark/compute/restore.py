"""Read the rows that a restore puts back, in the target's current schema. Runs no transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope
from errata.engines.spark.compute.output_contract import conform_output
from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.frames import add_later_columns, read_input_frames, read_snapshot
from errata.engines.spark.inputs.protection import drop_listed
from errata.model.partition_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from errata.model.manifest import Manifest, Restored


def read_restored_rows(
    session: SparkSession,
    manifest: Manifest,
    restored: Restored,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    access: InputAccess,
) -> DataFrame:
    """The snapshot's rows with deletes applied; columns added since are NULL, renamed ones have their current name.

    Rows from elsewhere are those of the only input. Rows of erased subjects are left out.
    """
    target = manifest.target
    if restored.origin and not restored.snapshot_id:
        (rows,) = read_input_frames(session, manifest, parts, partitions, access=access).values()
    else:
        rows = read_snapshot(session, restored.origin or target.table, restored.snapshot_id, len(partitions))
    named = rows.select(*[F.col(quoted(then)).alias(now) for now, then in restored.columns.items()])
    cut = named.where(in_scope(target, partitions))
    if manifest.erasure is not None and manifest.erasure.columns:
        cut = drop_listed(cut, manifest.erasure.columns, access)
    return conform_output(add_later_columns(cut, target), target)
