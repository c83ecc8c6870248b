"""The time that a recorded file is about: half-open, in UTC; from the command line, its name or a column. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fnmatch import translate

from errata.errors import UsageError
from errata.model.partition import Grain, end_of, name_partition, start_of

_HOLE = re.compile(r"\{((?:%[YmdH]|[^{}%])+)\}")
_DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2}
_UNITS = (("H", Grain.HOUR), ("d", Grain.DAY), ("m", Grain.MONTH), ("Y", Grain.YEAR))


@dataclass(frozen=True, slots=True)
class BusinessRange:
    """From an instant to before another one; ISO texts in UTC, which sort in time order."""

    start: str
    end: str

    def find_ends(self, grain: Grain) -> tuple[str, str]:
        """The first and the last partition of this grain that the range touches.

        >>> BusinessRange("2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z").find_ends(Grain.DAY)
        ('2026-01-03', '2026-01-04')
        """
        last = _parse(self.end) - timedelta(microseconds=1)
        return name_partition(_parse(self.start), grain), name_partition(last, grain)

    def overlaps(self, other: BusinessRange) -> bool:
        """Whether some instant is in both.

        >>> DAY, NEXT = (BusinessRange(f"2026-01-0{n}T00:00:00Z", f"2026-01-0{n + 1}T00:00:00Z") for n in (3, 4))
        >>> DAY.overlaps(NEXT), DAY.overlaps(DAY)
        (False, True)
        """
        return _parse(self.start) < _parse(other.end) and _parse(other.start) < _parse(self.end)

    @property
    def text(self) -> str:
        """For people: days without their time."""
        return f"{_shorten(self.start)} to {_shorten(self.end)}"


def is_covered(ranges: Sequence[BusinessRange], grain: Grain, partition: str) -> bool:
    """Whether these ranges leave nothing of a partition out.

    >>> day = [BusinessRange("2026-01-03T00:00:00Z", "2026-01-03T12:00:00Z")]
    >>> is_covered(day, Grain.DAY, "2026-01-03"), is_covered(day, Grain.HOUR, "2026-01-03T11")
    (False, True)
    """
    at, end = start_of(grain, partition), end_of(grain, partition)
    for one in sorted(ranges, key=lambda one: one.start):
        if _parse(one.start) > at:
            break
        at = max(at, _parse(one.end))
    return at >= end


def _shorten(instant: str) -> str:
    return instant.removesuffix("T00:00:00Z")


def _parse(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def to_instant(moment: datetime) -> str:
    """An instant as the ledger has it; a time without a zone is UTC.

    >>> to_instant(datetime(2026, 1, 3))
    '2026-01-03T00:00:00Z'
    """
    known = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return known.isoformat().replace("+00:00", "Z")


def parse_range(start: str, end: str) -> BusinessRange:
    """The range that a person typed: days or times, the end excluded."""
    first, after = parse_moment(start), parse_moment(end)
    if first is None or after is None or after <= first:
        raise UsageError(
            f"the range from {start!r} to {end!r} was refused; expected two dates or times, the end after the start "
            "and not included",
            state="nothing was changed",
            hint="--from 2026-01-03 --to 2026-01-04 is one day",
        )
    return BusinessRange(to_instant(first), to_instant(after))


def parse_moment(text: str) -> datetime | None:
    """A date or time in ISO form; None if it is neither."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def find_pattern_flaw(pattern: str) -> str | None:
    """Why a pattern of names cannot give a range; None if it can."""
    holes = _HOLE.findall(pattern)
    names = [one for hole in holes for one in re.findall("%(.)", hole)]
    if not holes or "{" in _HOLE.sub("", pattern):
        return "expected the time in braces, such as orders_{%Y-%m-%d}*.csv"
    if not names or names != list("YmdH")[: len(names)]:
        return "expected %Y, or %Y %m, or %Y %m %d, or %Y %m %d %H, each once and in this order"
    return None


def read_range_from_name(pattern: str, name: str) -> BusinessRange | None:
    """The range that a file's name says; None if the name does not match.

    >>> read_range_from_name("orders_{%Y-%m-%d}*.csv", "orders_2026-01-03-2.csv").text
    '2026-01-03 to 2026-01-04'
    """
    units: list[str] = []
    pieces: list[str] = []
    at = 0
    for hole in _HOLE.finditer(pattern):
        pieces.append(_glob(pattern[at : hole.start()]))
        for piece in re.split("(%.)", hole[1]):
            if piece.startswith("%"):
                units.append(piece[1])
                pieces.append(rf"(?P<{piece[1]}>\d{{{_DIGITS[piece[1]]}}})")
            else:
                pieces.append(re.escape(piece))
        at = hole.end()
    pieces.append(_glob(pattern[at:]))
    found = re.fullmatch("".join(pieces), name, re.ASCII)
    if not found:
        return None
    grain = next(unit for sign, unit in _UNITS if sign in units)
    numbers = [int(found[sign]) if sign in units else low for sign, low in (("Y", 0), ("m", 1), ("d", 1), ("H", 0))]
    try:
        start = datetime(*numbers, tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    text = name_partition(start, grain)
    return BusinessRange(to_instant(start_of(grain, text)), to_instant(end_of(grain, text)))


def _glob(text: str) -> str:
    if not text:
        return ""
    # translate gives (?s:…)\Z, of which only the middle is a piece
    return re.sub(r"\A\(\?s:(.*)\)\\[Zz]\Z", r"\1", translate(text), flags=re.DOTALL)


@dataclass(slots=True)
class RangeFinder:
    """Finds the first and the last day in a column, one value at a time."""

    first: date | None = None
    last: date | None = None

    def see(self, value: object) -> None:
        """Take one value into account; text that is no date or time is left out."""
        found = _to_day(value)
        if found is None:
            return
        self.first = found if self.first is None else min(self.first, found)
        self.last = found if self.last is None else max(self.last, found)

    def build(self) -> BusinessRange | None:
        """Whole days from the first value to the last; None without values."""
        if self.first is None or self.last is None:
            return None
        end = datetime.combine(self.last, datetime.min.time()) + timedelta(days=1)
        return BusinessRange(to_instant(datetime.combine(self.first, datetime.min.time())), to_instant(end))


def _to_day(value: object) -> date | None:
    if isinstance(value, str):
        # most files have one day per line in the same spelling
        moment = parse_moment(value)
        return None if moment is None else moment.date()
    if isinstance(value, datetime):
        return value.astimezone(UTC).date() if value.tzinfo else value.date()
    return value if isinstance(value, date) else None
