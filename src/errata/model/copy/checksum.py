"""What the rows of a partition are compared by: their number, sums of their hashes, and sums of doubles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

    Floating-point columns are not in the hashes: ``doubles`` has their sums, in the order of the copy's columns. A
    warehouse may have a faster hash of its own, which means something in that warehouse only.
    """

    rows: int = 0
    upper: int = 0
    lower: int = 0
    doubles: tuple[DoubleSum, ...] = ()
    own_hash: str = field(default="", compare=False, repr=False)  # of the same rows; empty: not known
    is_recognised: bool = field(default=False, compare=False, repr=False)
    """The hashes were not added up: the rows have the own hash of rows whose sums are known."""

    def with_own_hash(self, same: Checksum) -> Checksum:
        """This checksum with the own hash of rows that a warehouse holds and that are like these."""
        return replace(self, own_hash=same.own_hash)

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


def recognise_rows(known: Mapping[str, Checksum], found: Mapping[str, Checksum]) -> dict[str, Checksum] | None:
    """Checksums of partitions by their own hashes; None if one of them is not that of the known rows.

    Rows and sums of doubles are those that were found. Nothing is concluded from own hashes that differ.

    >>> known = {"2026-01-01": Checksum(2, 5, 7, own_hash="15:aa:1")}
    >>> recognise_rows(known, {"2026-01-01": Checksum(2, own_hash="15:aa:1")})
    {'2026-01-01': Checksum(rows=2, upper=5, lower=7, doubles=())}
    >>> recognise_rows(known, {"2026-01-01": Checksum(2, own_hash="16:aa:1")}) is None
    True
    """
    told = {}
    for name, one in found.items():
        same = known.get(name, EMPTY)
        if not one.own_hash or (one.rows, one.own_hash) != (same.rows, same.own_hash):
            return None
        told[name] = replace(one, upper=same.upper, lower=same.lower, is_recognised=True)
    return told


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
