"""How far a number is from comparable ones, by robust statistics. Pure.

The distance is the robust z-score: from the median, in units of 1.4826 times the median absolute deviation, which for
normally distributed numbers is their standard deviation and which a single odd control cannot move. Where more than
half of the controls are equal that deviation is 0; the mean absolute deviation times 1.2533 takes its place (Iglewicz
and Hoaglin, *How to Detect and Handle Outliers*). Where all are equal there is no unit to measure in, and no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

_MEDIAN_FACTOR = Decimal("1.4826")
_MEAN_FACTOR = Decimal("1.2533")


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some numbers and the unit that distances from it are measured in; 0: they are all the same."""

    middle: Decimal
    unit: Decimal
    is_robust: bool  # false: from the mean absolute deviation

    def score(self, number: Decimal) -> Decimal | None:
        """The z-score of a number; None when there is no unit and the number is another."""
        away = number - self.middle
        if self.unit:
            return away / self.unit
        return None if away else Decimal(0)


def median(numbers: Sequence[Decimal]) -> Decimal:
    """The middle number, or the mean of the two in the middle."""
    ordered = sorted(numbers)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def measure_spread(numbers: Sequence[Decimal]) -> Spread:
    """Middle and unit of at least one number."""
    middle = median(numbers)
    deviations = [abs(number - middle) for number in numbers]
    if typical := median(deviations):
        return Spread(middle, typical * _MEDIAN_FACTOR, is_robust=True)
    return Spread(middle, sum(deviations, Decimal(0)) / len(deviations) * _MEAN_FACTOR, is_robust=False)
