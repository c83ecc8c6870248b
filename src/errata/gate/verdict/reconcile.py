"""Reconciliations: an aggregate of an input against one of the output, group by group where it has groups. Pure.

A group that only one side has is compared with nothing: with 0 where its total is a number. All groups of a partition,
or of the run, make one finding, which names the worst; every group's numbers are among the measurements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from errata.gate.measure.names import reconcile_measure
from errata.gate.verdict.findings import BLOCK, OK, Numbers, decimal_of, same_text, shown
from errata.gate.verdict.thresholds import Limit
from errata.model.product import Reconciliation
from errata.ports.measure import CANDIDATE, Measurement, groups_measure, input_scope
from errata.text.numbers import exact, plural
from errata.views.checks import CheckResult

NAMED = 2
"""So many groups are named after the worst."""

Values = tuple[str | None, ...]
Groups = Mapping[tuple[str, str, str], Mapping[Values, Measurement]]
"""Totals of groups, by scope, partition and measurement."""


def groups_of(rules: Iterable[Reconciliation], numbers: Numbers) -> Groups:
    """The totals of every rule with groups, read once for all partitions."""
    known = {reconcile_measure(rule) for rule in rules if rule.by}
    found: dict[tuple[str, str, str], dict[Values, Measurement]] = {}
    for (scope, partition, name), measurement in numbers.by_place.items() if known else ():
        at = name.find(" [")
        while at > 0:
            if name[:at] in known and (values := _values(name[at + 1 :])) is not None:
                found.setdefault((scope, partition, name[:at]), {})[values] = measurement
                break
            at = name.find(" [", at + 1)
    return found


def _values(text: str) -> Values | None:
    try:
        return tuple(json.loads(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Pair:
    """One group (or all rows) on both sides; ``off`` None: no numbers, so that only equal is equal."""

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


def judge_balance(rule: Reconciliation, partition: str | None, numbers: Numbers, groups: Groups) -> CheckResult:
    """What a reconciliation says about a partition; None: about the run as a whole."""
    sides = input_scope(rule.input), CANDIDATE
    if rule.by:
        return _grouped(rule, partition, numbers, groups, sides)
    found = [numbers.get(scope, partition or "", reconcile_measure(rule)) for scope in sides]
    source, target = found
    if source is None or target is None:
        return _unmeasured(rule, partition)
    limit = Limit.parse(rule.tolerance)
    pair = _pair((), source, target, limit)
    if pair.off is None:
        level = BLOCK if pair.is_beyond else OK
        return CheckResult(rule.name, partition, pair.target, level, _both(rule, pair))
    inexact = "" if source.exact and target.exact else " (floating point, not exact)"
    message = f"{_both(rule, pair)}{inexact}; they differ by {shown(abs(pair.off))}, allowed {limit.text}"
    return CheckResult(rule.name, partition, shown(pair.off), BLOCK if pair.is_beyond else OK, message)


def _grouped(
    rule: Reconciliation, partition: str | None, numbers: Numbers, groups: Groups, sides: tuple[str, str]
) -> CheckResult:
    place = partition or ""
    found = [groups.get((scope, place, reconcile_measure(rule)), {}) for scope in sides]
    counted = [numbers.get(scope, place, groups_measure(rule.name)) for scope in sides]
    if any(count is None or count.value != str(len(side)) for count, side in zip(counted, found, strict=True)):
        return _unmeasured(rule, partition)
    limit = Limit.parse(rule.tolerance)
    source, target = found
    pairs = [_pair(values, source.get(values), target.get(values), limit) for values in source.keys() | target.keys()]
    # sorted by name first, so that equally bad groups are named in the same order every time
    pairs = sorted(sorted(pairs, key=lambda pair: pair.label), key=lambda pair: pair.rank, reverse=True)
    beyond = [pair for pair in pairs if pair.is_beyond]
    worst = pairs[0] if pairs else None
    value = None if worst is None or worst.off is None else shown(worst.off)
    inexact = any(not m.exact for side in found for m in side.values())
    allowed = f"allowed {limit.text}" + (" (floating point, not exact)" if inexact else "")
    by = ", ".join(key.name for key in rule.by)
    if not beyond or worst is None:
        said = (
            f"{plural(len(pairs), 'group')} by {by} on both sides; " if pairs else f"no groups by {by} on either side; "
        )
        most = f"largest difference {shown(abs(worst.off))}, " if worst is not None and worst.off is not None else ""
        return CheckResult(rule.name, partition, value, OK, f"{said}{most}{allowed}")
    message = (
        f"{exact(len(beyond))} of {plural(len(pairs), 'group')} by {by} {'is' if len(beyond) == 1 else 'are'} off, "
        f"{allowed}; {'' if len(beyond) == 1 else 'worst '}{worst.label}: {_both(rule, worst)}{_by(worst)}"
        f"{_others(beyond[1:])}{_one_sided(beyond, rule)}"
    )
    return CheckResult(rule.name, partition, value, BLOCK, message)


def _pair(values: Values, source: Measurement | None, target: Measurement | None, limit: Limit) -> _Pair:
    before, after = (None if side is None else side.value for side in (source, target))
    left, right = (Decimal(0) if side is None else decimal_of(side.value) for side in (source, target))
    only = "output" if source is None else "input" if target is None else ""
    if left is None or right is None:
        return _Pair(values, before, after, None, is_beyond=bool(only) or not same_text(before, after), only_in=only)
    off = right - left
    return _Pair(values, before, after, off, is_beyond=limit.is_exceeded(abs(off), left), only_in=only)


def _both(rule: Reconciliation, pair: _Pair) -> str:
    source = "absent" if pair.only_in == "output" else _said(pair.source)
    target = "absent" if pair.only_in == "input" else _said(pair.target)
    return f"{rule.source} of {rule.input} is {source}, {rule.target} of the output is {target}"


def _said(text: str | None) -> str:
    number = decimal_of(text)
    return str(text) if number is None else shown(number)


def _by(pair: _Pair) -> str:
    return "" if pair.off is None else f" (off by {shown(pair.off)})"


def _others(pairs: list[_Pair]) -> str:
    named = [f"{pair.label}{_by(pair)}" for pair in pairs[:NAMED]]
    more = [f"{exact(len(pairs) - NAMED)} more"] if len(pairs) > NAMED else []
    return f"; then {', '.join([*named, *more])}" if named else ""


def _one_sided(pairs: list[_Pair], rule: Reconciliation) -> str:
    places = {"input": rule.input, "output": "the output"}
    counts = {place: sum(pair.only_in == side for pair in pairs) for side, place in places.items()}
    told = [f"{exact(number)} only in {place}" for place, number in counts.items() if number]
    return f"; {', '.join(told)}" if told else ""


def _unmeasured(rule: Reconciliation, partition: str | None) -> CheckResult:
    return CheckResult(rule.name, partition, None, BLOCK, "was not measured")
