"""Range of partition values in a file, and so the partitions it may hold. Pure.

Values are those of the partition transform: whole numbers since 1970 for time, otherwise the column's value. Text is
compared by its bytes, because that is how file bounds are computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from errata.errors import UsageError
from errata.model.calendar_math import format_stored_ordinal
from errata.model.partition import NULL, Grain, parse_partition, to_ordinal, value_from_text, value_to_text


@dataclass(frozen=True, slots=True)
class Span:
    """Range from the first to the last value, both included; without ``ends`` any value is possible."""

    grain: Grain
    ends: tuple[int, int] | tuple[bytes, bytes] | None = None
    has_null: bool = True  # rows without a value cannot be ruled out

    def filter_possible(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """The partitions whose rows the file may hold.

        >>> Span(Grain.DAY, (0, 2), has_null=False).filter_possible(["1970-01-02", "1970-02-01", "null"])
        ('1970-01-02',)
        """
        return tuple(name for name in partitions if self.may_hold(name))

    def may_hold(self, partition: str) -> bool:
        """Whether rows of this partition cannot be ruled out."""
        if self.ends is None:
            return True
        if partition == NULL:
            return self.has_null
        first, last = self.ends
        if isinstance(first, bytes):
            text = partition if self.grain.is_time else value_from_text(partition) or ""
            return first <= text.encode() <= last  # type: ignore[operator]
        number = to_ordinal(self.grain, partition) if self.grain.is_time else int(partition)
        return first <= number <= last  # type: ignore[operator]

    @property
    def only(self) -> str | None:
        """The only partition that the rows can be in, or None if there may be several."""
        if self.ends is None or self.has_null or self.ends[0] != self.ends[1]:
            return None
        value = self.ends[0]
        if isinstance(value, bytes):
            return _to_canonical(self.grain, value.decode())
        return format_stored_ordinal(self.grain, value) if self.grain.is_time else str(value)


def _to_canonical(grain: Grain, text: str) -> str | None:
    if not grain.is_time:
        return value_to_text(text)
    try:
        return text if parse_partition(grain, text) == text else None
    except UsageError:
        return None


def unit_transform(column_type: str, grain: Grain) -> str | None:
    """The partition transform whose values are a product's partitions; None if the column does not support the grain.

    >>> unit_transform("date", Grain.DAY), unit_transform("timestamp", Grain.HOUR), unit_transform("date", Grain.HOUR)
    ('identity', 'hour', None)
    """
    if column_type == "string":
        return "identity"
    if column_type in ("int", "long"):
        return None if grain.is_time else "identity"
    if column_type == "date":
        return {Grain.DAY: "identity", Grain.MONTH: "month", Grain.YEAR: "year"}.get(grain)
    return str(grain) if column_type in ("timestamp", "timestamptz") and grain.is_time else None
