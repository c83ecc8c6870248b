"""Control periods: a partition's number against the same number of comparable partitions. Pure.

Too few controls, or controls that do not vary, are said and warned of: neither passes for a comparison. Only a score in
robust units can block; where more than half of the controls are equal, a score is no more than a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from errata.gate.measure.names import control_measure
from errata.gate.verdict.findings import BLOCK, OK, WARN, Numbers, decimal_of, shown, two_places, unmeasured
from errata.gate.verdict.robust import Spread, spread_of
from errata.model.manifest import Manifest
from errata.model.partition import comparable
from errata.model.product import Control
from errata.ports.measure import CANDIDATE, CONTROL
from errata.text.numbers import plural
from errata.views.checks import CheckResult

NAMED = 4
"""So many controls are named in a message; all are among the measurements."""


def judge_control(rule: Control, partition: str, manifest: Manifest, numbers: Numbers) -> CheckResult:
    """What a control says about a partition."""
    name = control_measure(rule)
    within = set(comparable(manifest.target.grain, partition, rule.reach))
    planned = [other for other in manifest.control_partitions.get(partition, ()) if other in within]
    found = numbers.get(CANDIDATE, partition, name)
    measured = {other: numbers.get(CONTROL, other, name) for other in planned}
    if found is None or None in measured.values():
        return unmeasured(rule.name, partition)
    # a partition that was emptied since planning has no number of its own
    held = {other: m for other, m in measured.items() if m is not None and numbers.rows(CONTROL, other)}
    controls = {other: number for other, m in held.items() if (number := decimal_of(m.value)) is not None}
    lost = f" ({len(planned) - len(controls)} more hold no rows or no number)" if len(controls) < len(planned) else ""
    if len(controls) < rule.least:
        few = plural(len(controls), "comparable partition")
        message = (
            f"{rule.metric} is {_text(found.value)}; it has {few} outside the run{lost}, expected at least "
            f"{rule.least}: {_named(controls) or 'nothing to compare with'}"
        )
        return CheckResult(rule.name, partition, None, WARN, message)
    spread = spread_of(list(controls.values()))
    against = f"{plural(len(controls), 'control')}{lost} with median {_short(spread.middle)}"
    value = decimal_of(found.value)
    if value is None:
        message = f"{rule.metric} is {_text(found.value)}, {against}; controls {_named(controls)}"
        return CheckResult(rule.name, partition, None, WARN, message)
    level, score, said = _judged(rule, value, spread)
    message = f"{rule.metric} is {shown(value)}, {against}: {said}; controls {_named(controls)}"
    return CheckResult(rule.name, partition, score, level, message)


def _judged(rule: Control, value: Decimal, spread: Spread) -> tuple[str, str | None, str]:
    score = spread.score(value)
    if score is None:
        return WARN, None, "the controls do not vary, so that any other number is unusual"
    limits = ((rule.block, BLOCK, "blocks"), (rule.warn, WARN, "warns"))
    level = next((level for limit, level, _ in limits if limit is not None and abs(score) > Decimal(limit)), OK)
    words = ", ".join(f"{verb} above {limit}" for limit, _, verb in reversed(limits) if limit is not None)
    if not spread.unit:
        return OK, "0.00", f"equal, and the controls do not vary; {words}"
    rounded = two_places(score)
    said = f"robust z-score {rounded:+} in units of {_short(spread.unit)}; {words}"
    if not spread.is_robust:
        level = WARN if level == BLOCK else level
        said = f"z-score {rounded:+} in units of {_short(spread.unit)} (half of the controls are equal); {words}"
    return level, str(rounded), said


def _named(controls: Mapping[str, Decimal]) -> str:
    items = [f"{name}: {shown(number)}" for name, number in controls.items()]
    if len(items) <= NAMED:
        return ", ".join(items)
    low, high = min(controls.values()), max(controls.values())
    return f"{', '.join(items[:NAMED])} and {len(items) - NAMED} more, from {shown(low)} to {shown(high)}"


def _short(number: Decimal) -> str:
    """At most six digits after the point: a median or a unit may have a hundred."""
    rounded = number.quantize(Decimal("0.000001"))
    return shown(rounded.normalize()) if rounded else shown(Decimal(0))


def _text(value: str | None) -> str:
    return "NULL" if value is None else value
