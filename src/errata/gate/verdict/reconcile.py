"""Judge reconciliations: an aggregate of an input against one of the output, by group if the rule has groups. Pure.

A group that only one side has is compared with 0 if its total is a number, and is beyond the limit otherwise. All
groups of a partition, or of the run, make one finding, which names the worst; the measurements hold every group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from errata.gate.measure.names import reconcile_measure
from errata.gate.verdict.findings import BLOCK, OK, MeasurementIndex, format_decimal, is_same_text, parse_decimal
from errata.gate.verdict.thresholds import Limit
from errata.model.product import Reconciliation
from errata.ports.measure import CANDIDATE, Measurement, group_count_measure, input_scope
from errata.text.numbers import format_exact, plural
from errata.views.checks import CheckResult

MAX_NAMED = 2
"""Number of groups named after the worst."""

Values = tuple[str | None, ...]
Groups = Mapping[tuple[str, str, str], Mapping[Values, Measurement]]
"""Group totals by scope, partition and measurement."""


def index_groups(rules: Iterable[Reconciliation], numbers: MeasurementIndex) -> Groups:
    """Index the totals of every rule with groups, once for all partitions."""
    known = {reconcile_measure(rule) for rule in rules if rule.by}
    found: dict[tuple[str, str, str], dict[Values, Measurement]] = {}
    for (scope, partition, name), measurement in numbers.by_place.items() if known else ():
        at = name.find(" [")
        while at > 0:
            if name[:at] in known and (values := _parse_values(name[at + 1 :])) is not None:
                found.setdefault((scope, partition, name[:at]), {})[values] = measurement
                break
            at = name.find(" [", at + 1)
    return found


def _parse_values(text: str) -> Values | None:
    try:
        return tuple(json.loads(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _GroupPair:
    """One group (or all rows) on both sides; ``off`` is None for values that are not numbers and must be equal."""

    values: Values
    source: str | None
    target: str | None
    off: Decimal | None
    is_beyond: bool
    only_in: str = ""

    @property
    def label(self) -> str:
        return ", ".join("null" if value is None else value for value in self.values)

    @property
    def rank(self) -> tuple[bool, bool, Decimal]:
        """Higher is worse."""
        return self.is_beyond, self.off is None, abs(self.off or Decimal(0))


def judge_reconciliation(
    rule: Reconciliation, partition: str | None, numbers: MeasurementIndex, groups: Groups
) -> CheckResult:
    """Judge a reconciliation for a partition, or for the whole run if ``partition`` is None."""
    sides = input_scope(rule.input), CANDIDATE
    if rule.by:
        return _judge_groups(rule, partition, numbers, groups, sides)
    found = [numbers.get(scope, partition or "", reconcile_measure(rule)) for scope in sides]
    source, target = found
    if source is None or target is None:
        return _build_unmeasured(rule, partition)
    limit = Limit.parse(rule.tolerance)
    pair = _build_pair((), source, target, limit)
    if pair.off is None:
        level = BLOCK if pair.is_beyond else OK
        return CheckResult(rule.name, partition, pair.target, level, _describe_sides(rule, pair))
    inexact = "" if source.exact and target.exact else " (floating point, not exact)"
    message = (
        f"{_describe_sides(rule, pair)}{inexact}; they differ by {format_decimal(abs(pair.off))}, allowed {limit.text}"
    )
    return CheckResult(rule.name, partition, format_decimal(pair.off), BLOCK if pair.is_beyond else OK, message)


def _judge_groups(
    rule: Reconciliation, partition: str | None, numbers: MeasurementIndex, groups: Groups, sides: tuple[str, str]
) -> CheckResult:
    place = partition or ""
    found = [groups.get((scope, place, reconcile_measure(rule)), {}) for scope in sides]
    counted = [numbers.get(scope, place, group_count_measure(rule.name)) for scope in sides]
    if any(count is None or count.value != str(len(side)) for count, side in zip(counted, found, strict=True)):
        return _build_unmeasured(rule, partition)
    limit = Limit.parse(rule.tolerance)
    source, target = found
    pairs = [
        _build_pair(values, source.get(values), target.get(values), limit) for values in source.keys() | target.keys()
    ]
    # sort by label first, so that equally bad groups always appear in the same order
    pairs = sorted(sorted(pairs, key=lambda pair: pair.label), key=lambda pair: pair.rank, reverse=True)
    beyond = [pair for pair in pairs if pair.is_beyond]
    worst = pairs[0] if pairs else None
    value = None if worst is None or worst.off is None else format_decimal(worst.off)
    inexact = any(not m.exact for side in found for m in side.values())
    allowed = f"allowed {limit.text}" + (" (floating point, not exact)" if inexact else "")
    by = ", ".join(key.name for key in rule.by)
    if not beyond or worst is None:
        said = (
            f"{plural(len(pairs), 'group')} by {by} on both sides; " if pairs else f"no groups by {by} on either side; "
        )
        most = (
            f"largest difference {format_decimal(abs(worst.off))}, "
            if worst is not None and worst.off is not None
            else ""
        )
        return CheckResult(rule.name, partition, value, OK, f"{said}{most}{allowed}")
    message = (
        f"{format_exact(len(beyond))} of {plural(len(pairs), 'group')} by {by} "
        f"{'is' if len(beyond) == 1 else 'are'} off, "
        f"{allowed}; {'' if len(beyond) == 1 else 'worst '}{worst.label}: "
        f"{_describe_sides(rule, worst)}{_format_difference(worst)}"
        f"{_format_others(beyond[1:])}{_format_one_sided(beyond, rule)}"
    )
    return CheckResult(rule.name, partition, value, BLOCK, message)


def _build_pair(values: Values, source: Measurement | None, target: Measurement | None, limit: Limit) -> _GroupPair:
    before, after = (None if side is None else side.value for side in (source, target))
    left, right = (Decimal(0) if side is None else parse_decimal(side.value) for side in (source, target))
    only = "output" if source is None else "input" if target is None else ""
    if left is None or right is None:
        return _GroupPair(
            values, before, after, None, is_beyond=bool(only) or not is_same_text(before, after), only_in=only
        )
    off = right - left
    return _GroupPair(values, before, after, off, is_beyond=limit.is_exceeded(abs(off), left), only_in=only)


def _describe_sides(rule: Reconciliation, pair: _GroupPair) -> str:
    source = "absent" if pair.only_in == "output" else _format_side(pair.source)
    target = "absent" if pair.only_in == "input" else _format_side(pair.target)
    return f"{rule.source} of {rule.input} is {source}, {rule.target} of the output is {target}"


def _format_side(text: str | None) -> str:
    number = parse_decimal(text)
    return str(text) if number is None else format_decimal(number)


def _format_difference(pair: _GroupPair) -> str:
    return "" if pair.off is None else f" (off by {format_decimal(pair.off)})"


def _format_others(pairs: list[_GroupPair]) -> str:
    named = [f"{pair.label}{_format_difference(pair)}" for pair in pairs[:MAX_NAMED]]
    more = [f"{format_exact(len(pairs) - MAX_NAMED)} more"] if len(pairs) > MAX_NAMED else []
    return f"; then {', '.join([*named, *more])}" if named else ""


def _format_one_sided(pairs: list[_GroupPair], rule: Reconciliation) -> str:
    places = {"input": rule.input, "output": "the output"}
    counts = {place: sum(pair.only_in == side for pair in pairs) for side, place in places.items()}
    told = [f"{format_exact(number)} only in {place}" for place, number in counts.items() if number]
    return f"; {', '.join(told)}" if told else ""


def _build_unmeasured(rule: Reconciliation, partition: str | None) -> CheckResult:
    return CheckResult(rule.name, partition, None, BLOCK, "was not measured")
