"""Checks: a count or a share of a partition against its threshold. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.model.product import Check, Metric
from errata.validator.findings import OK, CheckResult, Numbers, shown, two_places, unmeasured
from errata.validator.names import check_measure
from errata.validator.ports import CANDIDATE
from errata.validator.thresholds import holds, threshold_text

__all__ = ["judge_check"]


def judge_check(check: Check, partition: str, numbers: Numbers) -> CheckResult:
    """What a check says about a partition."""
    found = numbers.get(CANDIDATE, partition, check_measure(check))
    rows = numbers.rows(CANDIDATE, partition)
    if found is None or found.value is None or rows is None:
        return unmeasured(check.name, partition)
    count = Decimal(found.value)
    what = f"{count} of {rows} rows" if check.metric is not Metric.ROW_COUNT else f"{count} rows"
    value = count
    if check.unit == "percent":
        value = count * 100 / rows if rows else Decimal(0)
        what = f"{two_places(value)} % ({what})"
    expected = threshold_text(check.threshold, check.unit)
    passed = holds(check.threshold, value)
    level = OK if passed else check.severity
    message = f"{check.metric} is {what}; expected {expected}"
    return CheckResult(
        check.name, partition, shown(two_places(value) if check.unit == "percent" else value), level, message
    )
