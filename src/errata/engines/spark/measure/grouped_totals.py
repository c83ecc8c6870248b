"""Grouped totals for reconcile rules: all groupings of a table in one aggregate over grouping sets. Read-only.

Group values are compared as text between tables whose types may differ, so they are normalized: decimals without
trailing zeros, midnight as a date. The result is limited in Spark, so that a key with millions of values ends in an
error instead of exhausting the driver's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.measure.aggregates import (
    PartitionGrouping,
    aggregate_sets,
    compute_grouping_id,
    format_measured,
    translate_spark_errors,
)
from errata.engines.spark.measure.exact_sums import write_exact_sums
from errata.errors import UsageError
from errata.ports.measure import GroupedTotal, Measurement, Scan, group_count_measure, group_measure

MAX_GROUPS = 100_000
"""Maximum number of groups of one rule on one side; a group counts once per partition."""

_SET, _UNIT, _PARTITION = "__errata_set", "__errata_unit", "__errata_partition"
_TIMES = (T.TimestampType, T.TimestampNTZType)
_KEYS = (T.StringType, T.IntegralType, T.DecimalType, T.DateType, T.BooleanType, *_TIMES)


def measure_groups(
    scan: Scan, rows: DataFrame, by: PartitionGrouping | None, partitions: Sequence[str], most: int = MAX_GROUPS
) -> list[Measurement]:
    """All groups of all totals, and the number of groups per partition; ``by`` is None for rows without partitions."""
    with translate_spark_errors(scan.scope):
        table = _GroupedTable(scan, rows, by)
        found = table.collect(most)
    result: list[Measurement] = []
    for n, total in enumerate(scan.groups):
        mine = [row for row in found if row[_SET] == table.number_of(total)]
        if not total.keys:
            row = mine[0] if mine else table.total_no_rows()
            result.append(_build_measurement(scan.scope, "", total.name, row, n))
            continue
        if len(mine) > most:
            raise UsageError(
                f"reconcile {total.rule}: more than {most:,} groups of {scan.scope} were refused; expected something "
                "to group by that has few values, such as a currency or a month",
                hint="group by less, or use per: run",
                scope=scan.scope,
            )
        counts = dict.fromkeys(partitions if total.per_partition else ("",), 0)
        for row in mine:
            place = row[_PARTITION] if total.per_partition else ""
            # rows that a filter excludes form no group; partitions outside the run are reported by the foreign rule
            if place in counts and row[f"rows_{n}"]:
                counts[place] += 1
                values = [table.text(row, key) for key in total.keys]
                result.append(_build_measurement(scan.scope, place, group_measure(total.name, values), row, n))
        result += [
            Measurement(scan.scope, place, group_count_measure(total.rule), str(count))
            for place, count in counts.items()
        ]
    return result


def _build_measurement(scope: str, partition: str, name: str, row: Row, n: int) -> Measurement:
    value = row[f"total_{n}"]
    return Measurement(scope, partition, name, format_measured(value), exact=not isinstance(value, float))


class _GroupedTable:
    """The rows with the grouping keys as additional columns, and the grouping set of each total."""

    def __init__(self, scan: Scan, rows: DataFrame, by: PartitionGrouping | None) -> None:
        self._totals, self._by = scan.groups, by
        keys = dict.fromkeys(key for total in scan.groups for key in total.keys)
        self._names = {key: f"__errata_by_{n}" for n, key in enumerate(keys)}
        self._rows = rows.withColumns({name: F.expr(key) for key, name in self._names.items()})
        if by is not None:
            self._rows = self._rows.withColumn(_UNIT, by.unit)
        kinds = self._row_kinds = {field.name: field.dataType for field in self._rows.schema.fields}
        self._kinds: Mapping[str, T.DataType] = {key: kinds[name] for key, name in self._names.items()}
        for key, kind in self._kinds.items():
            if not isinstance(kind, _KEYS):
                raise UsageError(
                    f"grouping {scan.scope} by {key} was refused; expected text, a whole number, a decimal, a date, a "
                    f"timestamp or true and false; found {kind.simpleString()}",
                    scope=scan.scope,
                )
        self._columns = [*([_UNIT] if by is not None else []), *self._names.values()]

    def number_of(self, total: GroupedTotal) -> int:
        """The grouping id of a total's rows."""
        return compute_grouping_id(self._grouped_by(total), self._columns)

    def collect(self, most: int) -> list[Row]:
        """One row per group of every grouping set; at most one more than allowed, so that an excess is noticed."""
        sets = {self.number_of(total): self._grouped_by(total) for total in self._totals}
        grouped = aggregate_sets(self._rows, sets.values(), self._columns, self._aggregates(), _SET)
        shown = [name for name in self._columns if name in grouped.columns]
        order = [F.col(_SET), *(F.col(name) for name in shown)]
        # sort and limit together keep at most that many rows in memory, and are still one job
        cut = grouped.orderBy(*order).limit(most * len(sets) + 1)
        return cut.select(
            _SET, *self._iterate_texts(shown), *(name for name in grouped.columns if "_errata_" not in name)
        ).collect()

    def total_no_rows(self) -> Row:
        """The totals over no rows."""
        row = self._rows.limit(0).agg(*self._aggregates()).first()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        return row

    def text(self, row: Row, key: str) -> str | None:
        """The value of a grouping key as normalized text."""
        value: str | None = row[self._names[key]]
        if value is None or not isinstance(self._kinds[key], T.DecimalType):
            return value
        with localcontext(prec=100):  # the default would round keys of more than 28 digits
            return format(Decimal(value).normalize(), "f")

    def _grouped_by(self, total: GroupedTotal) -> list[str]:
        unit = [_UNIT] if total.per_partition else []
        return [*unit, *dict.fromkeys(self._names[key] for key in total.keys)]

    def _aggregates(self) -> Iterator[Column]:
        for n, total in enumerate(self._totals):
            yield F.expr(write_exact_sums(total.aggregate, self._row_kinds)).alias(f"total_{n}")
            yield F.expr(total.rows).alias(f"rows_{n}")

    def _iterate_texts(self, shown: Sequence[str]) -> Iterator[Column]:
        if self._by is not None and _UNIT in shown:
            yield self._by.text
        for key, name in self._names.items():
            if name in shown:
                text = F.col(name).cast("string")
                midnight = isinstance(self._kinds[key], _TIMES)
                yield (F.regexp_replace(text, " 00:00:00$", "") if midnight else text).alias(name)
