"""Partitions: the unit readers know, and the unit of correction and of rollback. Pure.

A partition is written as text everywhere (manifest, ledger, command line): ``2026-01-03``, ``2026-01-03T05``,
``2026-01``, ``2026``, or the value itself; ``null`` is the partition of rows without a value. Time partitions are UTC
and have an *ordinal* (hours, days, months or years since 1970), which is also how Iceberg stores its transforms.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from errata.errors import UsageError

NULL = "null"
WHOLE = "*"
"""Stands for all of an input that is read whole."""
MAX_SPAN = 1_000_000
"""Partitions of one range; more is a slip of the year, and would fill the memory before any limit is looked at."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DATE = EPOCH.date()
_EPOCH_DAY = EPOCH.toordinal()


class Grain(StrEnum):
    """How wide a partition is; ``value`` means the column's own value, without order or spans."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    VALUE = "value"

    @property
    def is_time(self) -> bool:
        """Whether partitions of this grain are intervals of time."""
        return self is not Grain.VALUE


_FORMATS = {Grain.HOUR: "%Y-%m-%dT%H", Grain.DAY: "%Y-%m-%d", Grain.MONTH: "%Y-%m", Grain.YEAR: "%Y"}
_EXAMPLES = {Grain.HOUR: "2026-01-03T05", Grain.DAY: "2026-01-03", Grain.MONTH: "2026-01", Grain.YEAR: "2026"}


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
    """The canonical text of one partition, or a usage error that says how one is written.

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
        raise UsageError(
            f"partition {text!r} was refused; expected a {grain} such as {_EXAMPLES[grain]}",
            partition=text,
            grain=str(grain),
        ) from None
    return _format_start(grain, start)


def _parse_value(text: str) -> str:
    """One spelling for one value: two would be two partitions here and one in the table."""
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
        raise UsageError(f"partition {text!r} was refused; no table or ledger keeps a null character or half a pair")
    return value_to_text(value)


def _format_start(grain: Grain, start: datetime) -> str:
    # strftime does not pad years below 1000 on every platform
    return f"{start.year:04d}" + start.strftime(_FORMATS[grain].removeprefix("%Y"))


def start_of(grain: Grain, text: str) -> datetime:
    """The first instant of a time partition in canonical text (:func:`parse_partition` is for what people type)."""
    if len(text) != len(_EXAMPLES[grain]):
        raise ValueError(f"{text!r} is not a {grain}")
    # slices, because strptime on every one of 43,800 hours is most of a plan
    return datetime(int(text[:4]), int(text[5:7] or 1), int(text[8:10] or 1), int(text[11:13] or 0), tzinfo=UTC)


def end_of(grain: Grain, text: str) -> datetime:
    """The first instant after a time partition; of the very last one the last instant that a ``datetime`` can hold."""
    if to_ordinal(grain, text) == _LAST[grain]:
        return datetime.max.replace(tzinfo=UTC)
    return start_of(grain, shift_partition(grain, text, 1))


def next_start(grain: Grain, text: str) -> str:
    """The first instant after a time partition as text: after 9999 comes a year that a ``datetime`` cannot hold.

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
    """The partitions with these ordinals; those outside the years 0001 to 9999 are left out."""
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
    """A list of values and inclusive spans: ``2026-01-03,2026-01-10..2026-01-14``; oldest first, no repeats.

    A value with a comma in it, or with spaces around it, is written as JSON text.

    >>> parse_list(Grain.VALUE, 'EU, "a, b"')
    ('EU', 'a, b')
    """
    found: list[str] = []
    for item in filter(None, _split_items(text)):
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


def _split_items(text: str) -> Iterator[str]:
    rest = text.strip()
    while rest:
        end = rest.find(",")
        if rest.startswith('"'):
            try:
                end = json.JSONDecoder().raw_decode(rest)[1]
            except ValueError:
                pass  # told by whoever reads the item
            if rest[end:].lstrip()[:1] not in ("", ","):
                end = rest.find(",")
        item, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
        yield item.strip()
        rest = rest.lstrip().removeprefix(",").lstrip()


def sort_oldest_first(_grain: Grain, partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions in time order (values in text order), NULL first."""
    # canonical texts of one grain have fixed widths, so they sort as time does
    return tuple(sorted(partitions, key=lambda text: (text != NULL, text)))


def sort_newest_first(grain: Grain, partitions: Iterable[str]) -> tuple[str, ...]:
    """Partitions newest first, NULL last."""
    return sort_oldest_first(grain, partitions)[::-1]


def fold_ranges(grain: Grain, partitions: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Runs of neighbouring partitions as inclusive (first, last) pairs, oldest first.

    >>> fold_ranges(Grain.DAY, ["2026-01-01", "2026-01-02", "2026-01-05"])
    (('2026-01-01', '2026-01-02'), ('2026-01-05', '2026-01-05'))
    """
    ordered = sort_oldest_first(grain, partitions)
    if not ordered:
        return ()
    if not grain.is_time:
        return tuple((text, text) for text in ordered)
    # NULL sorts first and is nobody's neighbour
    numbers = [None if text == NULL else to_ordinal(grain, text) for text in ordered]
    breaks = [n for n, (a, b) in enumerate(pairwise(numbers), 1) if a is None or b != a + 1]
    edges = [0, *breaks, len(ordered)]
    return tuple((ordered[a], ordered[b - 1]) for a, b in pairwise(edges))


def format_ranges(grain: Grain, partitions: Iterable[str], most: int | None = None) -> str:
    """Folded ranges for people: ``2026-01-01 … 2026-01-02, 2026-01-05``; after ``most`` of them, how many more.

    >>> format_ranges(Grain.VALUE, ["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    ranges = fold_ranges(grain, partitions)
    shown = ranges if most is None or len(ranges) <= most else ranges[:most]
    more = f" and {len(ranges) - len(shown):,} more" if len(shown) < len(ranges) else ""
    return ", ".join(a if a == b else f"{a} … {b}" for a, b in shown) + more


def format_partition_list(grain: Grain, partitions: Iterable[str]) -> str:
    """Folded ranges as ``--partitions`` takes them: ``2026-01-01..2026-01-02,2026-01-05``; one word for a shell.

    >>> print(format_partition_list(Grain.VALUE, ["EU", "a, b", "$(id)"]))
    '$(id),EU,"a, b"'
    """
    items = (a if a == b else f"{a}..{b}" for a, b in fold_ranges(grain, partitions))
    # a value comes from a table, and people copy what they are told to type
    return shlex.quote(",".join(json.dumps(one) if "," in one or one != one.strip() else one for one in items))


def value_to_text(value: str | None) -> str:
    """The text of a partition by value; a string that would read as NULL is quoted.

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


def widen_partitions(grain: Grain, partitions: Sequence[str], back: int, ahead: int) -> tuple[str, ...]:
    """The partitions whose input is needed: each one, ``back`` steps before it and ``ahead`` steps after it."""
    if not grain.is_time or not (back or ahead):
        return sort_oldest_first(grain, set(partitions))
    numbers = {
        to_ordinal(grain, text) + step for text in partitions if text != NULL for step in range(-back, ahead + 1)
    }
    nulls = {NULL} & set(partitions)
    return sort_oldest_first(grain, nulls | from_ordinals(grain, numbers))


_STEP = {Grain.HOUR: 7 * 24, Grain.DAY: 7, Grain.MONTH: 12}


def list_comparable(grain: Grain, partition: str, reach: int) -> tuple[str, ...]:
    """Up to ``reach`` weeks (months: years) before and after, oldest first, whether they exist or not.

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
            continue  # before the first year or after the last that a date can have
    return tuple(found)
