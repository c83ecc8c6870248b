"""How far an incremental job has read, and where it has to start again. Pure.

A watermark is the last partition that was read: a date, a time, or the name of a partition as text. A job reads what is
later than its watermark.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from errata.errors import UsageError
from errata.model.partition import NULL, Grain, parse_partition, shift_partition, sort_oldest_first, start_of


class WatermarkType(StrEnum):
    """Types of columns that a watermark can have."""

    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TEXT = "text"


_INSTANT = timedelta(microseconds=1)


def find_start_before(grain: Grain, partitions: Collection[str], kind: WatermarkType) -> str:
    """The watermark with which a job reads these partitions next, as text; all others before them are left out.

    >>> find_start_before(Grain.DAY, ["2026-01-04", "2026-01-03"], WatermarkType.DATE)
    '2026-01-02'
    >>> find_start_before(Grain.MONTH, ["2026-03"], WatermarkType.DATE)
    '2026-02-28'
    >>> find_start_before(Grain.DAY, ["2026-01-03"], WatermarkType.TIMESTAMP)
    '2026-01-02 23:59:59.999999'
    >>> find_start_before(Grain.HOUR, ["2026-01-03T00"], WatermarkType.TEXT)
    '2026-01-02T23'
    """
    named = [name for name in partitions if name != NULL]
    if not grain.is_time:
        raise UsageError("a watermark was not moved; partitions by value have no order", hint="rerun: a command")
    if not named:
        raise UsageError("a watermark was not moved; rows without a value have no place in time")
    earliest = sort_oldest_first(grain, named)[0]
    start = start_of(grain, earliest)
    match kind:
        case WatermarkType.DATE:
            return (start.date() - timedelta(days=1)).isoformat()
        case WatermarkType.TIMESTAMP:
            return (start.replace(tzinfo=None) - _INSTANT).isoformat(" ")
        case WatermarkType.TIMESTAMPTZ:
            return (start - _INSTANT).isoformat(" ")
        case WatermarkType.TEXT:
            return shift_partition(grain, earliest, -1)


def choose_earlier(grain: Grain, kind: WatermarkType, found: str | None, start: str) -> str | None:
    """The watermark to set: never later than the one that was found. None: the job has read nothing.

    >>> choose_earlier(Grain.DAY, WatermarkType.DATE, "2026-01-20", "2026-01-02")
    '2026-01-02'
    >>> choose_earlier(Grain.DAY, WatermarkType.DATE, "2026-01-01", "2026-01-02")
    '2026-01-01'
    """
    if found is None or not is_earlier(grain, kind, start, found):
        return found
    return start


def is_earlier(grain: Grain, kind: WatermarkType, one: str, other: str) -> bool:
    """Whether the first watermark is earlier than the second.

    >>> is_earlier(Grain.DAY, WatermarkType.TEXT, "2026-01-03", "20260104")
    Traceback (most recent call last):
    errata.errors.UsageError: partition '20260104' was refused; expected a day such as 2026-01-03
    """
    match kind:
        case WatermarkType.DATE:
            return date.fromisoformat(one) < date.fromisoformat(other)
        case WatermarkType.TIMESTAMP | WatermarkType.TIMESTAMPTZ:
            return datetime.fromisoformat(one) < datetime.fromisoformat(other)
        case WatermarkType.TEXT:
            # canonical names of one grain sort in time order; anything else has to be refused
            return parse_partition(grain, one) < parse_partition(grain, other)


def has_read(grain: Grain, kind: WatermarkType, value: str | None, partitions: Collection[str]) -> bool:
    """Whether a job with this watermark has read these partitions; those without a place in time are left out.

    >>> has_read(Grain.DAY, WatermarkType.DATE, "2026-01-04", ["2026-01-03", "2026-01-04"])
    True
    >>> has_read(Grain.DAY, WatermarkType.TIMESTAMP, "2026-01-03 23:59:59", ["2026-01-04"])
    False
    """
    named = [name for name in partitions if name != NULL]
    if not named:
        return True
    if value is None:
        return False
    last = sort_oldest_first(grain, named)[-1]
    if kind is WatermarkType.TEXT:
        return parse_partition(grain, value) >= last
    start = start_of(grain, last)
    if kind is WatermarkType.DATE:
        return date.fromisoformat(value) >= start.date()
    reached = datetime.fromisoformat(value)
    return (reached if reached.tzinfo else reached.replace(tzinfo=UTC)) >= start
