"""Look up keys in an input: one left join with its distinct keys, as part of the grouped scan. Read-only.

The rows are not read a second time. A key that contains a NULL refers to nothing and is not looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.columns import all_of
from errata.errors import UsageError
from errata.model.partition_sql import quoted
from errata.ports.measure import Lookup

_FAMILIES: tuple[tuple[type[T.DataType], ...], ...] = (
    (T.NumericType,),
    (T.DateType, T.TimestampType, T.TimestampNTZType),
    (T.StringType,),
    (T.BooleanType,),
    (T.BinaryType,),
)


SNAPSHOT = "__errata_snapshot"
"""Column of an input with the snapshot that its rows come from, where partitions read different ones."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Rows of an input in which keys are looked up; ``read_at`` is the snapshot in which a row finds its keys."""

    rows: DataFrame
    read_at: Column | None = None


def join_lookups(
    rows: DataFrame, lookups: Mapping[str, Lookup], inputs: Mapping[str, KeySource]
) -> tuple[DataFrame, dict[str, str]]:
    """The rows with a mark where the key was found, and the aggregates that count rows without a match."""
    counts: dict[str, str] = {}
    marks: dict[Lookup, str] = {}
    for name, lookup in lookups.items():
        if lookup not in marks:
            marks[lookup] = f"__errata_found_{len(marks)}"
            rows = _join_lookup(rows, lookup, inputs[lookup.input], marks[lookup])
        present = [f"{quoted(column)} IS NOT NULL" for column in lookup.columns]
        counts[name] = f"COUNT_IF({' AND '.join([*present, f'{marks[lookup]} IS NULL'])})"
    return rows, counts


def _join_lookup(rows: DataFrame, lookup: Lookup, source: KeySource, mark: str) -> DataFrame:
    held = source.rows
    _refuse_types(rows, held, lookup)
    names = {key: f"{mark}_{n}" for n, key in enumerate(lookup.keys)}
    at = {SNAPSHOT: f"{mark}_at"} if source.read_at is not None else {}
    known = [f"{quoted(key)} IS NOT NULL" for key in lookup.keys]
    keys = held.where(" AND ".join(known)).selectExpr(
        *(f"{quoted(key)} AS {name}" for key, name in {**names, **at}.items())
    )
    keys = keys.distinct().withColumn(mark, F.lit(True))  # noqa: FBT003 - a literal is a value
    same = [F.col(quoted(column)) == F.col(name) for column, name in zip(lookup.columns, names.values(), strict=True)]
    same += [source.read_at == F.col(at[SNAPSHOT])] if source.read_at is not None else []
    return rows.join(keys, on=all_of(same), how="left")


def _refuse_types(rows: DataFrame, held: DataFrame, lookup: Lookup) -> None:
    """Refuse keys of different type families: comparing text with numbers would fail on the first non-numeric text."""
    ours = {field.name: field.dataType for field in rows.schema.fields}
    theirs = {field.name: field.dataType for field in held.schema.fields}
    for column, key in zip(lookup.columns, lookup.keys, strict=True):
        if key not in theirs:
            raise UsageError(
                f"a look-up in {lookup.input} was refused; expected one of its columns, found {key}",
                hint=f"columns are: {', '.join(theirs)}",
            )
        if not any(isinstance(ours[column], kinds) and isinstance(theirs[key], kinds) for kinds in _FAMILIES):
            raise UsageError(
                f"a look-up in {lookup.input} was refused; expected {key} in a type that compares with {column}, "
                f"{ours[column].simpleString()}, found {theirs[key].simpleString()}"
            )
