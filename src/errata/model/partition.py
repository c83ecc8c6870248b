"""Partitions: the unit of reading, correction and rollback. Pure.

A partition is text everywhere (manifest, ledger, command line): ``2026-01-03``, ``2026-01-03T05``, ``2026-01``,
``2026``, or the value itself; ``null`` is the partition of rows without a value. Time partitions are UTC and have an
*ordinal* (hours, days, months or years since 1970), which is also how Iceberg stores its transforms.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from errata.errors import UsageError

NULL = "null"
WHOLE = "*"
"""Name for the whole of an input that is not read by partition."""
MAX_SPAN = 1_000_000
"""Most partitions in one range; more is a typo in the year and would fill memory before any limit applies."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DATE = EPOCH.date()
_EPOCH_DAY = EPOCH.toordinal()


class Grain(StrEnum):
    """Width of a partition; ``value`` means the column's own value, without order or spans."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    VALUE = "value"

    @property
    def is_time(self) -> bool:
        """Whether partitions of this grain are intervals of time."""
        return self is not Grain.VALUE

    @property
    def width(self) -> int:
        """Length of the text of a time partition; the text of a coarser grain is the beginning of a finer one."""
        return len(_EXAMPLES[self])


_FORMATS = {Grain.HOUR: "%Y-%m-%dT%H", Grain.DAY: "%Y-%m-%d", Grain.MONTH: "%Y-%m", Grain.YEAR: "%Y"}
_EXAMPLES = {Grain.HOUR: "2026-01-03T05", Grain.DAY: "2026-01-03", Grain.MONTH: "2026-01", Grain.YEAR: "2026"}
FORMS = {Grain.HOUR: "YYYY-MM-DDTHH", Grain.DAY: "YYYY-MM-DD", Grain.MONTH: "YYYY-MM", Grain.YEAR: "YYYY"}
"""How a time partition is written, for a command in which a person has to fill one in."""
_DIGIT = re.compile("[0-9]")


_DAYS = (date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY)
_FIRST = {Grain.HOUR: _DAYS[0] * 24, Grain.DAY: _DAYS[0], Grain.MONTH: -1969 * 12, Grain.YEAR: -1969, Grain.VALUE: 0}
_LAST = {
    Grain.HOUR: _DAYS[1] * 24 + 23,
    Grain.DAY: _DAYS[1],
    Grain.MONTH: 8029 * 12 + 11,
    Grain.YEAR: 8029,
    Grain.VALUE: 0,
}


def parse_partition(grain: Grain, text: str) -> str:
    """Canonical text of one partition; raises a usage error that shows the expected form.

    >>> parse_partition(Grain.DAY, "2026-01-03")
    '2026-01-03'
    """
    if text == NULL:
        return text
    if grain is Grain.VALUE:
        return _parse_value(text)
    try:
        start = datetime.strptime(text, _FORMATS[grain]).replace(tzinfo=UTC)
    except ValueError:
        is_spelt_right = _DIGIT.sub("0", text) == _DIGIT.sub("0", _EXAMPLES[grain])
        told = f"this {grain} does not exist" if is_spelt_right else f"expected a {grain} such as {_EXAMPLES[grain]}"
        raise UsageError(
            f"partition {text!r} was refused; {told}",
            partition=text,
            grain=str(grain),
        ) from None
    return _format_start(grain, start)


def _parse_value(text: str) -> str:
    """Normalize a value to its one accepted spelling: two spellings would be two partitions here, one in the table."""
    if not text:
        raise UsageError("an empty partition value was refused; expected a value, or null for rows without one")
    try:
        value = value_from_text(text)
    except ValueError:
        raise UsageError(
            f"partition {text!r} was refused; a value that begins with a quote is written as JSON text",
            hint=value_to_text(text),
        ) from None
    if value is not None and _UNSTORABLE.search(value):
        raise UsageError(
            f"partition {text!r} was refused; a null character or half of a surrogate pair cannot be stored"
        )
    return value_to_text(value)


def _format_start(grain: Grain, start: datetime) -> str:
    # strftime does not pad years below 1000 on every platform
    return f"{start.year:04d}" + start.strftime(_FORMATS[grain].removeprefix("%Y"))


def start_of(grain: Grain, text: str) -> datetime:
    """First instant of a time partition in canonical text (use :func:`parse_partition` for user input)."""
    if len(text) != len(_EXAMPLES[grain]):
        raise ValueError(f"{text!r} is not a {grain}")
    # slices, because strptime over 43,800 hours would take most of the planning time
    return datetime(int(text[:4]), int(text[5:7] or 1), int(text[8:10] or 1), int(text[11:13] or 0), tzinfo=UTC)


def end_of(grain: Grain, text: str) -> datetime:
    """First instant after a time partition; for the very last one, the last instant that a ``datetime`` can hold."""
    if to_ordinal(grain, text) == _LAST[grain]:
        return datetime.max.replace(tzinfo=UTC)
    return start_of(grain, shift_partition(grain, text, 1))


def next_start(grain: Grain, text: str) -> str:
    """First instant after a time partition as text, because the year after 9999 does not fit a ``datetime``.

    >>> next_start(Grain.HOUR, "2026-01-03T23"), next_start(Grain.DAY, "9999-12-31")
    ('2026-01-04 00:00:00', '10000-01-01 00:00:00')
    """
    if to_ordinal(grain, text) == _LAST[grain]:
        return "10000-01-01 00:00:00"
    return start_of(grain, shift_partition(grain, text, 1)).isoformat(" ")[:19]


def to_ordinal(grain: Grain, text: str) -> int:
    """Hours, days, months or years since 1970-01-01 UTC, as Iceberg counts them.

    >>> to_ordinal(Grain.DAY, "1970-01-02"), to_ordinal(Grain.MONTH, "1971-02"), to_ordinal(Grain.YEAR, "1969")
    (1, 13, -1)
    """
    start = start_of(grain, text)
    match grain:
        case Grain.HOUR:
            return (start.toordinal() - _EPOCH_DAY) * 24 + start.hour
        case Grain.DAY:
            return start.toordinal() - _EPOCH_DAY
        case Grain.MONTH:
            return (start.year - 1970) * 12 + start.month - 1
        case Grain.YEAR:
            return start.year - 1970
        case Grain.VALUE:
            raise UsageError("a partition by value has no place in time")


def is_nameable(grain: Grain, number: int) -> bool:
    """Whether the partition with this ordinal is in the years 0001 to 9999; see :mod:`errata.model.calendar_math`."""
    return _FIRST[grain] <= number <= _LAST[grain]


def from_ordinal(grain: Grain, number: int) -> str:
    """The inverse of :func:`to_ordinal`.

    >>> from_ordinal(Grain.HOUR, 5), from_ordinal(Grain.MONTH, 13)
    ('1970-01-01T05', '1971-02')
    """
    if not is_nameable(grain, number):
        raise UsageError(f"a partition by {grain} outside the years 1 to 9999 was refused; no date can name it")
    match grain:
        case Grain.HOUR:
            return f"{(_EPOCH_DATE + timedelta(days=number // 24)).isoformat()}T{number % 24:02d}"
        case Grain.DAY:
            return (_EPOCH_DATE + timedelta(days=number)).isoformat()
        case Grain.MONTH:
            return f"{1970 + number // 12:04d}-{number % 12 + 1:02d}"
        case Grain.YEAR:
            return f"{1970 + number:04d}"
        case Grain.VALUE:
            raise UsageError("a partition by value has no place in time")


def from_ordinals(grain: Grain, numbers: Iterable[int]) -> frozenset[str]:
    """Partitions with these ordinals, without those outside the years 0001 to 9999."""
    return frozenset(from_ordinal(grain, n) for n in numbers if is_nameable(grain, n))


def expand_range(grain: Grain, start: str, end: str) -> tuple[str, ...]:
    """Every partition of the half-open range ``[start, end)``, oldest first.

    >>> expand_range(Grain.DAY, "2026-01-30", "2026-02-02")
    ('2026-01-30', '2026-01-31', '2026-02-01')
    """
    if not grain.is_time:
        raise UsageError("a range was refused; partitions by value have no order: list them with --partitions")
    first, last = _parse_ordinal(grain, start), _parse_ordinal(grain, end)
    if last <= first:
        raise UsageError(f"the range {start} … {end} is empty; expected --to after --from (half-open)")
    return _list_range(grain, first, last)


def _parse_ordinal(grain: Grain, text: str) -> int:
    if text == NULL:
        raise UsageError("a range from or to null was refused; rows without a value have no place in time")
    return to_ordinal(grain, parse_partition(grain, text))


def _list_range(grain: Grain, first: int, last: int) -> tuple[str, ...]:
    if last - first > MAX_SPAN:
        raise UsageError(
            f"a range of {last - first:,} {grain}s was refused; expected at most {MAX_SPAN:,}",
            state="nothing was changed",
        )
    return tuple(from_ordinal(grain, n) for n in range(first, last))


def parse_list(grain: Grain, text: str) -> tuple[str, ...]:
    """Parse a list of values and inclusive spans: ``2026-01-03,2026-01-10..2026-01-14``; oldest first, no repeats.

    A value that contains a comma or has surrounding spaces is written as JSON text.

    >>> parse_list(Grain.VALUE, 'EU, "a, b"')
    ('EU', 'a, b')
    """
    found: list[str] = []
    for item in filter(None, split_items(text)):
        first, dots, last = item.partition("..")
        if dots and grain.is_time:
            start, end = _parse_ordinal(grain, first), _parse_ordinal(grain, last)
            if end < start:
                raise UsageError(f"the span {item} is empty; expected the older end first, both included")
            found.extend(_list_range(grain, start, end + 1))
        else:
            found.append(parse_partition(grain, item))
    if not found:
        raise UsageError("an empty partition list was refused; expected at least one partition")
    return sort_oldest_first(grain, set(found))


def split_items(text: str) -> Iterator[str]:
    """The items of a list as written, without the spaces around them."""
    rest = text.strip()
    while rest:
        end = rest.find(",")
        if rest.startswith('"'):
            try:
                end = json.JSONDecoder().raw_decode(rest)[1]
            except ValueError:
                pass  # reported when the item is parsed
            if rest[end:].lstrip()[:1] not in ("", ","):
                end = rest.find(",")
        item, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
        yield item.strip()
        rest = rest.lstrip().removeprefix(",").lstrip()


def sort_oldest_first(_grain: Grain, partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions in time order (values in text order), NULL first."""
    # canonical texts of one grain have fixed widths, so they sort in time order
    return tuple(sorted(partitions, key=lambda text: (text != NULL, text)))


