"""Time partitions in any year: ordinals, seconds and text beyond the range of ``datetime``. Pure.

A table can hold years that no Python date can represent, typically because milliseconds were read as seconds.
Partitions outside the years 0001 to 9999 have a text (``+57970-05-31``) so that they can be reported, but they cannot
be selected.
"""

from __future__ import annotations

from datetime import date, timedelta

from errata.model.partition import Grain, from_ordinal, is_nameable

_EPOCH = date(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The calendar repeats after this many years, which have this many days."""


def format_stored_ordinal(grain: Grain, number: int) -> str:
    """Text of any ordinal that a table can hold, as Spark writes it outside the years 0001 to 9999.

    >>> format_stored_ordinal(Grain.DAY, 20454000), format_stored_ordinal(Grain.MONTH, -1970 * 12)
    ('+57971-02-25', '0000-01')
    """
    if is_nameable(grain, number):
        return from_ordinal(grain, number)
    cycles, day = divmod(first_second(grain, number) // 86_400, _CYCLE_DAYS)
    known = from_ordinal(Grain.DAY, day)
    year = int(known[:4]) + cycles * _CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    hour = f"T{number % 24:02d}" if grain is Grain.HOUR else ""
    return f"{sign}{abs(year):04d}{(known[4:] + hour)[: grain.width - 4]}"


def is_unnameable(grain: Grain, text: str) -> bool:
    """Whether this is the text of a time partition outside the years 0001 to 9999."""
    return grain.is_time and text.startswith(("+", "-", "0000"))


def first_second(grain: Grain, number: int) -> int:
    """Seconds since 1970-01-01 UTC at the start of the partition with this ordinal, in any year.

    >>> first_second(Grain.MONTH, 1), first_second(Grain.YEAR, 8030)
    (2678400, 253402300800)
    """
    if grain is Grain.HOUR:
        return number * 3600
    if grain is Grain.DAY:
        return number * 86_400
    years, month = (number, 0) if grain is Grain.YEAR else divmod(number, 12)
    cycles, year = divmod(years, _CYCLE_YEARS)
    return (date(1970 + year, month + 1, 1).toordinal() - _EPOCH.toordinal() + cycles * _CYCLE_DAYS) * 86_400


def ordinal_at(grain: Grain, second: int) -> int:
    """Ordinal of the partition that contains this second since 1970-01-01 UTC, in any year.

    >>> ordinal_at(Grain.HOUR, -1), ordinal_at(Grain.MONTH, 2678400), ordinal_at(Grain.YEAR, 253402300800)
    (-1, 1, 8030)
    """
    if grain is Grain.HOUR:
        return second // 3600
    if grain is Grain.DAY:
        return second // 86_400
    cycles, day = divmod(second // 86_400, _CYCLE_DAYS)
    found = _EPOCH + timedelta(days=day)
    years = found.year - 1970 + cycles * _CYCLE_YEARS
    return years if grain is Grain.YEAR else years * 12 + found.month - 1
