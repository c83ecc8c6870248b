"""Runs a measure plan: one grouped scan per table, one more for uniqueness. Reads only.

The number of Spark jobs depends on the number of tables, not on checks or partitions. Partitions without rows are
measured too, by evaluating the same aggregates over no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import (
    content_hashes,
    hash_sums,
    in_partitions,
    partition_text,
    partition_unit,
    quoted,
)
from errata.engines.spark.diff import compare_snapshots
from errata.engines.spark.inputs import frame, snapshot_frame
from errata.errors import EngineError, SourceChanged, UsageError
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import Grain
from errata.model.table import DataFile
from errata.validator.ports import (
    CANDIDATE,
    CONTENT_A,
    CONTENT_B,
    PRIOR,
    ROW_COUNT,
    ContentDigest,
    Diff,
    Measurement,
    MeasurePlan,
    Measurer,
    Scan,
)

__all__ = ["SparkMeasurer", "content_of"]

_BAD_VALUES = frozenset(
    {"ARITHMETIC_OVERFLOW", "CAST_INVALID_INPUT", "CAST_OVERFLOW", "DIVIDE_BY_ZERO", "NUMERIC_VALUE_OUT_OF_RANGE"}
)
_UNIT, _PARTITION = "__errata_unit", "__errata_partition"


def content_of(
    rows: DataFrame, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
) -> dict[str, ContentDigest]:
    """Row count and checksum of each partition of these rows."""
    scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, content=tuple(columns))
    by_partition: dict[str, dict[str, str]] = {}
    for one in _measured(scan, rows, _Grouping(pin.column, pin.column_type, pin.grain), partitions):
        by_partition.setdefault(one.partition, {})[one.name] = one.value or "0"
    return {p: ContentDigest(int(v[ROW_COUNT]), v[CONTENT_A], v[CONTENT_B]) for p, v in by_partition.items()}


FilesOf = Callable[[TargetPin, str, Sequence[str]], Sequence[DataFile]]
"""The data files of a snapshot of the target in these partitions, with the delete files that apply to them."""


class SparkMeasurer:
    """Measures through a Spark session; ``part`` hands over the bytes of a manifest's part by digest.

    With ``files_of`` a scan that only counts rows is answered from table metadata where that is exact.
    """

    def __init__(self, session: SparkSession, part: Callable[[str], bytes], files_of: FilesOf | None = None) -> None:
        self._session = session
        self._part = part
        self._files_of = files_of

    def measure(
        self, manifest: Manifest, plan: MeasurePlan, *, candidate_snapshot: str, prior_snapshot: str | None
    ) -> tuple[Measurement, ...]:
        """See the port."""
        snapshots = {CANDIDATE: candidate_snapshot, PRIOR: prior_snapshot}
        found: list[Measurement] = []
        for scan in plan.scans:
            if scan.scope not in snapshots:
                rows, column, kind = self._input(manifest, scan.scope.partition(":")[2])
            elif snapshots[scan.scope] is None:
                continue
            elif counted := self._counted(scan, manifest, snapshots[scan.scope] or ""):
                found += counted
                continue
            else:
                rows = self._target(manifest.target, snapshots[scan.scope], manifest.partitions)
                column, kind = manifest.target.column, manifest.target.column_type
            found += _measured(scan, rows, _Grouping(column, kind, manifest.target.grain), manifest.partitions)
        return tuple(found)

    def checksums(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, ContentDigest]:
        """See the port."""
        rows = snapshot_frame(self._session, table, snapshot_id).where(_scope(pin, partitions))
        return content_of(rows, pin, partitions, columns)

    def diff(
        self,
        manifest: Manifest,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        partitions: Sequence[str],
        sample: int,
        measurements: Sequence[Measurement] = (),
    ) -> Diff:
        """See the port."""
        pin = manifest.target
        columns = sorted(set(pin.columns) - set(manifest.lineage_columns))
        before = snapshot_frame(self._session, pin.table, prior_snapshot)
        after = snapshot_frame(self._session, pin.table, candidate_snapshot)
        new = _known_digests(measurements)
        if not set(partitions) <= set(new):
            new = content_of(self._target(pin, candidate_snapshot, partitions), pin, partitions, columns)
        old = {p: ContentDigest(0, "0", "0") for p in partitions}
        if prior_snapshot is not None:
            old = content_of(self._target(pin, prior_snapshot, partitions), pin, partitions, columns)
        cut = _scope(pin, partitions)
        return compare_snapshots(before.where(cut), after.where(cut), pin, columns, partitions, old, new, sample)

    def _counted(self, scan: Scan, manifest: Manifest, snapshot_id: str) -> list[Measurement]:
        """Row counts from metadata; nothing when more is asked for, or when a file is not in one partition whole."""
        if self._files_of is None or set(scan.aggregates) != {ROW_COUNT} or scan.unique or scan.content:
            return []
        rows = dict.fromkeys(manifest.partitions, 0)
        for file in self._files_of(manifest.target, snapshot_id, manifest.partitions):
            if file.partition not in rows or file.deletes:
                return []
            rows[file.partition] += file.rows
        return [Measurement(scan.scope, partition, ROW_COUNT, str(count)) for partition, count in rows.items()]

    def _target(self, pin: TargetPin, snapshot_id: str | None, partitions: Sequence[str]) -> DataFrame:
        rows = snapshot_frame(self._session, pin.table, snapshot_id).where(_scope(pin, partitions))
        # a snapshot is read with its own schema; a column added since is NULL in it, as readers of main see it
        later = {name: F.lit(None) for name in pin.columns if name not in rows.columns}
        return rows.withColumns(later) if later else rows

    def _input(self, manifest: Manifest, name: str) -> tuple[DataFrame, str, str]:
        pin = next(pin for pin in manifest.inputs if pin.name == name)
        kind = pin.column_type or manifest.target.column_type
        parts = {pin.files_part: self._part(pin.files_part)} if pin.files_part else {}
        grain = manifest.target.grain
        return frame(self._session, pin, parts, manifest.partitions, grain, kind), str(pin.partition), kind


_conforms: type[Measurer] = SparkMeasurer


def _scope(pin: TargetPin, partitions: Sequence[str]) -> Column:
    return in_partitions(pin.column, pin.column_type, pin.grain, partitions)


class _Grouping:
    """How rows fall into partitions: grouped by a cheap value, named by text only once per group."""

    def __init__(self, column: str, column_type: str, grain: Grain) -> None:
        self.unit = partition_unit(column, column_type, grain).alias(_UNIT)
        unit_type = "date" if grain is Grain.DAY and column_type != "string" else column_type
        self.text = partition_text(_UNIT, unit_type, grain).alias(_PARTITION)


def _measured(scan: Scan, rows: DataFrame, by: _Grouping, partitions: Sequence[str]) -> list[Measurement]:
    with _blaming_the_rules(scan.scope):
        aggregates = {name: F.expr(text).alias(name) for name, text in scan.aggregates.items()}
        if scan.content:
            first, second = content_hashes(rows, scan.content)
            rows = rows.withColumns({CONTENT_A: first, CONTENT_B: second})
            aggregates |= hash_sums({CONTENT_A: F.col(quoted(CONTENT_A)), CONTENT_B: F.col(quoted(CONTENT_B))})
        grouped = rows.groupBy(by.unit).agg(*aggregates.values())
        named = grouped.select(by.text, *(F.col(quoted(name)) for name in aggregates))
        found = {row[_PARTITION]: row for row in named.collect()}
        missing = [p for p in partitions if p not in found]
        nothing = rows.limit(0).agg(*aggregates.values()).first() if missing else None
    duplicates = _duplicates(scan.unique, rows, by)
    result: list[Measurement] = []
    for partition in (*partitions, *sorted(set(found) - set(partitions))):
        row = found.get(partition, nothing)
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        result += _texts(scan.scope, partition, row, aggregates)
        result += [
            Measurement(scan.scope, partition, name, str(duplicates[key].get(partition, 0)))
            for name, key in scan.unique.items()
        ]
    return result


def _texts(scope: str, partition: str, row: Row, names: Iterable[str]) -> Iterable[Measurement]:
    for name in names:
        value = row[name]
        yield Measurement(scope, partition, name, _text(value), exact=not isinstance(value, float))


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case bool():
            return str(int(value))
        case _:
            return str(value)


def _duplicates(
    unique: Mapping[str, tuple[str, ...]], rows: DataFrame, by: _Grouping
) -> dict[tuple[str, ...], dict[str, int]]:
    """Rows beyond the first of each key, by key and partition; every key in the same scan."""
    keys = sorted(set(unique.values()))
    if not keys:
        return {}
    columns = sorted({name for key in keys for name in key})
    names = {name: f"__errata_key_{n}" for n, name in enumerate(columns)}
    narrow = rows.select(by.unit, *(F.col(quoted(name)).alias(names[name]) for name in columns))
    if len(keys) == 1:
        counted = narrow.groupBy(_UNIT, *names.values()).agg(F.count("*").alias("n"), F.lit(0).alias("gid"))
    else:
        sets = [[F.col(_UNIT), *(F.col(names[name]) for name in key)] for key in keys]
        counted = narrow.groupingSets(sets, F.col(_UNIT), *(F.col(alias) for alias in names.values())).agg(
            F.count("*").alias("n"), F.grouping_id().alias("gid")
        )
    extra = counted.groupBy(_UNIT, "gid").agg(F.sum(F.col("n") - 1).alias("extra")).select(by.text, "gid", "extra")
    result: dict[tuple[str, ...], dict[str, int]] = {key: {} for key in keys}
    by_id = {_grouping_id(key, columns) if len(keys) > 1 else 0: key for key in keys}
    for row in extra.collect():
        result[by_id[row["gid"]]][row[_PARTITION]] = int(row["extra"])
    return result


def _grouping_id(key: Sequence[str], columns: Sequence[str]) -> int:
    """Spark's grouping id: one bit per column, the last column lowest, set when the column is not grouped by."""
    return sum(1 << (len(columns) - 1 - n) for n, name in enumerate(columns) if name not in key)


