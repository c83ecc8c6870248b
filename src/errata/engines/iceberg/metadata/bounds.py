"""Partitions that a data file may contain, from the partition column's bounds in its manifest entry. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.conversions import from_bytes
from pyiceberg.types import PrimitiveType

from errata.model.calendar_math import ordinal_at
from errata.model.partition import NULL, Grain
from errata.model.span import Span, unit_transform

if TYPE_CHECKING:
    from pyiceberg.schema import Schema


class ColumnBounds:
    """Locates the rows of files whose partition spec does not give the partition."""

    def __init__(self, schema: Schema, column: str, grain: Grain) -> None:
        self._grain = grain
        self._field: int | None = None
        try:
            field = schema.find_field(column)
        except ValueError:
            return
        kind = field.field_type
        if unit_transform(str(kind), grain) is not None and isinstance(kind, PrimitiveType):
            self._field, self._type = field.field_id, kind

    def span(self, file: Any) -> Span:
        """The range of partition column values in the file; an open span if the bounds are missing."""
        if self._field is None:
            return Span(self._grain)
        low, high = (file.lower_bounds or {}).get(self._field), (file.upper_bounds or {}).get(self._field)
        if low is None or high is None:
            return Span(self._grain)
        nulls = (file.null_value_counts or {}).get(self._field)
        ends = tuple(self._to_comparable(from_bytes(self._type, bound)) for bound in (low, high))
        return Span(self._grain, ends, has_null=nulls != 0)

    def only(self, file: Any) -> str | None:
        """The partition that contains all rows of the file; None if unknown."""
        if self._field is not None:
            nulls = (file.null_value_counts or {}).get(self._field)
            if nulls is not None and nulls == (file.value_counts or {}).get(self._field):
                return NULL
        return self.span(file).only

    def _to_comparable(self, value: Any) -> Any:
        """Times as partition ordinals, computed here because pyiceberg's transforms fail for years after 9999."""
        if isinstance(value, str):
            return value.encode()
        if not self._grain.is_time:
            return value
        return ordinal_at(self._grain, value * 86_400 if str(self._type) == "date" else value // 1_000_000)
