"""Read the events that the target has and no run rebuilt, for runs that add missing ones. Runs no Spark action."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.frames import read_partitions
from errata.engines.spark.inputs.protection import drop_listed, mark_subjects
from errata.errors import TransformFailed
from errata.model.manifest import Manifest
from errata.model.partition_sql import quoted
from errata.model.product.reconstruction import ORIGIN, Reconstruction, list_partitions_around
from errata.ports.measure import LISTED


def read_recorded(
    session: SparkSession,
    manifest: Manifest,
    partitions: Sequence[str],
    access: InputAccess,
    spread: int | None = None,
) -> DataFrame:
    """Recorded events of these partitions and those around them, at the base that the publication replaces.

    Those of erased subjects are left out, by the columns that the target names.
    ``spread`` puts the rows into this many tasks, to prove that their order does not matter.
    """
    rules = manifest.reconstruct
    if rules is None:
        raise TransformFailed(
            f"ctx.recorded was refused; {manifest.product} has no rules for events that were never recorded",
            hint="declare reconstruct: in the product file, and plan again",
        )
    recorded = _read_events(session, manifest, rules, partitions)
    if manifest.erasure is not None and manifest.erasure.columns:
        recorded = drop_listed(recorded, manifest.erasure.columns, access.for_list(manifest.erasure))
    recorded = recorded.drop(*manifest.lineage_columns)
    return recorded if spread is None else recorded.repartition(spread)


def read_listed_events(
    session: SparkSession, manifest: Manifest, partitions: Sequence[str], access: InputAccess
) -> DataFrame | None:
    """Recorded events that :func:`read_recorded` leaves out for this access; None if it leaves out none."""
    rules, erasure = manifest.reconstruct, manifest.erasure
    if rules is None or erasure is None or not erasure.columns:
        return None
    rows = _read_events(session, manifest, rules, partitions)
    return mark_subjects(rows, erasure.columns, access).where(F.col(LISTED))


def _read_events(
    session: SparkSession, manifest: Manifest, rules: Reconstruction, partitions: Sequence[str]
) -> DataFrame:
    target = manifest.target
    read = list_partitions_around(rules, target.grain, partitions)
    rows = read_partitions(session, target, target.base_snapshot_id, read)
    return rows.where(F.col(quoted(ORIGIN)).isNull())
