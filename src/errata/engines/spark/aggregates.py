"""One grouped aggregate over a frame, and one more for uniqueness: how a scan's numbers come about. Reads only.

The number of Spark jobs depends on neither the number of checks nor that of partitions. Partitions without rows are
measured too, by evaluating the same aggregates over no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import content_hashes, hash_sums, partition_text, partition_unit, quoted
from errata.errors import EngineError, SourceChanged, UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.validator.ports import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT, ContentDigest, Measurement, Scan

__all__ = ["ByPartition", "blaming_the_rules", "content_of", "measure_scan"]

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
    for one in measure_scan(scan, rows, ByPartition(pin.column, pin.column_type, pin.grain), partitions):
        by_partition.setdefault(one.partition, {})[one.name] = one.value or "0"
    return {p: ContentDigest(int(v[ROW_COUNT]), v[CONTENT_A], v[CONTENT_B]) for p, v in by_partition.items()}


class ByPartition:
    """How rows fall into partitions: grouped by a cheap value, named by text only once per group."""

    def __init__(self, column: str, column_type: str, grain: Grain) -> None:
        self.unit = partition_unit(column, column_type, grain).alias(_UNIT)
        unit_type = "date" if grain is Grain.DAY and column_type != "string" else column_type
        self.text = partition_text(_UNIT, unit_type, grain).alias(_PARTITION)


def measure_scan(scan: Scan, rows: DataFrame, by: ByPartition, partitions: Sequence[str]) -> list[Measurement]:
    """Every number of the scan, for each of these partitions and for whatever else the rows hold."""
    with blaming_the_rules(scan.scope):
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
    unique: Mapping[str, tuple[str, ...]], rows: DataFrame, by: ByPartition
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


@contextmanager
def blaming_the_rules(scope: str) -> Iterator[None]:
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
