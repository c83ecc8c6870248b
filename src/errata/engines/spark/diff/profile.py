"""Distributions of column values before and after, in one aggregate over both sides (two on Spark 4.0). Read-only.

Minimum, maximum, quantiles and frequent values are values of rows, so they are omitted for classified columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.diff.pairs import AFTER, BEFORE, SIDE, Pairs
from errata.engines.spark.diff.values import to_plain_value
from errata.engines.spark.versions import has_top_k
from errata.model.diff import QUANTILES, Distribution, Profile, TopValue
from errata.model.partition_sql import quoted

MAX_COLUMNS = 100
TOP = 12
_TRACKED = 1024
_EXACT = _TRACKED * 3 // 4  # number of distinct values that a sketch of this size counts exactly
_ACCURACY = 1000


def profile_columns(pairs: Pairs, partitions: Sequence[str], columns: Sequence[str]) -> dict[str, Distribution]:
    """Distributions of these columns over these partitions, on both sides."""
    chosen = list(columns)[:MAX_COLUMNS]
    if not partitions or not chosen:
        return {}
    kinds = {name: _classify_column(pairs.kinds[name]) if name not in pairs.masked else "other" for name in chosen}
    named = [F.col(quoted(name)).alias(f"c{n}") for n, name in enumerate(chosen)]
    rows = pairs.union_sides(partitions, named)
    aggregates = [F.count("*").alias("rows")]
    with_top = has_top_k(rows.sparkSession)
    for n, name in enumerate(chosen):
        aggregates += _build_aggregates(n, kinds[name], with_top=with_top)
    sides = {row[SIDE]: row.asDict() for row in rows.groupBy(SIDE).agg(*aggregates).collect()}
    if not with_top:
        _add_counted_values(
            sides, rows, {n: pairs.kinds[name] for n, name in enumerate(chosen) if kinds[name] == "text"}
        )
    found = {}
    for n, name in enumerate(chosen):
        before, after = (_build_profile(sides.get(side), n, kinds[name]) for side in (BEFORE, AFTER))
        found[name] = _build_distribution(kinds[name], before, after)
    return found


def _classify_column(kind: T.DataType) -> str:
    match kind:
        case T.NumericType():
            return "number"
        case T.DateType() | T.TimestampType() | T.TimestampNTZType():
            return "time"
        case T.StringType() | T.BooleanType():
            return "text"
        case _:
            return "other"


def _build_aggregates(n: int, kind: str, *, with_top: bool) -> list[Column]:
    value = F.col(f"c{n}")
    found = [F.count_if(value.isNull()).alias(f"nulls{n}")]
    if kind in ("number", "time"):
        found += [F.min(value).alias(f"min{n}"), F.max(value).alias(f"max{n}")]
    if kind == "number":
        points = [float(point) for point in QUANTILES]
        found += [F.avg(value).alias(f"mean{n}"), F.percentile_approx(value, points, _ACCURACY).alias(f"points{n}")]
    if kind == "text":
        found.append(F.approx_count_distinct(value).alias(f"distinct{n}"))
        if with_top:
            found.append(F.expr(f"approx_top_k(c{n}, {TOP}, {_TRACKED})").alias(f"top{n}"))
    return found


def _add_counted_values(
    sides: Mapping[str, dict[str, Any]], rows: DataFrame, columns: Mapping[int, T.DataType]
) -> None:
    """Add the frequent values of these columns, counted in one more aggregate, where Spark has no ``approx_top_k``."""
    if not columns:
        return
    values = F.array(*(F.struct(F.lit(n).alias("n"), F.col(f"c{n}").cast("string").alias("item")) for n in columns))
    single = rows.select(SIDE, F.explode(values).alias("value")).select(SIDE, "value.n", "value.item")
    counted = single.where("item IS NOT NULL").groupBy(SIDE, "n", "item").agg(F.count("*").alias("count"))
    frequent = Window.partitionBy(SIDE, "n").orderBy(F.col("count").desc(), "item")
    top = counted.withColumn("place", F.row_number().over(frequent)).where(F.col("place") <= TOP)
    for row in top.orderBy(SIDE, "n", "place").collect():
        item = row["item"] == "true" if isinstance(columns[row["n"]], T.BooleanType) else row["item"]
        sides[row[SIDE]].setdefault(f"top{row['n']}", []).append({"item": item, "count": row["count"]})


def _build_profile(found: Mapping[str, Any] | None, n: int, kind: str) -> Profile:
    if found is None:
        return Profile(0, 0)
    points = found.get(f"points{n}") or ()
    mean = found.get(f"mean{n}")
    return Profile(
        rows=found["rows"],
        nulls=found[f"nulls{n}"],
        minimum=to_plain_value(found.get(f"min{n}")),
        maximum=to_plain_value(found.get(f"max{n}")),
        mean=None if mean is None else str(to_plain_value(mean)),
        quantiles={name: to_plain_value(point) for name, point in zip(QUANTILES, points, strict=False)},
        distinct=found[f"distinct{n}"] if kind == "text" else None,
        top=_list_top_values(found.get(f"top{n}") or ()),
    )


def _list_top_values(found: Sequence[Any]) -> tuple[TopValue, ...]:
    return tuple(TopValue(to_plain_value(one["item"]), one["count"]) for one in found if one["item"] is not None)


def _build_distribution(kind: str, before: Profile, after: Profile) -> Distribution:
    is_exact = all((side.distinct or 0) <= _EXACT for side in (before, after))
    if is_exact:
        return Distribution(kind, before, after)
    return Distribution(kind, replace(before, top=()), replace(after, top=()), exact=False)
