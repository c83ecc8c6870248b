"""Which partitions of an input each partition of a product is computed from, and the inverse. Pure.

Planning, computing, late data, rebases and impact all use :meth:`ReadRule.list_reads`, so that they cannot disagree. A
partition needs its own interval of time, widened by look-back and look-ahead, in whole partitions of the input, which
may be narrower or wider than the product's. Hours, days and weeks are lengths; months and years are steps in the
calendar. The inverse is found by trying partitions, never by negating the look-back: 31 March less a month is 28
February, but 28 February plus a month is 28 March.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from errata.errors import UsageError
from errata.model.calendar_math import first_second, ordinal_at
from errata.model.duration import count_steps, parse_duration
from errata.model.partition import NULL, Grain, fold_ranges, from_ordinals, sort_oldest_first, to_ordinal

if TYPE_CHECKING:
    from errata.model.manifest import InputPin
    from errata.model.product import Input

_HOUR, _DAY = 3600, 86_400
_SECONDS = {Grain.HOUR: _HOUR, Grain.DAY: _DAY, Grain.MONTH: 31 * _DAY, Grain.YEAR: 366 * _DAY}
"""The longest partition of each grain."""
_MONTH_END = 3 * _DAY
"""How far the end of a short month can move a step in the calendar."""


class Interval(NamedTuple):
    """Half-open interval of time, in seconds since 1970-01-01 UTC, in any year that a table can hold."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a look-back or look-ahead reaches: a length in hours, or steps in the calendar."""

    hours: int = 0
    months: int = 0

    @classmethod
    def parse(cls, duration: str) -> Shift:
        """The shift that a duration of a product file means.

        >>> Shift.parse("2w"), Shift.parse("1y")
        (Shift(hours=336, months=0), Shift(hours=0, months=12))
        """
        count, unit = parse_duration(duration)
        if unit in ("mo", "y"):
            return cls(months=count * (12 if unit == "y" else 1))
        return cls(hours=count * {"h": 1, "d": 24, "w": 168}[unit])

    @classmethod
    def of_steps(cls, count: int, grain: Grain) -> Shift:
        """A number of partitions of a grain."""
        if grain in (Grain.MONTH, Grain.YEAR):
            return cls(months=count * (12 if grain is Grain.YEAR else 1))
        return cls(hours=count * (24 if grain is Grain.DAY else 1))

    def move(self, second: int, direction: int) -> int:
        """The instant this much later (direction 1) or earlier (-1); past the end of a month it is the last day."""
        moved = second + direction * self.hours * _HOUR
        if not self.months:
            return moved
        month = ordinal_at(Grain.MONTH, moved)
        into = moved - first_second(Grain.MONTH, month)
        start, end = (first_second(Grain.MONTH, month + direction * self.months + n) for n in (0, 1))
        return min(start + into, end - _DAY + into % _DAY)


@dataclass(frozen=True, slots=True)
class Window:
    """What is read of an input whose partitions are not counted in partitions of the product."""

    grain: Grain  # of the input
    lookback: str = "0d"
    lookahead: str = "0d"


