"""Columns, types and row counts of Parquet files, from their footers alone: a few KB per file.

Types are named as Spark reads them. A type that Spark cannot read (nanoseconds, times of day) keeps pyarrow's name,
which matches no declared type, so the plan refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from errata.text.exceptions import first_line

_SIMPLE = {
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "uint64": "decimal(20, 0)",
    "float": "float",
    "halffloat": "float",
    "double": "double",
    "date32[day]": "date",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
}


@dataclass(frozen=True, slots=True)
class Footer:
    """Columns and row count of one file; ``problem`` if its footer cannot be read."""

    columns: Mapping[str, str]
    rows: int
    problem: str | None = None


def read_footers(open_file: Callable[[str], Any], paths: Sequence[str], at_once: int) -> list[Footer]:
    """Read footers concurrently, in the order of the paths; an unreadable file gets a footer with ``problem`` set."""
    known: list[tuple[Any, Mapping[str, str]]] = []

    def columns_of(schema: Any) -> Mapping[str, str]:
        # thousands of files share a handful of schemas, and comparing two is 100 times cheaper than converting one
        for seen, columns in known:
            if seen.equals(schema):
                return columns
        found = to_columns(schema)
        known.append((schema, found))
        return found

    def read(path: str) -> Footer:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with open_file(path) as file:
                metadata = parquet.read_metadata(file)
        except (OSError, pa.ArrowException) as problem:
            return Footer({}, 0, first_line(problem))
        return Footer(columns_of(metadata.schema), metadata.num_rows)

    with ThreadPoolExecutor(min(at_once, len(paths) or 1), "errata-footers") as pool:
        return list(pool.map(read, paths))


def to_columns(leaves: Any) -> dict[str, str]:
    """Columns of a footer, with the names of types that Spark has."""
    legacy = {leaves.column(n).path for n in range(len(leaves)) if leaves.column(n).physical_type == "INT96"}
    # INT96 timestamps: pyarrow does not mark them as instants, but Spark reads them as such
    return {
        field.name: "timestamptz" if field.name in legacy else _to_spark_type(field.type)
        for field in leaves.to_arrow_schema()
    }


def _to_spark_type(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _to_spark_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return str(kind) if kind.unit == "ns" else "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_to_spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{_to_spark_type(kind.key_type)},{_to_spark_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_to_spark_type(kind.value_type)}>"
    return _SIMPLE.get(str(kind), str(kind))
