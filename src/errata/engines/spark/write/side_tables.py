"""Write the rows of side tables: corrections by key, their reversals, and versions side by side.

Everything is appended to a staging branch that readers do not see. Values are JSON of the row without its key and
lineage; decimals are text, so that every digit is kept. A key that occurs twice cannot be paired: its old rows are
reported as removed and its new rows as added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.iceberg.commits.refs import retry_commit
from errata.engines.iceberg.commits.side_tables import ROWS_PROPERTY
from errata.engines.spark.columns import JSON_OPTIONS, in_partitions, in_scope, partition_name
from errata.engines.spark.inputs.frames import read_partitions, read_snapshot
from errata.engines.spark.measure.checksums import comparable_sql
from errata.engines.spark.runtime.spark_session import SparkRuntime
from errata.engines.spark.write.append import SparkWriter
from errata.model.manifest import TargetPin
from errata.model.partition import Grain, value_to_text
from errata.model.partition_sql import quote_table, quoted
from errata.model.side_tables import ADDED, CHANGED, CORRECTION_COLUMNS, REMOVED, RUN, VERSION
from errata.ports.publish import EarlierCorrections, SideTableWriter, Stamp

ORDER = "__errata_order"
_EVENT = "struct<kind:string,old:string,new:string>"
_EARLIER = "struct<order:int,json:string>"


class SparkSideTables:
    """Writes rows of side tables."""

    def __init__(self, runtime: SparkRuntime, writer: SparkWriter) -> None:
        self._runtime = runtime
        self._writer = writer

    @property
    def _session(self) -> SparkSession:
        return self._runtime.session

    def create(self, statements: Sequence[str]) -> None:
        """See the port. The statements are those shown in the plan."""
        for statement in statements:
            self._repeat(statement)

    def corrections(
        self,
        place: tuple[str, str],
        target: TargetPin,
        before: tuple[str, str | None],
        after: tuple[str, str],
        partitions: Sequence[str],
        columns: Sequence[str],
        stamp: Stamp,
        told: EarlierCorrections | None = None,
    ) -> None:
        """See the port."""
        old, new = (
            read_partitions(self._session, target, snapshot, partitions, table) for table, snapshot in (before, after)
        )
        held = self._read_earlier(place[0], told) if told else None
        self._append(build_corrections(old, new, target, columns, stamp, held), place)

    def _read_earlier(self, table: str, told: EarlierCorrections) -> DataFrame:
        """Earlier corrections of these partitions, numbered in publication order."""
        number = F.array_position(F.array(*map(F.lit, told.publications)), F.col("publication_id")).cast("int")
        rows = self._session.read.table(quote_table(table)).where(_build_partition_filter(told.partitions))
        return rows.withColumn(ORDER, number).where(F.col(ORDER) > 0)

    def reversals(
        self, place: tuple[str, str], key: Sequence[str], publications: Mapping[str, Sequence[str]], stamp: Stamp
    ) -> None:
        """See the port."""
        told = self._session.read.table(quote_table(place[0]))
        wanted = [
            (F.col("publication_id") == F.lit(name)) & _build_partition_filter(partitions)
            for name, partitions in publications.items()
        ]
        self._append(build_reversals(told.where(reduce(lambda a, b: a | b, wanted)), key, stamp), place)

    def versions(
        self, place: tuple[str, str], target: TargetPin, snapshot_id: str, numbers: Mapping[str, int], run_id: str
    ) -> None:
        """See the port."""
        rows = read_snapshot(self._session, target.staging.table, snapshot_id, len(numbers))
        by_number: dict[int, list[str]] = {}
        for partition, number in numbers.items():
            by_number.setdefault(number, []).append(partition)
        parts = [
            rows.where(in_scope(target, names)).withColumns({RUN: F.lit(run_id), VERSION: F.lit(number)})
            for number, names in sorted(by_number.items())
        ]
        self._append(reduce(DataFrame.unionAll, parts), place)

    def _append(self, rows: DataFrame, place: tuple[str, str]) -> None:
        table, branch = place
        self._writer.append(rows, table, branch, (ROWS_PROPERTY, branch))

    def newest_versions(self, table: str, target: TargetPin, partitions: Sequence[str]) -> Mapping[str, int]:
        """See the port."""
        rows = self._session.read.table(quote_table(table))
        cut = in_scope(target, partitions)
        name = partition_name(target).alias("name")
        found = rows.where(cut).groupBy(name).agg(F.max(VERSION).alias("version")).collect()
        return {row["name"]: row["version"] for row in found}

    def show(self, view: str, query: str) -> None:
        """See the port."""
        self._repeat(f"CREATE OR REPLACE VIEW {quote_table(view)} AS {query}")

    def drop_view(self, view: str) -> None:
        """See the port."""
        self._repeat(f"DROP VIEW IF EXISTS {quote_table(view)}")

    def _repeat(self, statement: str) -> None:
        """Run an idempotent statement, with retries until the catalog answers clearly."""
        retry_commit(lambda: self._session.sql(statement))


def _build_partition_filter(partitions: Sequence[str]) -> Column:
    """A filter for corrections of these partitions; in that table a partition is always text, even ``null``."""
    return in_partitions("partition", "string", Grain.VALUE, map(value_to_text, partitions))


def build_corrections(
    before: DataFrame,
    after: DataFrame,
    pin: TargetPin,
    columns: Sequence[str],
    stamp: Stamp,
    told: DataFrame | None = None,
) -> DataFrame:
    """One correction for each key whose values differ in ``columns``.

    ``told`` are earlier corrections, each with its number (:data:`ORDER`): the last ones for a key are its old values.
    """
    kinds = {field.name: field.dataType for field in after.schema.fields}
    values = [name for name in columns if name not in pin.key]
    shown = [F.expr(_decimals_as_text(quoted(name), kinds[name])).alias(name) for name in values]
    as_json = F.to_json(F.struct(*shown), JSON_OPTIONS) if values else F.lit("{}")
    equal = [F.expr(comparable_sql(quoted(name), kinds[name])).alias(f"v{n}") for n, name in enumerate(values)]
    row = F.struct(as_json.alias("json"), F.struct(F.lit(0).alias("row"), *equal).alias("equal"))
    text = partition_name(pin).alias("__errata_partition")
    keys = [F.col(quoted(name)).alias(f"__errata_k{n}") for n, name in enumerate(pin.key)]
    untold = F.lit(None).cast(_EARLIER).alias("__errata_told")
    sides = [
        side.select(text, *keys, F.lit(tag).alias("__errata_side"), row.alias("__errata_row"), untold)
        for side, tag in ((before, 0), (after, 1))
    ]
    if told is not None:
        nothing = F.lit(None).cast(sides[0].schema["__errata_row"].dataType).alias("__errata_row")
        said = F.struct(F.col(ORDER).alias("order"), F.col("new").alias("json")).cast(_EARLIER).alias("__errata_told")
        place = F.col("partition").alias("__errata_partition")
        sides.append(told.select(place, *keys, F.lit(2).alias("__errata_side"), nothing, said))
    group = ["__errata_partition", *(f"__errata_k{n}" for n in range(len(keys)))]
    paired = (
        reduce(DataFrame.unionAll, sides)
        .groupBy(*group)
        .agg(
            _collect_side(0).alias("__errata_b"),
            _collect_side(1).alias("__errata_a"),
            F.collect_list("__errata_told").alias("__errata_t"),
        )
    )
    found = _build_events(F.col("__errata_b"), F.col("__errata_a"), F.col("__errata_t"))
    event = F.explode(found).alias("__errata_event")
    named = [F.col(f"__errata_k{n}").alias(name) for n, name in enumerate(pin.key)]
    events = {name: F.col("__errata_event")[name] for name in ("kind", "old", "new")}
    rows = paired.select(F.col("__errata_partition").alias("partition"), *named, event).withColumns(events)
    return _add_stamp(rows, pin.key, stamp)


def _decimals_as_text(value: str, kind: T.DataType, depth: int = 0) -> str:
    """SQL that converts every decimal in a value to text, because most JSON readers parse numbers as floating point."""
    item = f"x{depth}"
    match kind:
        case T.DecimalType():
            return f"CAST({value} AS STRING)"
        case T.ArrayType(elementType=element) if _has_decimals(element):
            return f"transform({value}, {item} -> {_decimals_as_text(item, element, depth + 1)})"
        case T.MapType(valueType=held) if _has_decimals(held):
            return f"transform_values({value}, (k{depth}, {item}) -> {_decimals_as_text(item, held, depth + 1)})"
        case T.StructType(fields=fields) if _has_decimals(kind):
            parts = [
                f"{_decimals_as_text(f'{value}.{quoted(f.name)}', f.dataType, depth)} AS {quoted(f.name)}"
                for f in fields
            ]
            return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(parts)}) END"
        case _:
            return value


def _has_decimals(kind: T.DataType) -> bool:
    match kind:
        case T.ArrayType(elementType=held) | T.MapType(valueType=held):
            return _has_decimals(held)
        case T.StructType(fields=fields):
            return any(_has_decimals(field.dataType) for field in fields)
        case _:
            return isinstance(kind, T.DecimalType)


def _collect_side(side: int) -> Column:
    return F.array_sort(F.collect_list(F.when(F.col("__errata_side") == side, F.col("__errata_row"))))


def _build_events(old: Column, new: Column, told: Column) -> Column:
    """The corrections of one key: from its old rows, or the last earlier corrections, to its new rows."""

    def one(kind: str, before: Column | None, after: Column | None) -> Column:
        sides = [F.lit(None).cast("string") if side is None else side for side in (before, after)]
        return F.struct(F.lit(kind).alias("kind"), sides[0].alias("old"), sides[1].alias("new")).cast(_EVENT)

    last = F.array_max(F.transform(told, lambda x: x["order"]))
    left = F.filter(told, lambda x: (x["order"] == last) & x["json"].isNotNull())
    is_told, after = F.size(told) > 0, F.transform(new, lambda x: x["json"])
    # earlier corrections are stored as text, so they are compared as text
    before = F.when(is_told, F.array_sort(F.transform(left, lambda x: x["json"]))).otherwise(
        F.transform(old, lambda x: x["json"])
    )
    equal = F.transform(old, lambda x: x["equal"]).eqNullSafe(F.transform(new, lambda x: x["equal"]))
    same = F.when(is_told, before.eqNullSafe(F.array_sort(after))).otherwise(equal)
    pair = (F.size(before) == 1) & (F.size(after) == 1)
    changed = F.array(one(CHANGED, F.get(before, F.lit(0)), F.get(after, F.lit(0))))
    removed = F.transform(before, lambda x: one(REMOVED, x, None))
    added = F.transform(after, lambda x: one(ADDED, None, x))
    nothing = F.array().cast(f"array<{_EVENT}>")
    return F.when(same, nothing).when(pair, changed).otherwise(F.concat(removed, added))


def build_reversals(told: DataFrame, key: Sequence[str], stamp: Stamp) -> DataFrame:
    """The reverse of corrections: additions become removals and vice versa, and old and new values are swapped."""
    kind = F.col("kind")
    back = F.when(kind == ADDED, F.lit(REMOVED)).when(kind == REMOVED, F.lit(ADDED)).otherwise(kind)
    columns = [F.col(quoted(name)) for name in key]
    rows = told.select(
        "partition", *columns, back.alias("kind"), F.col("new").alias("old"), F.col("old").alias("new")
    )  # fmt: skip
    return _add_stamp(rows, key, stamp)


def _add_stamp(rows: DataFrame, key: Sequence[str], stamp: Stamp) -> DataFrame:
    origin = {
        "reason": F.lit(stamp.reason),
        "run_id": F.lit(stamp.run_id),
        "publication_id": F.lit(stamp.publication_id),
        "at": F.lit(stamp.at).cast("timestamp"),
    }
    columns = [F.col(quoted(name)) for name in (*key, *CORRECTION_COLUMNS)]
    return rows.withColumns(origin).select(*columns).sortWithinPartitions("partition", *map(quoted, key))


_conforms: type[SideTableWriter] = SparkSideTables
