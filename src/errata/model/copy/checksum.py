"""What the rows of a partition are compared by: their number, sums of their hashes, and sums of doubles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite


@dataclass(frozen=True, slots=True)
class DoubleSum:
    """Sum and number of the values of one floating-point column; NULL does not count."""

    total: float = 0.0
    values: int = 0


@dataclass(frozen=True, slots=True)
class Checksum:
    """Rows of one partition: their number, and the sums of the upper and lower 64 bits of their hashes.

    Floating-point columns are not in the hashes: ``doubles`` has their sums, in the order of the copy's columns.
    """

    rows: int = 0
    upper: int = 0
    lower: int = 0
    doubles: tuple[DoubleSum, ...] = ()

    def is_like(self, other: Checksum, tolerance: str | None = None) -> bool:
        """Whether both have the same rows, as far as a checksum tells; ``tolerance`` is for sums of doubles.

        >>> a, b = Checksum(1, 5, 7, (DoubleSum(0.30000000000000004, 1),)), Checksum(1, 5, 7, (DoubleSum(0.3, 1),))
        >>> a.is_like(b, "0.001"), a.is_like(b, "0"), a.is_like(Checksum(2, 5, 7, b.doubles), "1")
        (True, False, False)
        """
        if (self.rows, self.upper, self.lower) != (other.rows, other.upper, other.lower):
            return False
        # partitions without rows may have no sums at all
        if not self.rows:
            return True
        if len(self.doubles) != len(other.doubles):
            return False
        return all(_is_near(a, b, tolerance) for a, b in zip(self.doubles, other.doubles, strict=True))


EMPTY = Checksum()
"""A partition without rows."""


def find_differing(
    expected: Mapping[str, Checksum], found: Mapping[str, Checksum], tolerance: str | None = None
) -> tuple[str, ...]:
    """Partitions whose rows differ; one that is missing on a side has no rows there."""
    names = sorted({*expected, *found})
    return tuple(name for name in names if not expected.get(name, EMPTY).is_like(found.get(name, EMPTY), tolerance))


def _is_near(a: DoubleSum, b: DoubleSum, tolerance: str | None) -> bool:
    if a.values != b.values:
        return False
    if not (isfinite(a.total) and isfinite(b.total)):
        return repr(a.total) == repr(b.total)  # NaN is like NaN
    amount = tolerance or "0"
    limit = Decimal(amount.rstrip("%"))
    if amount.endswith("%"):
        limit *= max(abs(Decimal(a.total)), abs(Decimal(b.total))) / 100
    return abs(Decimal(a.total) - Decimal(b.total)) <= limit
