"""Durations as written in project files: ``12h``, ``3d``, ``2w``, ``1mo``, ``1y``. Pure.

Hours, days and weeks are lengths; months and years are calendar steps, so a month is never read as 30 days. ``m`` is
refused rather than guessed: it could mean minutes or months. Waits and intervals are *lengths* with their own grammar
(``30s``, ``5min``, ``8h``, ``2d``), so that a look-back of five minutes stays refused.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

from errata.errors import UsageError
from errata.model.partition import Grain

DURATION = r"\d{1,6}(h|d|w|mo|y)"
"""Grammar of a duration, for schemas."""

LENGTH = r"\d{1,6}(s|min|h|d)"
"""Grammar of a length, for schemas."""


_HOURS = {"h": 1, "d": 24, "w": 168}
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_MONTHS = {"mo": 1, "y": 12}
_GRAIN_HOURS = {Grain.HOUR: 1, Grain.DAY: 24}
_GRAIN_MONTHS = {Grain.MONTH: 1, Grain.YEAR: 12}


def parse_duration(text: str) -> tuple[int, str]:
    """Count and unit of a duration.

    >>> parse_duration("3d")
    (3, 'd')
    """
    found = re.fullmatch(r"(\d{1,6})(h|d|w|mo|y)", text, re.ASCII)
    if not found:
        raise UsageError(f"duration {text!r} was refused; expected a whole number and h, d, w, mo or y, such as 3d")
    return int(found[1]), found[2]


def count_steps(text: str, grain: Grain) -> int:
    """Number of partitions of this grain in a duration; refused if it is not a whole number.

    >>> count_steps("2w", Grain.DAY), count_steps("1d", Grain.HOUR), count_steps("2y", Grain.MONTH)
    (14, 24, 24)
    """
    count, unit = parse_duration(text)
    if count == 0:
        return 0
    lengths, per_step = (_HOURS, _GRAIN_HOURS) if unit in _HOURS else (_MONTHS, _GRAIN_MONTHS)
    if grain not in per_step or (count * lengths[unit]) % per_step[grain]:
        expected = "0d, because partitions by value have no order" if grain is Grain.VALUE else f"whole {grain}s"
        raise UsageError(f"duration {text!r} was refused; expected {expected}")
    return count * lengths[unit] // per_step[grain]


def subtract_duration(text: str, instant: datetime) -> datetime:
    """The instant this long before another; a day past the end of its month becomes the last day.

    >>> from datetime import UTC
    >>> subtract_duration("1mo", datetime(2026, 3, 31, tzinfo=UTC)).date().isoformat()
    '2026-02-28'
    """
    count, unit = parse_duration(text)
    if unit in _HOURS:
        return instant - timedelta(hours=count * _HOURS[unit])
    year, month = divmod(instant.year * 12 + instant.month - 1 - count * _MONTHS[unit], 12)
    day = min(instant.day, calendar.monthrange(year, month + 1)[1])
    return instant.replace(year=year, month=month + 1, day=day)


def to_days(text: str) -> int:
    """A retention period in whole days, rounded up: months count 31 days, years 366.

    >>> to_days("30d"), to_days("36h"), to_days("1mo")
    (30, 2, 31)
    """
    count, unit = parse_duration(text)
    if unit in _HOURS:
        return -(-count * _HOURS[unit] // 24)
    return count * {"mo": 31, "y": 366}[unit]


def to_seconds(text: str) -> int:
    """Seconds of a wait, an interval or a time limit.

    >>> to_seconds("30s"), to_seconds("5min"), to_seconds("8h")
    (30, 300, 28800)
    """
    found = re.fullmatch(r"(\d{1,6})(s|min|h|d)", text, re.ASCII)
    if not found:
        raise UsageError(f"length {text!r} was refused; expected a whole number and s, min, h or d, such as 5min")
    return int(found[1]) * _SECONDS[found[2]]


def parse_instant(text: str) -> datetime:
    """Parse an instant with its zone; a bare date is refused because it could mean the start or the end of the day.

    >>> parse_instant("2026-02-20T18:30+01:00").isoformat()
    '2026-02-20T17:30:00+00:00'
    """
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"time {text!r} was refused; expected an instant with its zone, such as 2026-02-20T18:30Z")
