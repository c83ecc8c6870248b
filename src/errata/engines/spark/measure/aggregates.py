"""Compute a scan's measurements with one grouped aggregate, and one more for uniqueness. Read-only.

The number of Spark jobs depends on neither the number of checks nor the number of partitions. Partitions without rows
are measured too, by evaluating the same aggregates over no rows. All aggregates are passed to Spark as one SQL text,
because each column built from Python is a call into the JVM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import is_its_own_unit, partition_text, partition_unit
from errata.engines.spark.measure.checksums import hash_sum_sql, row_hash_sql
from errata.engines.spark.measure.exact_sums import write_exact_sums
from errata.engines.spark.measure.lookups import KeySource, join_lookups
from errata.engines.spark.runtime.spark_session import override_conf
from errata.errors import EngineError, SourceChanged, UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.model.partition_sql import quoted
from errata.ports.measure import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT, ContentDigest, Measurement, Scan
from errata.text.exceptions import first_line

_DATA_EXCEPTION = "22"  # SQLSTATE class "data exception": a value that an operation cannot process
_SAFE_PARAMETERS = {
    "sourceType": "from {}",
    "targetType": "to {}",
    "precision": "precision {}",
    "scale": "scale {}",
    "functionName": "in {}",
}
"""Spark's message parameters that may be shown: types and functions. The others may contain values of a row."""
_UNIT, _PARTITION, _ALL = "__errata_unit", "__errata_partition", "__errata_all"
_STORED_GROUPING_SETTINGS = (
    "spark.sql.iceberg.planning.preserve-data-grouping",
    "spark.sql.sources.v2.bucketing.enabled",
)
_MIN_ROWS_PER_TASK = 20_000
"""Minimum average rows per partition. Starting a task costs about as much as shuffling 6,000 keys."""


def digest_partitions(
    rows: DataFrame, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
) -> dict[str, ContentDigest]:
    """Row count and checksum of each partition of these rows."""
    scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"}, content=tuple(columns))
    by_partition: dict[str, dict[str, str]] = {}
    for one in measure_scan(scan, rows, PartitionGrouping(pin.column, pin.column_type, pin.grain), partitions):
        by_partition.setdefault(one.partition, {})[one.name] = one.value or "0"
    return {p: ContentDigest(int(v[ROW_COUNT]), v[CONTENT_A], v[CONTENT_B]) for p, v in by_partition.items()}


def find_filled_columns(
    rows: DataFrame, pin: TargetPin, columns: Mapping[str, str | None]
) -> dict[str, tuple[str, ...]]:
    """Partitions in which some of these columns differ from their default, with the names of those columns."""
    by = PartitionGrouping(pin.column, pin.column_type, pin.grain)
    wanted = [
        F.bool_or(
            F.col(quoted(name)).isNotNull()
            if default is None
            else ~F.col(quoted(name)).eqNullSafe(F.lit(default).cast(rows.schema[name].dataType))
        )
        for name, default in columns.items()
    ]
    named = rows.groupBy(by.unit).agg(F.struct(*wanted).alias(_ALL)).select(by.text, _ALL)
    found = {
        row[_PARTITION]: tuple(name for name, holds in zip(columns, row[_ALL], strict=True) if holds)
        for row in named.collect()
    }
    return {name: held for name, held in found.items() if held}


class PartitionGrouping:
    """Groups rows by partition: by a cheap value, with the partition's text computed once per group."""

    def __init__(self, column: str, column_type: str, grain: Grain, stored: Grain | None = None) -> None:
        self.unit = partition_unit(column, column_type, grain, stored).alias(_UNIT)
        self.column = column if is_its_own_unit(column_type, grain, stored) else None
        unit_type = "date" if grain is Grain.DAY and column_type != "string" else column_type
        self.text = partition_text(_UNIT, unit_type, grain).alias(_PARTITION)

    def within(self, key: Sequence[str]) -> tuple[str, ...]:
        """The key columns that can differ between rows of one partition."""
        return tuple(name for name in key if name != self.column)


