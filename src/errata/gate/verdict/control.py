"""Judge control rules: a partition's metric against the same metric of comparable partitions. Pure.

Too few controls, or a different value where the controls do not vary, give a warning, because neither is a real
comparison. Only a score in robust units can block; where more than half of the controls are equal, it can only warn.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from errata.gate.measure.names import control_measure
from errata.gate.verdict.findings import (
    BLOCK,
    OK,
    WARN,
    MeasurementIndex,
    build_unmeasured,
    format_decimal,
    parse_decimal,
    round_percent,
)
from errata.gate.verdict.robust import Spread, measure_spread
from errata.model.manifest import Manifest
from errata.model.partition import list_comparable
from errata.model.product import Control
from errata.ports.measure import CANDIDATE, CONTROL
from errata.text.numbers import plural
from errata.views.checks import CheckResult

MAX_NAMED = 4
"""Number of controls named in a message; the measurements hold all of them."""


def judge_control(rule: Control, partition: str, manifest: Manifest, numbers: MeasurementIndex) -> CheckResult:
    """Judge a control rule for a partition."""
    name = control_measure(rule)
    within = set(list_comparable(manifest.target.grain, partition, rule.reach))
    planned = [other for other in manifest.control_partitions.get(partition, ()) if other in within]
    found = numbers.get(CANDIDATE, partition, name)
    measured = {other: numbers.get(CONTROL, other, name) for other in planned}
    if found is None or None in measured.values():
        return build_unmeasured(rule.name, partition)
    # a control partition that was emptied since planning has no value to compare with
    held = {other: m for other, m in measured.items() if m is not None and numbers.rows(CONTROL, other)}
    controls = {other: number for other, m in held.items() if (number := parse_decimal(m.value)) is not None}
    lost = f" ({len(planned) - len(controls)} more hold no rows or no number)" if len(controls) < len(planned) else ""
    if len(controls) < rule.least:
        few = plural(len(controls), "comparable partition")
        message = (
            f"{rule.metric} is {_format_value(found.value)}; it has {few} outside the run{lost}, expected at least "
            f"{rule.least}: {_format_controls(controls) or 'nothing to compare with'}"
        )
        return CheckResult(rule.name, partition, None, WARN, message)
    spread = measure_spread(list(controls.values()))
    against = f"{plural(len(controls), 'control')}{lost} with median {_format_short(spread.middle)}"
    value = parse_decimal(found.value)
    if value is None:
        message = f"{rule.metric} is {_format_value(found.value)}, {against}; controls {_format_controls(controls)}"
        return CheckResult(rule.name, partition, None, WARN, message)
    level, score, said = _judge_score(rule, value, spread)
    message = f"{rule.metric} is {format_decimal(value)}, {against}: {said}; controls {_format_controls(controls)}"
    return CheckResult(rule.name, partition, score, level, message)


def _judge_score(rule: Control, value: Decimal, spread: Spread) -> tuple[str, str | None, str]:
    score = spread.score(value)
    if score is None:
        return WARN, None, "the controls do not vary, so any other number is unusual"
    limits = ((rule.block, BLOCK, "blocks"), (rule.warn, WARN, "warns"))
    level = next((level for limit, level, _ in limits if limit is not None and abs(score) > Decimal(limit)), OK)
    words = ", ".join(f"{verb} above {limit}" for limit, _, verb in reversed(limits) if limit is not None)
    if not spread.unit:
        return OK, "0.00", f"equal, and the controls do not vary; {words}"
    rounded = round_percent(score)
    said = f"robust z-score {rounded:+} in units of {_format_short(spread.unit)}; {words}"
    if not spread.is_robust:
        level = WARN if level == BLOCK else level
        said = f"z-score {rounded:+} in units of {_format_short(spread.unit)} (half of the controls are equal); {words}"
    return level, str(rounded), said


def _format_controls(controls: Mapping[str, Decimal]) -> str:
    items = [f"{name}: {format_decimal(number)}" for name, number in controls.items()]
    if len(items) <= MAX_NAMED:
        return ", ".join(items)
    low, high = min(controls.values()), max(controls.values())
    return (
        f"{', '.join(items[:MAX_NAMED])} and {len(items) - MAX_NAMED} more, from {format_decimal(low)} to "
        f"{format_decimal(high)}"
    )


def _format_short(number: Decimal) -> str:
    """Format with at most six decimal places: a median or a unit may have a hundred."""
    rounded = number.quantize(Decimal("0.000001"))
    return format_decimal(rounded.normalize()) if rounded else format_decimal(Decimal(0))


def _format_value(value: str | None) -> str:
    return "NULL" if value is None else value
