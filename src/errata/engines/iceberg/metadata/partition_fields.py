"""Find the field of a partition spec that holds a product's partitions, and convert its stored values. Pure.

The field is found by source column and transform, never by position: specs have several fields and evolve. The text of
a coarser grain is a prefix of the finer one (``2026-01`` of ``2026-01-03T05``), so mapping between grains is slicing.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, IcebergType, ListType, MapType, StructType, UUIDType

from errata.errors import UsageError
from errata.model.calendar_math import format_stored_ordinal
from errata.model.partition import NULL, Grain, parse_partition, value_to_text
from errata.ports.tables import Column, PartitionField

_TRANSFORMS = {"hour": Grain.HOUR, "day": Grain.DAY, "month": Grain.MONTH, "year": Grain.YEAR}
_BY_VALUE = ("string", "int", "long")


class SpecField:
    """The field of one spec from which a file's partition is read."""

    __slots__ = ("_is_text", "_known", "position", "stored", "transform", "wanted")

    def __init__(self, position: int, transform: str, stored: Grain, wanted: Grain, *, is_text: bool = False) -> None:
        self.position = position
        self.transform = transform
        self.stored = stored  # grain of the stored values
        self.wanted = wanted  # grain of the product
        self._is_text = is_text  # a string column that holds time partitions as text
        self._known: dict[Any, str | None] = {None: NULL}

    @property
    def is_exact(self) -> bool:
        """Whether a stored value always lies within one partition of the product."""
        return not self.wanted.is_time or self.stored.width >= self.wanted.width

    @property
    def is_number(self) -> bool:
        """Whether stored values are counts since 1970, so that bounds in manifest lists can be compared."""
        return self.wanted.is_time and not self._is_text

    def text(self, value: Any) -> str | None:
        """The partition of a stored value, or the wider interval if not exact; None if the value is neither."""
        try:
            return self._known[value]
        except KeyError:
            return self._known.setdefault(value, self._write(value))

    def _write(self, value: Any) -> str | None:
        if not self.wanted.is_time:
            return value_to_text(str(value))
        if self._is_text:
            return _parse_canonical(self.wanted, str(value))
        text = format_stored_ordinal(self.stored, int(value))
        # cut from the end, because a year may have five digits and a sign
        return text[: len(text) - max(0, self.stored.width - self.wanted.width)]

    def covering_interval(self, partition: str) -> str:
        """The stored interval that a partition of the product lies in."""
        return partition if partition == NULL or self.is_exact else partition[: self.stored.width]


def _parse_canonical(grain: Grain, text: str) -> str | None:
    try:
        return text if parse_partition(grain, text) == text else None
    except UsageError:
        return None


def _stored_grain(transform: str, column_type: str) -> Grain | None:
    if transform in _TRANSFORMS:
        return _TRANSFORMS[transform]
    if transform != "identity":
        return None
    return Grain.DAY if column_type == "date" else Grain.VALUE if column_type in _BY_VALUE else None


def find_spec_field(spec: PartitionSpec, schema: Schema, column: str, grain: Grain) -> SpecField | None:
    """The finest field of a spec that partitions a column by time, or by value; None if there is none."""
    column_id, column_type = _find_column(schema, column)
    found: list[SpecField] = []
    for position, part in enumerate(spec.fields):
        transform = str(part.transform)
        stored = _stored_grain(transform, column_type) if part.source_id == column_id else None
        if stored is Grain.VALUE and grain.is_time and column_type == "string":
            found.append(SpecField(position, transform, grain, grain, is_text=True))
        elif stored is not None and stored.is_time == grain.is_time:
            found.append(SpecField(position, transform, stored, grain))
    return max(found, key=lambda place: place.stored.width if place.stored.is_time else 0, default=None)


def find_partition_field(spec: PartitionSpec, schema: Schema, column: str, grain: Grain) -> PartitionField | None:
    """The field whose partitions are exactly the product's; None if the spec has no such field."""
    place = find_spec_field(spec, schema, column, grain)
    if place is None or place.stored is not grain:
        return None
    part = spec.fields[place.position]
    return PartitionField(column, _find_column(schema, column)[1], str(part.transform), grain)


def list_partition_fields(spec: PartitionSpec, schema: Schema) -> tuple[PartitionField, ...]:
    """The fields of a spec as a product file would declare them."""
    found = []
    for part in spec.fields:
        column = schema.find_column_name(part.source_id) or ""
        kind = _find_column(schema, column)[1]
        found.append(PartitionField(column, kind, str(part.transform), _stored_grain(str(part.transform), kind)))
    return tuple(found)


def list_columns(schema: Schema) -> tuple[Column, ...]:
    """The top-level columns of a schema."""
    return tuple(Column(field.name, str(field.field_type), required=field.required) for field in schema.fields)


def column_types(schema: Schema) -> dict[str, str]:
    """Every column's type as Spark reads it, nested types in full."""
    return {field.name: _to_spark_type(field.field_type) for field in schema.fields}


def _to_spark_type(kind: IcebergType) -> str:
    match kind:
        case StructType():
            return f"struct<{','.join(f'{field.name}:{_to_spark_type(field.field_type)}' for field in kind.fields)}>"
        case ListType():
            return f"array<{_to_spark_type(kind.element_type)}>"
        case MapType():
            return f"map<{_to_spark_type(kind.key_type)},{_to_spark_type(kind.value_type)}>"
        case UUIDType():
            return "string"
        case FixedType():
            return "binary"
        case _:
            return str(kind)


def _find_column(schema: Schema, name: str) -> tuple[int | None, str]:
    try:
        field = schema.find_field(name)
    except ValueError:
        return None, ""
    return field.field_id, str(field.field_type)
