"""Find partitions that contain rows of erased subjects. Read-only.

Ids are hashed in Python workers, because a key in a SQL expression would be printed in every query plan. Each id of a
partition is hashed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope, partition_name
from errata.engines.spark.inputs.frames import read_snapshot
from errata.errors import StateRefused
from errata.model.manifest import TargetPin
from errata.model.partition_sql import quote_table, quoted
from errata.model.product.erasure import SUBJECT
from errata.ports.erasure import ErasedSubjects, Suppressions

_PARTITION, _ID, _HASH = "__errata_partition", "__errata_id", "__errata_hash"


class SparkSuppressions:
    """Looks up the erasure list in tables; ``subjects`` maps each table to the columns that identify data subjects."""

    def __init__(
        self,
        erased: ErasedSubjects,
        subjects: Mapping[str, tuple[str, ...]],
        session: Callable[[], SparkSession],
    ) -> None:
        self._erased, self._subjects, self._session = erased, subjects, session

    def watermark(self, table: str) -> str:
        """See the port."""
        return self._erased.watermark() if self._subjects.get(table) else ""

    def held(self, table: str, target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """See the port."""
        spark = self._session()
        hashed = F.udf(self._erased.hasher(), "string", useArrow=False)
        listed = spark.read.table(quote_table(self._erased.table)).select(F.col(SUBJECT).alias(_HASH))
        found: set[str] = set()
        for snapshot, partitions in snapshots.items():
            rows = read_snapshot(spark, target.table, snapshot, len(partitions))
            scope = in_scope(target, partitions)
            ids = _select_ids(rows.where(scope), target, self._columns(table, rows, snapshot))
            hit = ids.withColumn(_HASH, hashed(F.col(_ID))).join(listed, _HASH, "left_semi")
            found |= {row[0] for row in hit.select(_PARTITION).distinct().collect()}
        return tuple(sorted(found))

    def _columns(self, table: str, rows: DataFrame, snapshot: str) -> tuple[str, ...]:
        """The columns with subject ids; raises if the snapshot lacks one, because its rows could be anyone's."""
        missing = [name for name in self._subjects[table] if name not in rows.columns]
        if missing:
            raise StateRefused(
                f"snapshot {snapshot} of {table} was refused; it lacks {', '.join(missing)}, which identify "
                "subjects, so rows of erased subjects in it cannot be found",
                state="main is unchanged",
                hint="errata plan … computes the partitions with the current columns",
            )
        return self._subjects[table]


def _select_ids(rows: DataFrame, target: TargetPin, columns: Sequence[str]) -> DataFrame:
    """Distinct pairs of partition and subject id."""
    partition = partition_name(target).alias(_PARTITION)
    each = [rows.select(partition, F.col(quoted(name)).cast("string").alias(_ID)) for name in columns]
    return reduce(DataFrame.unionAll, each).where(F.col(_ID).isNotNull()).distinct()


_conforms: type[Suppressions] = SparkSuppressions
