"""Old against new in as few jobs as possible: only partitions whose checksums differ are compared row by row. Reads.

Rows are paired by one aggregate over both sides, grouped by partition and key, instead of a full outer join: NULL keys
pair, and a key that occurs twice is counted instead of multiplying rows. Where keys repeat, or there is no key, the
partition is compared as a multiset of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.columns import comparable, content_hashes, every, in_partitions, partition_text, quoted
from errata.model.manifest import TargetPin
from errata.validator.ports import (
    ColumnChange,
    ContentDigest,
    Diff,
    PartitionDiff,
    SampleRow,
    SchemaDiff,
    total_by_column,
)

__all__ = ["compare_snapshots"]

_PARTITION, _SIDE = "__errata_partition", "__errata_side"
_BEFORE, _AFTER = 0, 1


def compare_snapshots(
    before: DataFrame,
    after: DataFrame,
    pin: TargetPin,
    columns: Sequence[str],
    partitions: Sequence[str],
    digests_before: Mapping[str, ContentDigest],
    digests_after: Mapping[str, ContentDigest],
    sample: int,
) -> Diff:
    """The diff of two frames that are already cut to the partitions; columns that only one side has are left out."""
    schema = _schema_diff(before, after, columns)
    common = [name for name in columns if name in before.columns and name in after.columns]
    pairs = _Pairs(before, after, pin, common)
    differing = [p for p in partitions if digests_before[p] != digests_after[p]]
    found = {p: _same(p, digests_after[p]) for p in partitions if p not in set(differing)}
    notes: list[str] = []
    keyed = bool(pin.key) and set(pin.key) <= set(common)
    if not keyed:
        notes.append("the product has no key; rows are compared whole: a change is one row removed and one added")
    by_row = list(differing)
    if keyed and differing:
        by_key, by_row = pairs.by_key(differing)
        found |= by_key
        if by_row:
            notes.append(f"the key is not unique in {', '.join(by_row)}; there, rows are compared whole")
    if by_row:
        found |= pairs.by_row(by_row)
    ordered = tuple(found[p] for p in partitions)
    rows = pairs.sample(ordered, sample)
    return Diff(schema, ordered, total_by_column(ordered), rows, tuple(notes))


def _same(partition: str, digest: ContentDigest) -> PartitionDiff:
    return PartitionDiff(partition, digest.rows, digest.rows, 0, 0, 0, digest.rows, method="same")


def _schema_diff(before: DataFrame, after: DataFrame, columns: Sequence[str]) -> SchemaDiff:
    old = {f.name: f.dataType.simpleString() for f in before.schema.fields}
    new = {f.name: f.dataType.simpleString() for f in after.schema.fields}
    watched = sorted(set(columns) | (set(old) ^ set(new)))
    return SchemaDiff(
        added={name: new[name] for name in watched if name in new and name not in old},
        removed={name: old[name] for name in watched if name in old and name not in new},
        changed={n: (old[n], new[n]) for n in watched if n in old and n in new and old[n] != new[n]},
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Both sides of a comparison, under names that cannot clash with the table's."""

    before: DataFrame
    after: DataFrame
    pin: TargetPin
    columns: Sequence[str]

    @property
    def key(self) -> tuple[str, ...]:
        return self.pin.key

    @property
    def values(self) -> list[str]:
        """What can change under a key: the partition's own column cannot."""
        return [name for name in self.columns if name not in self.key]

    def by_key(self, partitions: Sequence[str]) -> tuple[dict[str, PartitionDiff], list[str]]:
        """Partitions compared by key, and those in which a key repeats."""
        paired = self._paired(partitions)
        sums = [self._sums(n, name) for n, name in enumerate(self.values)]
        statuses = ("added", "removed", "changed", "unchanged", "repeated")
        counts = [F.sum("nb").alias("before_rows"), F.sum("na").alias("after_rows")]
        counts += [F.count_if(F.col("status") == status).alias(status) for status in statuses]
        rows = paired.groupBy(_PARTITION).agg(*counts, *(column for group in sums for column in group)).collect()
        repeated = {row[_PARTITION] for row in rows if row["repeated"]}
        compared = {row[_PARTITION]: self._counted(row) for row in rows if row[_PARTITION] not in repeated}
        return compared, [p for p in partitions if p in repeated]

    def by_row(self, partitions: Sequence[str]) -> dict[str, PartitionDiff]:
        """Partitions compared as multisets of rows."""
        rows = self._multiset(partitions, [])
        counts = rows.groupBy(_PARTITION).agg(
            F.sum("nb").alias("before_rows"),
            F.sum("na").alias("after_rows"),
            F.sum(F.greatest(F.col("na") - F.col("nb"), F.lit(0))).alias("added"),
            F.sum(F.greatest(F.col("nb") - F.col("na"), F.lit(0))).alias("removed"),
            F.sum(F.least(F.col("na"), F.col("nb"))).alias("unchanged"),
        )
        return {
            row[_PARTITION]: PartitionDiff(
                row[_PARTITION],
                before_rows=row["before_rows"],
                after_rows=row["after_rows"],
                added=row["added"],
                removed=row["removed"],
                changed=0,
                unchanged=row["unchanged"],
                method="rows",
            )
            for row in counts.collect()
        }

    def sample(self, found: Sequence[PartitionDiff], wanted: int) -> tuple[SampleRow, ...]:
        """Up to ``wanted`` differing rows, from as few partitions as have enough of them, in key order."""
        chosen: dict[str, list[str]] = {"key": [], "rows": []}
        room = wanted
        for part in sorted(found, key=lambda p: (-p.changed, -(p.added + p.removed))):
            differing = part.added + part.removed + part.changed
            if room <= 0 or not differing:
                break
            chosen[part.method].append(part.partition)
            room -= differing
        rows: list[SampleRow] = []
        if chosen["key"]:
            rows += self._changed_rows(chosen["key"], wanted)
        if chosen["rows"] and len(rows) < wanted:
            rows += self._odd_rows(chosen["rows"], wanted - len(rows))
        return tuple(rows)

    def _tagged(self, partitions: Sequence[str], columns: Sequence[Column]) -> DataFrame:
        """Both sides, one under the other, cut to the partitions."""
        pin = self.pin
        cut = in_partitions(pin.column, pin.column_type, pin.grain, partitions)
        text = partition_text(pin.column, pin.column_type, pin.grain).alias(_PARTITION)
        sides = [
            side.where(cut).select(text, F.lit(tag).alias(_SIDE), *columns)
            for side, tag in ((self.before, _BEFORE), (self.after, _AFTER))
        ]
        return sides[0].unionAll(sides[1])

    def _paired(self, partitions: Sequence[str]) -> DataFrame:
        kinds = {field.name: field.dataType for field in self.after.schema.fields}
        keys = [F.col(quoted(name)).alias(f"k{n}") for n, name in enumerate(self.key)]
        values = [comparable(F.col(quoted(name)), kinds[name]).alias(f"v{n}") for n, name in enumerate(self.values)]
        rows = self._tagged(partitions, [*keys, F.struct(F.lit(0).alias("row"), *values).alias("v")])
        is_before = F.col(_SIDE) == _BEFORE
        paired = rows.groupBy(_PARTITION, *(f"k{n}" for n in range(len(keys)))).agg(
            F.count_if(is_before).alias("nb"),
            F.count_if(~is_before).alias("na"),
            F.first(F.when(is_before, F.col("v")), ignorenulls=True).alias("b"),
            F.first(F.when(~is_before, F.col("v")), ignorenulls=True).alias("a"),
        )
        status = (
            F.when((F.col("nb") > 1) | (F.col("na") > 1), "repeated")
            .when(F.col("nb") == 0, "added")
            .when(F.col("na") == 0, "removed")
            .when(every([_equal(n) for n in range(len(values))]), "unchanged")
            .otherwise("changed")
        )
        return paired.withColumn("status", status)

    def _sums(self, n: int, name: str) -> list[Column]:
        kind = next(field.dataType for field in self.after.schema.fields if field.name == name)
        changed = F.count_if((F.col("status") == "changed") & ~_equal(n)).alias(f"changed{n}")
        if not isinstance(kind, T.NumericType):
            return [changed]
        total = "decimal(38,0)" if isinstance(kind, T.IntegralType) else None
        before, after = (c.cast(total) if total else c for c in (F.col(f"b.v{n}"), F.col(f"a.v{n}")))
        return [changed, F.sum(before).alias(f"before{n}"), F.sum(after).alias(f"after{n}")]

    def _counted(self, row: Row) -> PartitionDiff:
        fields = row.asDict()
        columns = {
            name: ColumnChange(
                fields[f"changed{n}"], _number(fields.get(f"before{n}")), _number(fields.get(f"after{n}"))
            )
            if f"before{n}" in fields
            else ColumnChange(fields[f"changed{n}"])
            for n, name in enumerate(self.values)
        }
        return PartitionDiff(
            row[_PARTITION],
            before_rows=row["before_rows"],
            after_rows=row["after_rows"],
            added=row["added"],
            removed=row["removed"],
            changed=row["changed"],
            unchanged=row["unchanged"],
            method="key",
            columns=columns,
        )

    def _changed_rows(self, partitions: Sequence[str], limit: int) -> list[SampleRow]:
        keys = [f"k{n}" for n in range(len(self.key))]
        differing = self._paired(partitions).where(F.col("status").isin("added", "removed", "changed"))
        # changed rows say most, so they come first
        rank = F.when(F.col("status") == "changed", 0).otherwise(1)
        rows = differing.orderBy(rank, _PARTITION, *keys).limit(limit).collect()
        return [self._sample_row(row) for row in rows]

    def _sample_row(self, row: Row) -> SampleRow:
        key = {name: _plain(row[f"k{n}"]) for n, name in enumerate(self.key)}
        before, after = (
            {} if row[side] is None else {name: row[side][f"v{n}"] for n, name in enumerate(self.values)}
            for side in ("b", "a")
        )
        if row["status"] == "changed":
            same = {name for name in before if _same_value(before[name], after[name])}
            before, after = ({n: v for n, v in values.items() if n not in same} for values in (before, after))
        return SampleRow(
            row[_PARTITION],
            row["status"],
            key,
            {name: _plain(value) for name, value in before.items()},
            {name: _plain(value) for name, value in after.items()},
        )

    def _multiset(self, partitions: Sequence[str], extra: Sequence[Column]) -> DataFrame:
        # hashes instead of rows: 128 bits tell rows apart, and maps cannot be grouped by
        first, second = content_hashes(self.after, self.columns)
        rows = self._tagged(partitions, [first.alias("ha"), second.alias("hb"), *extra])
        is_before = F.col(_SIDE) == _BEFORE
        kept = [F.first("row").alias("row")] if extra else []
        counts = [F.count_if(is_before).alias("nb"), F.count_if(~is_before).alias("na")]
        return rows.groupBy(_PARTITION, "ha", "hb").agg(*counts, *kept)

    def _odd_rows(self, partitions: Sequence[str], limit: int) -> list[SampleRow]:
        row = F.struct(*(F.col(quoted(name)).alias(f"c{n}") for n, name in enumerate(self.columns))).alias("row")
        odd = self._multiset(partitions, [row]).where(F.col("na") != F.col("nb"))
        result = []
        for found in odd.orderBy(_PARTITION, "ha", "hb").limit(limit).collect():
            values = {name: _plain(found["row"][f"c{n}"]) for n, name in enumerate(self.columns)}
            key = {name: values[name] for name in self.key if name in values}
            rest = {name: value for name, value in values.items() if name not in key}
            change, before, after = ("added", {}, rest) if found["na"] > found["nb"] else ("removed", rest, {})
            result.append(SampleRow(found[_PARTITION], change, key, before, after))
        return result


def _equal(n: int) -> Column:
    return F.col(f"b.v{n}").eqNullSafe(F.col(f"a.v{n}"))


def _same_value(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)  # NaN


def _number(value: Any) -> str | None:
    if value is None:
        return "0"
    return format(value, "f") if isinstance(value, Decimal) else repr(value) if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """A value as JSON data; numbers that JSON readers may round are text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case bytes() | bytearray():
            return bytes(value).hex()
        case Row():
            return {name: _plain(item) for name, item in value.asDict().items()}
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)