def _known_digests(measurements: Sequence[Measurement]) -> dict[str, ContentDigest]:
    """What the gate measured of the candidate."""
    values: dict[str, dict[str, str]] = {}
    for one in measurements:
        if one.scope == CANDIDATE:
            values.setdefault(one.partition, {})[one.name] = one.value or "0"
    return {
        partition: ContentDigest(int(named[ROW_COUNT]), named[CONTENT_A], named[CONTENT_B])
        for partition, named in values.items()
        if {ROW_COUNT, CONTENT_A, CONTENT_B} <= set(named)
    }


@contextmanager
def _blaming_the_rules(scope: str) -> Iterator[None]:
    """Turns Spark's refusals into ours: an expression that does not fit, a file that is gone, what may pass."""
    try:
        yield
    except PySparkException as error:
        reason = str(error).strip().partition("\n")[0]
        condition = error.getCondition() or ""
        if condition.startswith("FAILED_READ_FILE"):
            raise SourceChanged(f"{scope} cannot be read: {reason}", state="main is unchanged", scope=scope) from error
        if isinstance(error, AnalysisException) or condition.partition(".")[0] in _BAD_VALUES:
            message = f"a check cannot be measured on {scope}: {reason}"
            raise UsageError(message, hint="errata check", scope=scope) from error
        raise EngineError(f"{scope} cannot be measured: {reason}", scope=scope) from error