def sort_newest_first(grain: Grain, partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions newest first, NULL last."""
    return sort_oldest_first(grain, partitions)[::-1]


def fold_ranges(grain: Grain, partitions: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Fold neighbouring partitions into inclusive (first, last) pairs, oldest first.

    >>> fold_ranges(Grain.DAY, ["2026-01-01", "2026-01-02", "2026-01-05"])
    (('2026-01-01', '2026-01-02'), ('2026-01-05', '2026-01-05'))
    """
    ordered = sort_oldest_first(grain, partitions)
    if not ordered:
        return ()
    if not grain.is_time:
        return tuple((text, text) for text in ordered)
    # NULL sorts first and has no neighbours
    numbers = [None if text == NULL else to_ordinal(grain, text) for text in ordered]
    breaks = [n for n, (a, b) in enumerate(pairwise(numbers), 1) if a is None or b != a + 1]
    edges = [0, *breaks, len(ordered)]
    return tuple((ordered[a], ordered[b - 1]) for a, b in pairwise(edges))


def format_ranges(grain: Grain, partitions: Iterable[str], most: int | None = None) -> str:
    """Format folded ranges: ``2026-01-01 … 2026-01-02, 2026-01-05``; after ``most`` of them only their number.

    >>> format_ranges(Grain.VALUE, ["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    ranges = fold_ranges(grain, partitions)
    shown = ranges if most is None or len(ranges) <= most else ranges[:most]
    more = f" and {len(ranges) - len(shown):,} more" if len(shown) < len(ranges) else ""
    return ", ".join(a if a == b else f"{a} … {b}" for a, b in shown) + more


def format_partition_list(grain: Grain, partitions: Iterable[str]) -> str:
    """Format folded ranges for ``--partitions``: ``2026-01-01..2026-01-02,2026-01-05``; a single shell word.

    >>> print(format_partition_list(Grain.VALUE, ["EU", "a, b", "$(id)"]))
    '$(id),EU,"a, b"'
    """
    items = (a if a == b else f"{a}..{b}" for a, b in fold_ranges(grain, partitions))
    # quoted for the shell, because values come from a table and people copy this command
    return shlex.quote(",".join(json.dumps(one) if "," in one or one != one.strip() else one for one in items))


def value_to_text(value: str | None) -> str:
    """Text of a partition by value; a string that would read as NULL is quoted.

    >>> value_to_text("EU"), value_to_text(None), value_to_text("null")
    ('EU', 'null', '"null"')
    """
    if value is None:
        return NULL
    return json.dumps(value) if value in ("", NULL) or value.startswith('"') else value


def value_from_text(text: str) -> str | None:
    """The inverse of :func:`value_to_text`."""
    if text == NULL:
        return None
    return str(json.loads(text)) if text.startswith('"') else text


def shift_partition(grain: Grain, text: str, by: int) -> str:
    """The partition ``by`` steps later (earlier when negative)."""
    return from_ordinal(grain, to_ordinal(grain, text) + by)


_STEP = {Grain.HOUR: 7 * 24, Grain.DAY: 7, Grain.MONTH: 12}


def list_comparable(grain: Grain, partition: str, reach: int) -> tuple[str, ...]:
    """Partitions up to ``reach`` weeks (months: years) before and after, oldest first, whether or not they exist.

    >>> list_comparable(Grain.DAY, "2026-01-15", 1)
    ('2026-01-08', '2026-01-22')
    """
    step = _STEP.get(grain)
    if step is None or partition == NULL:
        return ()
    here = to_ordinal(grain, partition)
    found = []
    for n in range(-reach, reach + 1):
        try:
            found += [from_ordinal(grain, here + n * step)] if n else []
        except UsageError:
            continue  # outside the years that a date can have
    return tuple(found)


def name_partition(value: Any, grain: Grain, stored: Grain | None = None) -> str:
    """The partition that a row with this value belongs to; ``stored`` is the grain of a text, if that is finer.

    >>> name_partition(datetime(2026, 1, 3, 5, 7), Grain.HOUR), name_partition(None, Grain.DAY)
    ('2026-01-03T05', 'null')
    """
    if value is None:
        return NULL
    if not grain.is_time:
        return value_to_text(str(value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, str):
        return value if stored in (None, grain) else value[: grain.width]
    return str(value.isoformat())[: grain.width]
