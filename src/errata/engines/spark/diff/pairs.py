"""Pair the rows of both sides by key, and count changes by partition, column and pattern. Read-only.

One aggregate over both sides, grouped by partition and key, replaces a full outer join: NULL keys pair, and a repeated
key is counted instead of multiplying rows. The changes in a row are a word with one letter per column; counting words
by partition first keeps every later step small, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.columns import in_scope, partition_name
from errata.engines.spark.diff.values import format_sum
from errata.engines.spark.measure.checksums import comparable_sql
from errata.model.diff import ChangePattern, ColumnChange, PartitionDiff
from errata.model.manifest import TargetPin
from errata.model.partition_sql import quoted

PARTITION, SIDE = "__errata_partition", "__errata_side"
BEFORE, AFTER = 0, 1
STATUSES = ("added", "removed", "changed", "unchanged", "repeated")
MAX_PATTERNS = 50


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Result of pairing: partitions compared by key, partitions with repeated keys, and patterns over the scope."""

    partitions: Mapping[str, PartitionDiff]
    repeated: tuple[str, ...]
    together: tuple[ChangePattern, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Both sides of a comparison, with column names that cannot clash with the table's."""

    before: DataFrame
    after: DataFrame
    pin: TargetPin
    columns: Sequence[str]
    tolerance: Mapping[str, str] = field(default_factory=dict)
    masked: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which rows are paired."""
        return self.pin.key

    @property
    def values(self) -> list[str]:
        """The columns compared for each key: all but the key."""
        return [name for name in self.columns if name not in self.key]

    @property
    def kinds(self) -> dict[str, T.DataType]:
        """Column types of the candidate."""
        return {field.name: field.dataType for field in self.after.schema.fields}

    def union_sides(self, partitions: Sequence[str], columns: Sequence[Column]) -> DataFrame:
        """The union of both sides, filtered to the partitions."""
        pin = self.pin
        cut = in_scope(pin, partitions)
        text = partition_name(pin).alias(PARTITION)
        sides = [
            side.where(cut).select(text, F.lit(tag).alias(SIDE), *columns)
            for side, tag in ((self.before, BEFORE), (self.after, AFTER))
        ]
        return sides[0].unionAll(sides[1])

    def pair_rows(self, partitions: Sequence[str], one_in: int = 1) -> DataFrame:
        """One row per key: ``b`` and ``a`` with values ``v0…``, a status, and the word of changes.

        Only one in ``one_in`` keys is used, chosen by its hash.
        """
        kinds = self.kinds
        keys = [F.col(quoted(name)).alias(f"k{n}") for n, name in enumerate(self.key)]
        values = [
            F.expr(comparable_sql(quoted(name), kinds[name])).alias(f"v{n}") for n, name in enumerate(self.values)
        ]
        rows = self.union_sides(partitions, [*keys, F.struct(F.lit(0).alias("row"), *values).alias("v")])
        if one_in > 1:
            rows = rows.where(F.pmod(F.xxhash64(*(F.col(f"k{n}") for n in range(len(keys)))), F.lit(one_in)) == 0)
        is_before = F.col(SIDE) == BEFORE
        group = [PARTITION, *(f"k{n}" for n in range(len(keys)))]
        # repartition explicitly: Spark would also sort and aggregate before the shuffle, but few keys occur twice there
        paired = (
            rows.repartition(*group)
            .groupBy(*group)
            .agg(
                F.count_if(is_before).alias("nb"),
                F.count_if(~is_before).alias("na"),
                F.first(F.when(is_before, F.col("v")), ignorenulls=True).alias("b"),
                F.first(F.when(~is_before, F.col("v")), ignorenulls=True).alias("a"),
            )
        )
        letters = [self._build_letter(n, name) for n, name in enumerate(self.values)]
        status = (
            F.when((F.col("nb") > 1) | (F.col("na") > 1), "repeated")
            .when(F.col("nb") == 0, "added")
            .when(F.col("na") == 0, "removed")
            .when(F.contains(F.col("word"), F.lit("x")), "changed")
            .otherwise("unchanged")
        )
        return paired.withColumn("word", F.concat(*letters) if letters else F.lit("")).withColumn("status", status)

    def count(self, partitions: Sequence[str]) -> PairCounts:
        """Count by partition, column and pattern in one query, which returns one row per partition and a few more."""
        words = self._count_words(partitions)
        sets = [[F.col(PARTITION)], [F.col("word")]]
        grouping = F.grouping_id().alias("gid")
        totals = [F.sum(F.when(~F.col("broken"), F.col("rows"))).alias("together")]
        totals += [F.sum(name).alias(name) for name in ("nb", "na")]
        totals += [F.sum(F.when(F.col("status") == one, F.col("rows"))).alias(one) for one in STATUSES]
        moved_within = (F.col("status") == "unchanged") & F.contains(F.col("word"), F.lit("~"))
        totals.append(F.sum(F.when(moved_within, F.col("rows"))).alias("within"))
        for n, name in enumerate(self.values):
            letter = F.substring("word", n + 1, 1)
            totals.append(F.sum(F.when(_is_changed() & (letter == "x"), F.col("rows"))).alias(f"changed{n}"))
            totals.append(F.sum(F.when(letter == "~", F.col("rows"))).alias(f"within{n}"))
            if self._is_summed(name):
                totals += [F.sum(f"{side}{n}").alias(f"{side}{n}") for side in ("before", "after")]
        grouped = words.groupingSets(sets, F.col(PARTITION), F.col("word")).agg(grouping, *totals)
        rank = F.when(F.col("gid") == 1, 0).otherwise(1)
        of_changes = (F.col("gid") != 2) | F.contains(F.col("word"), F.lit("x"))
        ordered = grouped.where(of_changes).orderBy(rank, F.col("together").desc(), "word")
        return self._counted(ordered.limit(len(partitions) + MAX_PATTERNS).collect(), partitions)

    def compute_medians(self, partitions: Sequence[str], names: Sequence[str], one_in: int) -> dict[str, str]:
        """Median change, in percent, of the changed values of these columns; for ``one_in`` see :meth:`pair_rows`."""
        wanted = [name for name in names if self._is_summed(name)]
        if not wanted or not partitions:
            return {}
        narrow = replace(self, columns=[*self.key, *wanted])
        paired = narrow.pair_rows(partitions, one_in).where(_is_changed())
        aggregates = [F.percentile_approx(_compute_percent(n), 0.5).alias(f"m{n}") for n in range(len(wanted))]
        found = paired.agg(*aggregates).collect()[0].asDict()
        known = {name: found[f"m{n}"] for n, name in enumerate(narrow.values)}
        return {name: _format_percent(percent) for name, percent in known.items() if percent is not None}

    def _count_words(self, partitions: Sequence[str]) -> DataFrame:
        """Row counts and sums by partition, status and word."""
        aggregates = [F.count("*").alias("rows"), F.sum("nb").alias("nb"), F.sum("na").alias("na")]
        for n, name in enumerate(self.values):
            if self._is_summed(name):
                aggregates += self._build_sums(n, name)
        words = self.pair_rows(partitions).groupBy(PARTITION, "status", "word").agg(*aggregates)
        # a partition with a repeated key is compared as whole rows, so its pairs are not counted
        is_broken = F.max(F.col("status") == "repeated").over(Window.partitionBy(PARTITION))
        return words.withColumn("broken", is_broken)

    def _build_letter(self, n: int, name: str) -> Column:
        """The letter of one column: ``=`` equal, ``~`` within tolerance, ``x`` changed, ``-`` not on both sides."""
        old, new = F.col(f"b.v{n}"), F.col(f"a.v{n}")
        letter = F.when((F.col("nb") != 1) | (F.col("na") != 1), "-").when(old.eqNullSafe(new), "=")
        if name in self.tolerance:
            letter = letter.when(_is_within_tolerance(old, new, self.tolerance[name], self.kinds[name]), "~")
        return letter.otherwise("x")

    def _is_summed(self, name: str) -> bool:
        return isinstance(self.kinds[name], T.NumericType) and name not in self.masked

    def _build_sums(self, n: int, name: str) -> list[Column]:
        old, new = F.col(f"b.v{n}"), F.col(f"a.v{n}")
        exact = [c.cast("decimal(38,0)") if isinstance(self.kinds[name], T.IntegralType) else c for c in (old, new)]
        return [F.sum(exact[0]).alias(f"before{n}"), F.sum(exact[1]).alias(f"after{n}")]

    def _counted(self, rows: Sequence[Row], partitions: Sequence[str]) -> PairCounts:
        parts = {row[PARTITION]: row for row in rows if row["gid"] == 1}
        repeated = tuple(p for p in partitions if p in parts and parts[p]["repeated"])
        return PairCounts(
            {name: self._partition(row) for name, row in parts.items() if name not in repeated},
            repeated,
            tuple(self._build_pattern(row) for row in rows if row["gid"] == 2 and row["together"]),
        )

    def _build_pattern(self, row: Row) -> ChangePattern:
        letters = zip(self.values, row["word"], strict=True)
        return ChangePattern(tuple(name for name, letter in letters if letter == "x"), row["together"])

    def _partition(self, row: Row) -> PartitionDiff:
        found = row.asDict()
        columns = {
            name: ColumnChange(
                found[f"changed{n}"] or 0,
                format_sum(found[f"before{n}"]) if f"before{n}" in found else None,
                format_sum(found[f"after{n}"]) if f"after{n}" in found else None,
                found[f"within{n}"] or 0,
            )
            for n, name in enumerate(self.values)
        }
        return PartitionDiff(
            row[PARTITION],
            before_rows=row["nb"],
            after_rows=row["na"],
            added=row["added"] or 0,
            removed=row["removed"] or 0,
            changed=row["changed"] or 0,
            unchanged=row["unchanged"] or 0,
            method="key",
            columns=columns,
            within=row["within"] or 0,
        )


def _compute_percent(n: int) -> Column:
    """Change of a value in percent; NULL if it did not change or was zero."""
    was, now = F.col(f"b.v{n}").cast("double"), F.col(f"a.v{n}").cast("double")
    moved = (F.substring("word", n + 1, 1) == "x") & (was != 0)
    return F.when(moved, (now - was) * 100 / F.abs(F.nullif(was, F.lit(0.0))))


def _format_percent(percent: float) -> str:
    return format(Decimal(repr(percent)).quantize(Decimal("0.01")), "f") if isfinite(percent) else repr(percent)


def _is_changed() -> Column:
    return F.col("status") == "changed"


def _is_within_tolerance(old: Column, new: Column, amount: str, kind: T.DataType) -> Column:
    """Whether a number changed by at most its tolerance; NULL and NaN are within tolerance of no number."""
    limit = Decimal(amount.rstrip("%"))
    if amount.endswith("%"):
        was, now = old.cast("double"), new.cast("double")
        near = F.abs(now - was) * 100 <= F.abs(was) * float(limit)
    elif isinstance(kind, T.DecimalType):
        near = F.abs(F.try_subtract(new, old)) <= F.lit(limit)
    else:
        near = F.abs(new.cast("double") - old.cast("double")) <= float(limit)
    return F.coalesce(near, F.lit(False))  # noqa: FBT003 - a literal is a value
