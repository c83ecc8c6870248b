"""Find partitions that contain rows of erased subjects. Read-only.

Ids are hashed in Python workers, because a key in a SQL expression would be printed in every query plan. Each id of a
partition is hashed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope, partition_name, partition_text
from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.frames import read_screened, read_snapshot
from errata.engines.spark.inputs.prior_rows import read_listed_prior_rows
from errata.engines.spark.inputs.recorded_events import read_listed_events
from errata.engines.spark.inputs.row_rules import ERASED_KIND, OUT
from errata.errors import StateRefused
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest, TargetPin, find_transactions_pin
from errata.model.partition_sql import quote_table, quoted
from errata.model.product.erasure import SUBJECT
from errata.model.product.reconstruction import list_partitions_around
from errata.ports.erasure import ErasedSubjects, Suppressions

_PARTITION, _ID, _HASH = "__errata_partition", "__errata_id", "__errata_hash"


class SparkSuppressions:
    """Looks up the erasure list in tables; ``subjects`` maps each table to the columns that identify data subjects."""

    def __init__(
        self,
        erased: ErasedSubjects,
        subjects: Mapping[str, tuple[str, ...]],
        session: Callable[[], SparkSession],
        access: InputAccess,
        part: Callable[[str], bytes],
    ) -> None:
        self._erased, self._subjects, self._session = erased, subjects, session
        self._access, self._part = access, part

    def watermark(self, table: str) -> str:
        """See the port."""
        return self._erased.watermark() if table in self._subjects else ""

    def held(self, table: str, target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """See the port."""
        if not self._subjects.get(table):
            return ()
        spark = self._session()
        hashed = F.udf(self._erased.hasher(), "string", useArrow=False)
        listed = spark.read.table(quote_table(self._erased.table)).select(F.col(SUBJECT).alias(_HASH))
        found: set[str] = set()
        for snapshot, partitions in snapshots.items():
            rows = read_snapshot(spark, target.table, snapshot, len(partitions))
            scope = in_scope(target, partitions)
            ids = _select_ids(rows.where(scope), target, self._columns(table, rows, snapshot))
            # a masked id is its own hash already
            each = F.explode(F.array(hashed(F.col(_ID)), F.col(_ID))).alias(_HASH)
            hit = ids.select(_PARTITION, each).join(listed, _HASH, "left_semi")
            found |= {row[0] for row in hit.select(_PARTITION).distinct().collect()}
        return tuple(sorted(found))

    def used(self, manifest: Manifest, since: str | None) -> tuple[str, ...]:
        """See the port."""
        if manifest.erasure is None or manifest.erasure.snapshot_id is None:
            return ()
        spark, grain = self._session(), manifest.target.grain
        known = since if since and self._has_snapshot(spark, since) else None
        access = self._access.for_list(manifest.erasure, known)
        found: set[str] = set()
        for pin in manifest.inputs:
            if not pin.subjects or pin.own:
                continue
            rule = rule_of_pin(pin, grain)
            parts = self._load_parts(pin, manifest)
            kind, wanted = pin.column_type or manifest.target.column_type, rule.list_reads(manifest.partitions)
            rows = read_screened(spark, pin, parts, wanted, rule.input_grain, kind, access, manifest.inputs)
            hit = rows.where(F.col(OUT)["kind"] == ERASED_KIND)
            if pin.partition is None:
                found |= set(manifest.partitions if hit.limit(1).count() else ())
                continue
            text = partition_text(pin.partition, kind, rule.input_grain).alias(_PARTITION)
            names = [row[0] for row in hit.select(text).distinct().collect()]
            found |= set(rule.list_touched(names)) & set(manifest.partitions)
        prior = read_listed_prior_rows(spark, manifest, manifest.partitions, access)
        found |= _list_partitions(prior, manifest.target) if prior is not None else set()
        return tuple(sorted(found | self._find_recorded(spark, manifest, access)))

    def _load_parts(self, pin: InputPin, manifest: Manifest) -> Mapping[str, bytes]:
        """The lists of what the input reads; a change log is read together with the ends of its transactions."""
        read = [pin, find_transactions_pin(pin, manifest.inputs)] if pin.log is not None else [pin]
        return {one.files_part: self._part(one.files_part) for one in read if one.files_part}

    def _find_recorded(self, spark: SparkSession, manifest: Manifest, access: InputAccess) -> set[str]:
        """The partitions that recorded events of these subjects are used for, in runs that add missing ones."""
        rows, rules = read_listed_events(spark, manifest, manifest.partitions, access), manifest.reconstruct
        if rows is None or rules is None:
            return set()
        names = _list_partitions(rows, manifest.target)
        return set(list_partitions_around(rules, manifest.target.grain, sorted(names))) & set(manifest.partitions)

    def _has_snapshot(self, spark: SparkSession, snapshot_id: str) -> bool:
        snapshots = spark.read.format("iceberg").load(f"{self._erased.table}.snapshots")
        return snapshots.where(F.col("snapshot_id") == F.lit(int(snapshot_id))).limit(1).count() > 0

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


def _list_partitions(rows: DataFrame, target: TargetPin) -> set[str]:
    return {row[0] for row in rows.select(partition_name(target)).distinct().collect()}


def _select_ids(rows: DataFrame, target: TargetPin, columns: Sequence[str]) -> DataFrame:
    """Distinct pairs of partition and subject id."""
    partition = partition_name(target).alias(_PARTITION)
    each = [rows.select(partition, F.col(quoted(name)).cast("string").alias(_ID)) for name in columns]
    return reduce(DataFrame.unionAll, each).where(F.col(_ID).isNotNull()).distinct()


_conforms: type[Suppressions] = SparkSuppressions