def measure_scan(
    scan: Scan,
    rows: DataFrame,
    by: PartitionGrouping,
    partitions: Sequence[str],
    inputs: Mapping[str, KeySource] | None = None,
) -> list[Measurement]:
    """All measurements of the scan, for these partitions and for any other partition found in the rows.

    ``inputs`` are the inputs named by the scan's look-ups.
    """
    with translate_spark_errors(scan.scope):
        wide, aggregates = _prepare_scan(scan, rows, inputs or {})
        # one struct of all aggregates; its fields are read by position
        together = F.expr(f"struct({', '.join(aggregates.values())})").alias(_ALL)
        named = wide.groupBy(by.unit).agg(together).select(by.text, _ALL)
        found: dict[str, Any] = {row[_PARTITION]: row[_ALL] for row in named.collect()}
        missing = [p for p in partitions if p not in found]
        if missing:
            nothing = wide.limit(0).agg(together).collect()[0][_ALL]
            found |= dict.fromkeys(missing, nothing)
        counts = [
            group[place] for place, name in enumerate(aggregates) if name == ROW_COUNT for group in found.values()
        ]
        duplicates = _count_duplicates(scan, rows, by, counts)
    result: list[Measurement] = []
    for partition in (*partitions, *sorted(set(found) - set(partitions))):
        for name, value in zip(aggregates, found[partition], strict=True):
            is_exact = not isinstance(value, float) and name not in scan.estimated
            result.append(Measurement(scan.scope, partition, name, format_measured(value), exact=is_exact))
        for name, key in scan.unique.items():
            count = duplicates[by.within(key), True].get(partition, 0)
            result.append(Measurement(scan.scope, partition, name, str(count)))
    for name, key in scan.unique_in_run.items():
        result.append(Measurement(scan.scope, "", name, str(sum(duplicates[key, False].values()))))
    return result


