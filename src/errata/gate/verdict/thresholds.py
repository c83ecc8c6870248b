"""Thresholds and tolerances as decimals. Pure.

``mustBe…`` operators are those of the Open Data Contract Standard; ranges include both ends. A limit is an amount
(``0.05``) or a share of a base (``5%``); a deviation of exactly the limit does not exceed it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from errata.errors import UsageError
from errata.model.product import Threshold

_SINGLE: dict[str, tuple[str, Callable[[Decimal, Decimal], bool]]] = {
    "mustBe": ("exactly", lambda value, operand: value == operand),
    "mustNotBe": ("anything but", lambda value, operand: value != operand),
    "mustBeGreaterThan": ("more than", lambda value, operand: value > operand),
    "mustBeGreaterOrEqualTo": ("at least", lambda value, operand: value >= operand),
    "mustBeLessThan": ("less than", lambda value, operand: value < operand),
    "mustBeLessOrEqualTo": ("at most", lambda value, operand: value <= operand),
}
_RANGE: dict[str, tuple[str, Callable[[Decimal, Decimal, Decimal], bool]]] = {
    "mustBeBetween": ("between", lambda value, low, high: low <= value <= high),
    "mustNotBeBetween": ("not between", lambda value, low, high: not low <= value <= high),
}


def meets_threshold(threshold: Threshold, value: Decimal) -> bool:
    """Whether a value meets a threshold."""
    if threshold.operator in _SINGLE:
        return _SINGLE[threshold.operator][1](value, _parse_number(threshold.operand))
    if threshold.operator in _RANGE and threshold.upper is not None:
        return _RANGE[threshold.operator][1](value, _parse_number(threshold.operand), _parse_number(threshold.upper))
    known = ", ".join([*_SINGLE, *_RANGE])
    raise UsageError(f"the threshold {threshold.operator} was refused; expected one of {known}")


def format_threshold(threshold: Threshold, unit: str) -> str:
    """The threshold in words: ``at most 5 %``, ``less than 2 hours``."""
    suffix = {"percent": " %", "rows": ""}.get(unit, f" {unit}")
    if threshold.operator in _RANGE:
        return f"{_RANGE[threshold.operator][0]} {threshold.operand} and {threshold.upper}{suffix}"
    return f"{_SINGLE[threshold.operator][0]} {threshold.operand}{suffix}"


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a number may deviate."""

    amount: Decimal
    is_percent: bool

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Parse ``5%`` or ``0.05``."""
        bare = text.strip()
        limit = cls(_parse_number(bare.removesuffix("%").strip()), bare.endswith("%"))
        if limit.amount < 0:
            raise UsageError(f"the tolerance {text!r} was refused; expected zero or more")
        return limit

    @property
    def text(self) -> str:
        """The limit as shown in messages."""
        return f"{self.amount:f} %" if self.is_percent else f"{self.amount:f}"

    def is_exceeded(self, off: Decimal, base: Decimal) -> bool:
        """Whether a deviation exceeds the limit; computed without division, so nothing is rounded."""
        return off * 100 > self.amount * abs(base) if self.is_percent else off > self.amount


def _parse_number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise UsageError(f"{text!r} was refused; expected a number, such as 5, 0.05 or 5%")
    return number
