"""Judge comparisons: how far an aggregate moved from the prior output. Pure.

A partition that is empty now is not compared: the rule ``empty`` covers it. A change from zero has no percentage, so
where the limit is a percentage, any change from zero is a warning.
"""

from __future__ import annotations

from decimal import Decimal

from errata.gate.measure.names import compare_measure
from errata.gate.verdict.findings import (
    BLOCK,
    OK,
    SEVERITY,
    WARN,
    MeasurementIndex,
    build_unmeasured,
    format_decimal,
    is_same_text,
    parse_decimal,
    round_percent,
)
from errata.gate.verdict.thresholds import Limit
from errata.model.product import Comparison, Distribution
from errata.ports.measure import CANDIDATE, PRIOR
from errata.views.checks import CheckResult


def judge_comparison(rule: Comparison, partition: str, numbers: MeasurementIndex) -> CheckResult:
    """Judge a comparison for a partition."""
    name = compare_measure(rule)
    if not numbers.rows(PRIOR, partition):
        return CheckResult(rule.name, partition, None, OK, "nothing was there before to compare with")
    if numbers.rows(CANDIDATE, partition) == 0:
        return CheckResult(rule.name, partition, None, OK, "the partition has no rows now; see the rule empty")
    old, new = numbers.get(PRIOR, partition, name), numbers.get(CANDIDATE, partition, name)
    if old is None or new is None:
        return build_unmeasured(rule.name, partition)
    before, after = parse_decimal(old.value), parse_decimal(new.value)
    if before is None or after is None:
        # a value that disappeared, or is no longer a number, counts as the largest possible movement
        is_lost = before is not None and rule.block is not None
        level = OK if is_same_text(old.value, new.value) else BLOCK if is_lost else WARN
        return CheckResult(rule.name, partition, new.value, level, f"{rule.metric} was {old.value}, is {new.value}")
    change = after - before
    level = judge_limits(rule, change, before)
    words = ", ".join(
        f"{'warns' if worst == WARN else 'blocks'} above {limit.text}" for limit, worst in parse_limits(rule)
    )
    percent = round_percent(change * 100 / before.copy_abs()) if before else None
    moved = (
        f"{percent:+} %" if percent is not None else "a change from zero has no percentage" if change else "no change"
    )
    message = f"{rule.metric} was {format_decimal(before)}, is {format_decimal(after)} ({moved}); {words}"
    return CheckResult(rule.name, partition, None if percent is None else f"{percent}%", level, message)


def judge_limits(rule: Comparison | Distribution, change: Decimal, before: Decimal) -> str:
    """The level of a change by the limits of its rule."""
    levels = (_judge_limit(limit, worst, change, before) for limit, worst in parse_limits(rule))
    return max(levels, key=SEVERITY.index, default=OK)


def parse_limits(rule: Comparison | Distribution) -> list[tuple[Limit, str]]:
    """The limits of a rule, each with the level beyond it."""
    return [(Limit.parse(text), worst) for text, worst in ((rule.warn, WARN), (rule.block, BLOCK)) if text is not None]


def _judge_limit(limit: Limit, worst: str, change: Decimal, before: Decimal) -> str:
    if limit.is_percent and change and not before:
        return WARN
    return worst if limit.is_exceeded(abs(change), before) else OK
