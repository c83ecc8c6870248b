"""Robust z-score: how far a number is from comparable ones. Pure.

The score is the distance from the median in units of 1.4826 times the median absolute deviation. For normally
distributed numbers that unit is the standard deviation, and a single outlier among the controls cannot move it. Where
more than half of the controls are equal that deviation is 0, and the mean absolute deviation times 1.2533 is used
instead (Iglewicz and Hoaglin, *How to Detect and Handle Outliers*). Where all are equal there is no unit and no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

_MEDIAN_FACTOR = Decimal("1.4826")
_MEAN_FACTOR = Decimal("1.2533")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of some numbers, and the unit of distances from it; the unit is 0 if all are equal."""

    middle: Decimal
    unit: Decimal
    is_robust: bool  # false: from the mean absolute deviation

    def score(self, number: Decimal) -> Decimal | None:
        """The z-score of a number; None when the unit is 0 and the number differs from the median."""
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
    """Compute median and unit of at least one number."""
    middle = median(numbers)
    deviations = [abs(number - middle) for number in numbers]
    if typical := median(deviations):
        return Spread(middle, typical * _MEDIAN_FACTOR, is_robust=True)
    return Spread(middle, sum(deviations, Decimal(0)) / len(deviations) * _MEAN_FACTOR, is_robust=False)
