"""Reconciliations: an aggregate of an input against one of the output. Pure."""

from __future__ import annotations

from errata.model.product import Reconciliation
from errata.validator.findings import BLOCK, OK, CheckResult, Numbers, decimal_of, shown, unmeasured
from errata.validator.names import reconcile_measure
from errata.validator.ports import CANDIDATE, input_scope
from errata.validator.thresholds import Limit

__all__ = ["judge_balance"]


def judge_balance(rule: Reconciliation, partition: str, numbers: Numbers) -> CheckResult:
    """What a reconciliation says about a partition."""
    name = reconcile_measure(rule)
    source, target = numbers.get(input_scope(rule.input), partition, name), numbers.get(CANDIDATE, partition, name)
    if source is None or target is None:
        return unmeasured(rule.name, partition)
    left, right = decimal_of(source.value), decimal_of(target.value)
    if left is None or right is None:
        level = OK if source.value == target.value else BLOCK
        message = f"{rule.source} of {rule.input} is {source.value}, {rule.target} of the output is {target.value}"
        return CheckResult(rule.name, partition, target.value, level, message)
    limit = Limit.parse(rule.tolerance)
    off = abs(right - left)
    exact = "" if source.exact and target.exact else " (floating point, not exact)"
    message = (
        f"{rule.source} of {rule.input} is {shown(left)}, {rule.target} of the output is {shown(right)}{exact}; "
        f"they differ by {shown(off)}, allowed {limit.text}"
    )
    level = BLOCK if limit.is_exceeded(off, left) else OK
    return CheckResult(rule.name, partition, shown(right - left), level, message)
