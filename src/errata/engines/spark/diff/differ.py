"""Compare old and new rows in as few jobs as possible: only partitions with differing checksums are compared by row.

If keys repeat, or there is no key, a partition is compared as a multiset of rows. The number of queries does not depend
on the number of partitions and columns: one pairs rows; then, at the same time, one finds medians, one profiles and
one reads samples. Read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.columns import content_hashes
from errata.engines.spark.diff.pairs import BEFORE, PARTITION, SIDE, PairCounts, Pairs
from errata.engines.spark.diff.profile import profile_columns
from errata.engines.spark.diff.values import to_plain_value
from errata.model.diff import (
    BY_KEY,
    BY_ROW,
    KINDS_OF_CHANGE,
    ColumnChange,
    Diff,
    PartitionDiff,
    SampleRow,
    SchemaDiff,
    mask_row,
    order_sample,
    sum_by_column,
)
from errata.model.manifest import Manifest
from errata.model.partition_sql import quoted
from errata.ports.measure import ContentDigest

MEDIAN_VALUES, MEDIAN_ROWS = 100_000, 20_000_000
"""Above these numbers of changed values or compared rows, medians are computed on a sample, chosen by key hash."""


def compare_snapshots(
    before: DataFrame,
    after: DataFrame,
    manifest: Manifest,
    columns: Sequence[str],
    partitions: Sequence[str],
    digests_before: Mapping[str, ContentDigest],
    digests_after: Mapping[str, ContentDigest],
    sample: int,
) -> Diff:
    """The diff of two frames already filtered to the partitions; columns on only one side are left out."""
    pin = manifest.target
    common = [name for name in columns if name in before.columns and name in after.columns]
    hidden = frozenset(manifest.classified) & set(common)
    tolerance = {name: amount for name, amount in manifest.tolerance.items() if name in common}
    pairs = Pairs(before, after, pin, common, tolerance, hidden)
    differing = [p for p in partitions if digests_before[p] != digests_after[p]]
    found = {p: _build_unchanged(p, digests_after[p]) for p in partitions if p not in set(differing)}
    keyed = bool(pin.key) and set(pin.key) <= set(common)
    counted = pairs.count(differing) if keyed and differing else PairCounts({}, (), ())
    by_row = list(counted.repeated if keyed else differing)
    found |= counted.partitions
    if by_row:
        found |= _compare_by_row(pairs, by_row)
    ordered = tuple(found[p] for p in partitions)
    # three queries that need nothing of each other: planning one of them leaves most of a machine idle
    with ThreadPoolExecutor(3) as at_once:
        totals = at_once.submit(_total_columns, pairs, ordered)
        rows = at_once.submit(_SampleReader(pairs).take, ordered, sample)
        profiles = at_once.submit(profile_columns, pairs, differing, _select_profiled(pairs, ordered))
    return Diff(
        schema=_compare_schemas(before, after, columns),
        partitions=ordered,
        columns=totals.result(),
        sample=rows.result(),
        notes=_build_notes(keyed=keyed, by_row=by_row, tolerance=tolerance),
        together=counted.together,
        distributions=profiles.result(),
        masked=tuple(sorted(hidden)),
        tolerance=tolerance,
    )


def _total_columns(pairs: Pairs, found: Sequence[PartitionDiff]) -> dict[str, ColumnChange]:
    totals = sum_by_column(found)
    changed = [part for part in found if part.changed]
    names = [name for name, change in totals.items() if change.changed]
    rows = sum(part.before_rows + part.after_rows for part in changed)
    one_in = max(1, sum(part.changed for part in changed) // MEDIAN_VALUES, rows // MEDIAN_ROWS)
    medians = pairs.compute_medians([part.partition for part in changed], names, one_in)
    return {name: replace(change, median_percent=medians.get(name)) for name, change in totals.items()}


def _build_notes(*, keyed: bool, by_row: Sequence[str], tolerance: Mapping[str, str]) -> tuple[str, ...]:
    notes = []
    if not keyed:
        notes.append("the product has no key; rows are compared whole: a change is one row removed and one added")
    elif by_row:
        notes.append(f"the key is not unique in {', '.join(by_row)}; there, rows are compared whole")
    if by_row and tolerance:
        notes.append("rows that are compared whole are compared exactly, without the tolerance")
    return tuple(notes)


def _select_profiled(pairs: Pairs, found: Sequence[PartitionDiff]) -> list[str]:
    """Columns whose distribution may have changed: changed columns, or all if rows were added or removed."""
    if any(part.added or part.removed for part in found):
        return [name for name in pairs.columns if name != pairs.pin.column]
    changed = {name for part in found for name, change in part.columns.items() if change.changed or change.within}
    return [name for name in pairs.columns if name in changed]


def _build_unchanged(partition: str, digest: ContentDigest) -> PartitionDiff:
    return PartitionDiff(partition, digest.rows, digest.rows, 0, 0, 0, digest.rows, method="same")


def _compare_schemas(before: DataFrame, after: DataFrame, columns: Sequence[str]) -> SchemaDiff:
    old = {f.name: f.dataType.simpleString() for f in before.schema.fields}
    new = {f.name: f.dataType.simpleString() for f in after.schema.fields}
    watched = sorted(set(columns) | (set(old) ^ set(new)))
    return SchemaDiff(
        added={name: new[name] for name in watched if name in new and name not in old},
        removed={name: old[name] for name in watched if name in old and name not in new},
        changed={n: (old[n], new[n]) for n in watched if n in old and n in new and old[n] != new[n]},
    )


def _compare_by_row(pairs: Pairs, partitions: Sequence[str]) -> dict[str, PartitionDiff]:
    """Partitions compared as multisets of rows."""
    counts = (
        _count_identical_rows(pairs, partitions, [])
        .groupBy(PARTITION)
        .agg(
            F.sum("nb").alias("before_rows"),
            F.sum("na").alias("after_rows"),
            F.sum(F.greatest(F.col("na") - F.col("nb"), F.lit(0))).alias("added"),
            F.sum(F.greatest(F.col("nb") - F.col("na"), F.lit(0))).alias("removed"),
            F.sum(F.least(F.col("na"), F.col("nb"))).alias("unchanged"),
        )
    )
    return {
        row[PARTITION]: PartitionDiff(
            row[PARTITION],
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


def _count_identical_rows(pairs: Pairs, partitions: Sequence[str], extra: Sequence[Column]) -> DataFrame:
    # hashes instead of values: 128 bits distinguish rows, and Spark cannot group by maps
    first, second = content_hashes(pairs.after, pairs.columns)
    rows = pairs.union_sides(partitions, [first.alias("ha"), second.alias("hb"), *extra])
    is_before = F.col(SIDE) == BEFORE
    kept = [F.first("row").alias("row")] if extra else []
    counts = [F.count_if(is_before).alias("nb"), F.count_if(~is_before).alias("na")]
    return rows.groupBy(PARTITION, "ha", "hb").agg(*counts, *kept)


@dataclass(frozen=True, slots=True)
class _SampleReader:
    """Reads a sample of differing rows; classified values are masked before a row is returned."""

    pairs: Pairs

    def take(self, found: Sequence[PartitionDiff], wanted: int) -> tuple[SampleRow, ...]:
        """Up to ``wanted`` differing rows from few partitions: one of each kind, then changed ones first.

        A smaller sample is the beginning of a larger one.
        """
        chosen: list[PartitionDiff] = []
        room = wanted
        ordered = sorted(found, key=lambda p: (-p.changed, -(p.added + p.removed)))
        for part in ordered:
            if room <= 0 or not part.touched:
                break
            chosen.append(part)
            room -= part.touched
        by_key = [part.partition for part in chosen if part.method == BY_KEY]
        by_row = [part.partition for part in chosen if part.method == BY_ROW]
        rows = self._read_changed_rows(by_key, wanted) if by_key else []
        rows += self._read_unpaired_rows(by_row, wanted) if by_row else []
        place = {part.partition: n for n, part in enumerate(chosen)}
        rows = sorted(rows, key=lambda row: place[row.partition])
        # a kind of which the rows so far hold none: its first row is the same one in a larger sample
        for kind in KINDS_OF_CHANGE if wanted else ():
            part_of_kind = next((part for part in ordered if getattr(part, kind)), None)
            if part_of_kind and all(row.change != kind for row in rows):
                read = self._read_changed_rows if part_of_kind.method == BY_KEY else self._read_unpaired_rows
                rows += read([part_of_kind.partition], 1, (kind,))
        return order_sample(rows, wanted)

    def _read_changed_rows(
        self, partitions: Sequence[str], limit: int, kinds: Sequence[str] = KINDS_OF_CHANGE
    ) -> list[SampleRow]:
        keys = [f"k{n}" for n in range(len(self.pairs.key))]
        differing = self.pairs.pair_rows(partitions).where(F.col("status").isin(*kinds))
        # changed rows are the most informative, so they come first
        rank = F.when(F.col("status") == "changed", 0).otherwise(1)
        rows = differing.orderBy(_place_of(partitions), rank, *keys).limit(limit).collect()
        return [self._build_sample_row(row) for row in rows]

    def _build_sample_row(self, row: Row) -> SampleRow:
        key = {name: row[f"k{n}"] for n, name in enumerate(self.pairs.key)}
        shown = [
            (n, name) for n, name in enumerate(self.pairs.values) if row["status"] != "changed" or row["word"][n] == "x"
        ]
        before, after = (
            {} if row[side] is None else {name: row[side][f"v{n}"] for n, name in shown} for side in ("b", "a")
        )
        return SampleRow(
            row[PARTITION],
            row["status"],
            self._to_plain_row(key),
            self._to_plain_row(before),
            self._to_plain_row(after),
        )

    def _read_unpaired_rows(
        self, partitions: Sequence[str], limit: int, kinds: Sequence[str] = KINDS_OF_CHANGE
    ) -> list[SampleRow]:
        columns = self.pairs.columns
        row = F.struct(*(F.col(quoted(name)).alias(f"c{n}") for n, name in enumerate(columns))).alias("row")
        kind = F.when(F.col("na") > F.col("nb"), "added").when(F.col("na") < F.col("nb"), "removed")
        odd = _count_identical_rows(self.pairs, partitions, [row]).where(kind.isin(*kinds))
        result = []
        for found in odd.orderBy(_place_of(partitions), "ha", "hb").limit(limit).collect():
            values = self._to_plain_row({name: found["row"][f"c{n}"] for n, name in enumerate(columns)})
            key = {name: values[name] for name in self.pairs.key if name in values}
            rest = {name: value for name, value in values.items() if name not in key}
            change, before, after = ("added", {}, rest) if found["na"] > found["nb"] else ("removed", rest, {})
            result.append(SampleRow(found[PARTITION], change, key, before, after))
        return result

    def _to_plain_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        shown = mask_row(row, self.pairs.masked)
        # PySpark returns instants in this machine's time zone, as naive datetimes
        zoned = [name for name in shown if isinstance(self.pairs.kinds.get(name), T.TimestampType)]
        instants = {name: shown[name].astimezone(UTC) for name in zoned if isinstance(shown[name], datetime)}
        return {name: to_plain_value(value) for name, value in (shown | instants).items()}


def _place_of(partitions: Sequence[str]) -> Column:
    """The place of a row's partition in this order."""
    return F.array_position(F.array(*(F.lit(name) for name in partitions)), F.col(PARTITION))