@dataclass(frozen=True, slots=True)
class ReadRule:
    """How one input is read for partitions of one product."""

    grain: Grain
    """Of the product."""
    input_grain: Grain
    back: Shift = Shift()
    ahead: Shift = Shift()
    is_own: bool = False
    """The input is the product's own output: only earlier partitions, never itself."""
    is_whole: bool = False
    """All of it is read for every partition."""

    @property
    def is_wider(self) -> bool:
        """Whether one partition of the input serves several of the product."""
        return is_wider(self.input_grain, self.grain)

    @property
    def without_look(self) -> ReadRule:
        """The same input without look-back and look-ahead: what belongs to the partition itself."""
        return replace(self, back=Shift(), ahead=Shift(), is_own=False)

    def find_interval(self, partition: str) -> Interval:
        """Time that is read for a time partition, in whole partitions of the input."""
        return self._find_interval(to_ordinal(self.grain, partition))

    def _find_interval(self, number: int) -> Interval:
        first, last = self._find_ordinals(number)
        return Interval(first_second(self.input_grain, first), first_second(self.input_grain, last + 1))

    def _find_ordinals(self, number: int) -> tuple[int, int]:
        """First and last partition of the input, for the partition with this ordinal."""
        start = first_second(self.grain, number)
        end = start if self.is_own else self.ahead.move(first_second(self.grain, number + 1), 1)
        return (
            ordinal_at(self.input_grain, self.back.move(start, -1)),
            ordinal_at(self.input_grain, end - 1),
        )

    def list_reads(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """Partitions of the input that these are computed from, oldest first; none if the input is read whole.

        Rows without a partition value are read for the partition of such rows, and only for it.
        """
        if self.is_whole:
            return ()
        names = set(partitions)
        if not self.grain.is_time or self == ReadRule(self.grain, self.grain):
            return sort_oldest_first(self.grain, names)  # each reads its own, and there may be 43,800 hours
        nulls = set() if self.is_own else {NULL} & names
        numbers: set[int] = set()
        for name in names - {NULL}:
            first, last = self._find_ordinals(to_ordinal(self.grain, name))
            numbers.update(range(first, last + 1))
        return sort_oldest_first(self.input_grain, nulls | from_ordinals(self.input_grain, numbers))

    def find_owner(self, name: str) -> str:
        """The partition of the product that a partition of an input belongs to, which is not wider."""
        return name if name == NULL or not self.grain.is_time else name[: self.grain.width]

    def list_touched(self, changed: Sequence[str], grain: Grain | None = None) -> tuple[str, ...]:
        """Partitions of the product that read one of these, oldest first, whether or not they exist.

        ``grain`` is that of the changed partitions, by default the input's. The caller must know that the changed
        partitions are by the column that the input is read by, and treat an input that is read whole by itself.
        """
        by = grain or self.input_grain
        if not self.grain.is_time:
            return sort_oldest_first(self.grain, set(changed))
        nulls = set() if self.is_own else {NULL} & set(changed)
        numbers: set[int] = set()
        for first, last in fold_ranges(by, set(changed) - {NULL}):
            span = Interval(first_second(by, to_ordinal(by, first)), first_second(by, to_ordinal(by, last) + 1))
            numbers.update(self._list_readers(span))
        return sort_oldest_first(self.grain, nulls | from_ordinals(self.grain, numbers))

    def _list_readers(self, span: Interval) -> Iterable[int]:
        """Ordinals of the partitions that read a part of an interval, found by trying all that might.

        As a rule, later partitions read neither from nor until an earlier time. Then the readers have no gaps, and the
        first and the last are found by halves. Only hours break that rule, at the end of a month: 29 March 23:00 less a
        month is 28 February 23:00, and 30 March 00:00 less a month is 28 February 00:00.
        """
        margin = _SECONDS[self.input_grain] + _MONTH_END
        tried = range(
            ordinal_at(self.grain, self.ahead.move(span.start, -1) - margin),
            ordinal_at(self.grain, self.back.move(span.end, 1) + margin) + 1,
        )
        if self.grain is Grain.HOUR and (self.back.months or self.ahead.months):
            found = ((number, self._find_interval(number)) for number in tried)
            return [number for number, read in found if read.start < span.end and span.start < read.end]
        first = bisect_right(tried, span.start, key=lambda number: self._find_interval(number).end)
        last = bisect_left(tried, span.end, key=lambda number: self._find_interval(number).start)
        return tried[first:last]


def is_wider(one: Grain, other: Grain) -> bool:
    """Whether partitions by time of one grain are longer than those of the other.

    >>> is_wider(Grain.DAY, Grain.HOUR), is_wider(Grain.DAY, Grain.DAY)
    (True, False)
    """
    return one.is_time and other.is_time and one.width < other.width


def is_aligned(duration: str, grain: Grain) -> bool:
    """Whether a look-back of this duration begins where a partition of the grain does.

    >>> is_aligned("12h", Grain.DAY), is_aligned("1mo", Grain.DAY), is_aligned("2d", Grain.MONTH)
    (False, True, False)
    """
    try:
        count_steps(duration, grain)
    except UsageError:
        return bool(Shift.parse(duration).months) and grain in (Grain.HOUR, Grain.DAY)
    return True


def find_window(source: Input, grain: Grain) -> Window | None:
    """The window of an input of another grain, or with look-back in the calendar; None if steps of the grain say it."""
    if source.partition is None:
        return None
    if source.grain in (None, grain):
        try:
            count_steps(source.lookback, grain)
            count_steps(source.lookahead, grain)
        except UsageError:
            return Window(grain, source.lookback, source.lookahead)
        return None
    return Window(source.grain, source.lookback, source.lookahead)


def rule_of_input(source: Input, grain: Grain) -> ReadRule:
    """How a product of this grain reads an input, according to the product file."""
    if source.partition is None:
        return ReadRule(grain, grain, is_whole=True)
    return ReadRule(
        grain, source.grain or grain, Shift.parse(source.lookback), Shift.parse(source.lookahead), is_own=source.own
    )


def rule_of_pin(pin: InputPin, grain: Grain) -> ReadRule:
    """How a product of this grain reads an input, according to a manifest."""
    if pin.partition is None:
        return ReadRule(grain, grain, is_whole=True)
    if pin.window is None:
        back, ahead = (Shift.of_steps(steps, grain) for steps in (pin.lookback, pin.lookahead))
        return ReadRule(grain, grain, back, ahead, is_own=pin.own)
    back, ahead = (Shift.parse(text) for text in (pin.window.lookback, pin.window.lookahead))
    return ReadRule(grain, pin.window.grain, back, ahead, is_own=pin.own)
