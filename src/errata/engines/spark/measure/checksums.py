"""Content checksums as SQL text: two hashes of a row, and their exact sums. Runs no Spark action.

SQL text, because every part of a column built from Python is a call into the JVM: a table of forty columns took
hundreds of calls, a good part of a small gate. A row's hash is evidence that outlives releases and must never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import types as T  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.measure.exact_sums import sum_longs_sql
from errata.model.partition_sql import quoted

_FLAGS_PER_NUMBER = 62
# to_json would round timestamps to milliseconds and leave NULL fields out
_JSON_OPTIONS = (
    r"map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX',"
    r" 'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS')"
)


def row_hash_sql(kinds: Mapping[str, T.DataType], columns: Sequence[str]) -> tuple[str, str]:
    """Two 64-bit hashes of a row over these columns and over which of them are NULL.

    Spark's hashes skip NULL, even inside arrays and structs, so nested values are hashed as JSON text with explicit
    NULLs. The NULL flags of many columns are packed into one number, because hashing each flag costs more.
    """
    parts = [_hash_input_sql(quoted(name), kinds[name]) for name in columns]
    parts += [
        _null_flags(columns[start : start + _FLAGS_PER_NUMBER]) for start in range(0, len(columns), _FLAGS_PER_NUMBER)
    ]
    joined = ", ".join(parts)
    return f"xxhash64('errata/a', {joined})", f"xxhash64('errata/b', {joined})"


def hash_sum_sql(column: str) -> str:
    """The exact sum of a column of 64-bit hashes as decimal(38,0)."""
    return f"coalesce(CAST({sum_longs_sql(quoted(column))} AS DECIMAL(38, 0)), CAST('0' AS DECIMAL(38, 0)))"


def _hash_input_sql(value: str, kind: T.DataType) -> str:
    text = comparable_sql(value, kind)
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        return f"to_json(struct({text} AS v), {_JSON_OPTIONS})"
    return text


def comparable_sql(value: str, kind: T.DataType, depth: int = 0) -> str:
    """The value normalized so that equal values compare equal: one zero, one NaN, maps as entries sorted by key."""
    item = f"x{depth}"
    match kind:
        case T.FloatType() | T.DoubleType():
            plain = f"CASE WHEN isnan({value}) THEN double('NaN') WHEN {value} = 0 THEN 0.0D ELSE {value} END"
            return f"CAST({plain} AS {kind.simpleString()})"
        case T.ArrayType(elementType=element) if _needs_normalizing(element):
            return f"transform({value}, {item} -> {comparable_sql(item, element, depth + 1)})"
        case T.MapType(keyType=key, valueType=held):
            entry = (
                f"struct({comparable_sql(f'{item}.key', key, depth + 1)} AS key,"
                f" {comparable_sql(f'{item}.value', held, depth + 1)} AS value)"
            )
            return f"array_sort(transform(map_entries({value}), {item} -> {entry}))"
        case T.StructType(fields=fields) if _needs_normalizing(kind):
            parts = ", ".join(
                f"{comparable_sql(f'{value}.{quoted(f.name)}', f.dataType, depth)} AS {quoted(f.name)}" for f in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({parts}) END"
        case _:
            return value


def _needs_normalizing(kind: T.DataType) -> bool:
    match kind:
        case T.FloatType() | T.DoubleType() | T.MapType():
            return True
        case T.ArrayType(elementType=element):
            return _needs_normalizing(element)
        case T.StructType(fields=fields):
            return any(_needs_normalizing(field.dataType) for field in fields)
        case _:
            return False


def _null_flags(columns: Sequence[str]) -> str:
    flags = [f"CASE WHEN {quoted(name)} IS NULL THEN {1 << n}L ELSE 0L END" for n, name in enumerate(columns)]
    return " | ".join(flags)