def _prepare_scan(scan: Scan, rows: DataFrame, inputs: Mapping[str, KeySource]) -> tuple[DataFrame, dict[str, str]]:
    """The rows with the additional columns that aggregates need, and the aggregates by name."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    aggregates = {name: write_exact_sums(sql, kinds) for name, sql in scan.aggregates.items()}
    if scan.content:
        first, second = row_hash_sql(kinds, scan.content)
        # before the look-up joins, so that they carry only the hashes
        rows = rows.withColumns({CONTENT_A: F.expr(first), CONTENT_B: F.expr(second)})
        aggregates |= {name: hash_sum_sql(name) for name in (CONTENT_A, CONTENT_B)}
    rows, looked_up = join_lookups(rows, scan.lookups, inputs)
    return rows, aggregates | looked_up


def format_measured(value: Any) -> str | None:
    """A measured value as stored text."""
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


def _count_duplicates(
    scan: Scan, rows: DataFrame, by: PartitionGrouping, counts: Sequence[int]
) -> dict[tuple[tuple[str, ...], bool], dict[str, int]]:
    """Number of duplicate rows by key (within partitions, or over all of them) and partition, in one scan."""
    within = {(by.within(key), True) for key in scan.unique.values()}
    keys = sorted(within | {(key, False) for key in scan.unique_in_run.values()})
    if not keys:
        return {}
    columns = sorted({name for key, _ in keys for name in key})
    names = {_UNIT: _UNIT} | {name: f"__errata_key_{n}" for n, name in enumerate(columns)}
    narrow = rows.select(by.unit, *(F.col(quoted(name)).alias(names[name]) for name in columns))
    sets = [[names[name] for name in ((_UNIT, *key) if inside else key)] for key, inside in keys]
    everything = list(names.values())
    counted = aggregate_sets(narrow, sets, everything, [F.count("*").alias("n")], "gid")
    if _UNIT not in counted.columns:
        counted = counted.withColumn(_UNIT, F.lit(None).cast(narrow.schema[_UNIT].dataType))
    extra = counted.groupBy(_UNIT, "gid").agg(F.sum(F.col("n") - 1).alias("extra")).select(by.text, "gid", "extra")
    by_id = {compute_grouping_id(one, everything): key for one, key in zip(sets, keys, strict=True)}
    result: dict[tuple[tuple[str, ...], bool], dict[str, int]] = {key: {} for key in keys}
    with _keep_stored_grouping(rows.sparkSession, counts if by.column else ()):
        found = extra.collect()
    for row in found:
        result[by_id[row["gid"]]][row[_PARTITION]] = int(row["extra"])
    return result


def _keep_stored_grouping(session: SparkSession, counts: Sequence[int]) -> AbstractContextManager[None]:
    """Read each partition in one task, so that equal keys meet without a shuffle; only if row counts make it pay."""
    wanted = _STORED_GROUPING_SETTINGS if is_worth_own_tasks(counts, session.sparkContext.defaultParallelism) else ()
    return override_conf(session, dict.fromkeys(wanted, "true"))


def is_worth_own_tasks(counts: Sequence[int], cores: int) -> bool:
    """Whether the partitions are even enough to keep all cores busy, and large enough for a task each."""
    total = sum(counts)
    return total > 0 and max(counts) * cores <= total and total >= _MIN_ROWS_PER_TASK * len(counts)


def aggregate_sets(
    rows: DataFrame, sets: Collection[Sequence[str]], columns: Sequence[str], aggregates: Iterable[Column], number: str
) -> DataFrame:
    """The aggregates over every set of columns, in one job; ``number`` is the column with the set's grouping id."""
    if len(sets) == 1:
        (only,) = sets
        return rows.groupBy(*only).agg(*aggregates, F.lit(compute_grouping_id(only, columns)).alias(number))
    grouped = rows.groupingSets([[F.col(name) for name in one] for one in sets], *map(F.col, columns))
    return grouped.agg(*aggregates, F.grouping_id().alias(number))


def compute_grouping_id(key: Collection[str], columns: Sequence[str]) -> int:
    """Spark's grouping id: one bit per column, the last column lowest, set when the column is not grouped by."""
    return sum(1 << (len(columns) - 1 - n) for n, name in enumerate(columns) if name not in key)


@contextmanager
def translate_spark_errors(scope: str) -> Iterator[None]:
    """Translate Spark's errors: a wrong expression or value, an unreadable file, any other failure."""
    try:
        yield
    except PySparkException as error:
        condition = error.getCondition() or ""
        reason = _describe_without_values(error)
        if condition.startswith("FAILED_READ_FILE"):
            raise SourceChanged(f"{scope} cannot be read: {reason}", state="main is unchanged", scope=scope) from error
        about_values = (error.getSqlState() or "").startswith(_DATA_EXCEPTION)
        if isinstance(error, AnalysisException) or about_values:
            message = f"a check cannot be measured on {scope}: {reason}"
            # without the cause, because its traceback would print the value
            raise UsageError(message, hint="errata check", scope=scope) from None if about_values else error
        raise EngineError(f"{scope} cannot be measured: {reason}", scope=scope) from error


def _describe_without_values(error: PySparkException) -> str:
    """Spark's error message without the row values that it quotes, since they may be classified."""
    condition = error.getCondition() or ""
    if isinstance(error, AnalysisException) or condition.startswith("FAILED_READ_FILE"):
        return first_line(error)  # about expressions or files; quotes no row
    if not condition:
        # after these words Spark quotes the task's failure, which may contain values
        said = first_line(error).partition(", most recent failure")[0]
        return said or type(error).__name__
    given = error.getMessageParameters() or {}
    told = [words.format(given[key].strip('"`')) for key, words in _SAFE_PARAMETERS.items() if given.get(key)]
    return f"[{condition}] {' '.join(told)}".rstrip()
