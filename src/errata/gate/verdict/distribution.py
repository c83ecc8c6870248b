"""Judge distribution rules: how far quantiles of a column, or the shares of its values, moved. Pure.

The reference is the prior output, or the median of the control partitions. A quantile is judged like the aggregate of
a comparison; a share by the percentage points it moved, because a rare value doubles easily. One finding per partition
names the largest movements. A column with too many values to be categories, and too few controls, give a warning,
because nothing was compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from errata.gate.measure.names import quantile_measure, shares_measure
from errata.gate.verdict.compare import judge_limits, parse_limits
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
from errata.gate.verdict.robust import median
from errata.model.manifest import Manifest
from errata.model.partition import list_comparable
from errata.model.product import Distribution
from errata.ports.measure import CANDIDATE, CONTROL, MAX_CATEGORIES, PRIOR, Measurement, decode_shares
from errata.text.numbers import plural
from errata.views.checks import CheckResult

_SHOWN = 3
_LONGEST = 40
ESTIMATE = "ranks within 0.01 % of the rows"
"""The stated error of quantiles; see :data:`errata.gate.measure.distribution.RANK_ERROR`."""


def judge_distribution(
    rule: Distribution, partition: str, manifest: Manifest, numbers: MeasurementIndex
) -> CheckResult:
    """Judge a distribution rule for a partition."""
    if numbers.rows(CANDIDATE, partition) == 0:
        return CheckResult(rule.name, partition, None, OK, "the partition has no rows now; see the rule empty")
    if rule.against == "prior" and not numbers.rows(PRIOR, partition):
        return CheckResult(rule.name, partition, None, OK, "nothing was there before to compare with")
    places = _list_places(rule, partition, manifest)
    found = numbers.rows(CANDIDATE, partition)
    if found is None or any(numbers.rows(scope, name) is None for scope, name in places):
        return build_unmeasured(rule.name, partition)
    # a control partition that was emptied since planning has no rows to compare with
    held = [(scope, name) for scope, name in places if numbers.rows(scope, name)]
    if rule.against == "control" and len(held) < rule.least:
        message = (
            f"{rule.column} has {plural(len(held), 'comparable partition')} with rows outside the run, expected at "
            f"least {rule.least}; nothing was compared"
        )
        return CheckResult(rule.name, partition, None, WARN, message)
    judge = _judge_shares if rule.shares else _judge_quantiles
    return judge(rule, partition, numbers, held)


def _list_places(rule: Distribution, partition: str, manifest: Manifest) -> list[tuple[str, str]]:
    """Scope and partition of everything that the partition is compared with."""
    if rule.against == "prior":
        return [(PRIOR, partition)]
    within = set(list_comparable(manifest.target.grain, partition, rule.reach))
    return [(CONTROL, name) for name in manifest.control_partitions.get(partition, ()) if name in within]


def _name_reference(rule: Distribution, held: Sequence[tuple[str, str]]) -> str:
    return "was" if rule.against == "prior" else f"median of {plural(len(held), 'control')}"


# ------------------------------------------------------------------------------------------------------------ quantiles


def _judge_quantiles(
    rule: Distribution, partition: str, numbers: MeasurementIndex, held: Sequence[tuple[str, str]]
) -> CheckResult:
    levels, told, moves = [OK], list[str](), list[Decimal]()
    for quantile in rule.quantiles:
        name = quantile_measure(rule, quantile)
        found = numbers.get(CANDIDATE, partition, name)
        others = [numbers.get(scope, other, name) for scope, other in held]
        if found is None or None in others:
            return build_unmeasured(rule.name, partition)
        level, said, moved = _judge_quantile(rule, quantile, found, [one for one in others if one is not None], held)
        levels.append(level)
        told.append(said)
        moves += [] if moved is None else [moved]
    worst = max(moves, key=abs, default=None)
    message = f"{rule.column}: {'; '.join(told)}; {_format_limits(rule)}; {ESTIMATE}"
    level = max(levels, key=SEVERITY.index)
    return CheckResult(rule.name, partition, None if worst is None else f"{worst}%", level, message)


def _judge_quantile(
    rule: Distribution,
    quantile: str,
    found: Measurement,
    others: Sequence[Measurement],
    held: Sequence[tuple[str, str]],
) -> tuple[str, str, Decimal | None]:
    """Level, words and percentage of one quantile."""
    known = [number for one in others if (number := parse_decimal(one.value)) is not None]
    before = None if len(known) < len(others) or not known else median(known)
    after, what = parse_decimal(found.value), f"{_format_quantile(quantile)} {_name_reference(rule, held)}"
    if before is None or after is None:
        # a number that disappeared counts as the largest possible movement, as in a comparison
        is_same = rule.against == "prior" and is_same_text(others[0].value, found.value)
        is_lost = before is not None and rule.block is not None
        shown = _format_number(before) if before is not None else others[0].value if len(others) == 1 else "no number"
        return (
            OK if is_same else BLOCK if is_lost else WARN,
            f"{what} {shown or 'NULL'}, is {found.value or 'NULL'}",
            None,
        )
    change = after - before
    percent = round_percent(change * 100 / abs(before)) if before else None
    moved = f"{percent:+} %" if percent is not None else "a change from zero" if change else "no change"
    said = f"{what} {_format_number(before)}, is {_format_number(after)} ({moved})"
    return judge_limits(rule, change, before), said, percent


def _format_quantile(quantile: str) -> str:
    """The usual name of a quantile.

    >>> _format_quantile("0.5"), _format_quantile("0.999")
    ('p50', 'p99.9')
    """
    return f"p{format_decimal((Decimal(quantile) * 100).normalize())}"


def _format_number(number: Decimal) -> str:
    """At most six decimal places: a median of two may have more than the column."""
    text = format_decimal(number)
    return text if len(text.partition(".")[2]) <= 6 else format_decimal(number.quantize(Decimal("0.000001")))


# --------------------------------------------------------------------------------------------------------------- shares


def _judge_shares(
    rule: Distribution, partition: str, numbers: MeasurementIndex, held: Sequence[tuple[str, str]]
) -> CheckResult:
    name = shares_measure(rule)
    found = numbers.get(CANDIDATE, partition, name)
    others = [numbers.get(scope, other, name) for scope, other in held]
    if found is None or None in others:
        return build_unmeasured(rule.name, partition)
    measured = [one for one in others if one is not None]
    if found.value is None or any(one.value is None for one in measured):
        message = (
            f"{rule.column} has more than {MAX_CATEGORIES:,} different values in a partition, too many to be "
            "categories; nothing was compared"
        )
        return CheckResult(rule.name, partition, None, WARN, message)
    now, before = _to_shares(found.value), [_to_shares(one.value or "[]") for one in measured]
    usual = _take_medians(before)
    changes = {
        value: now.get(value, Fraction(0)) - usual.get(value, Fraction(0)) for value in dict.fromkeys((*usual, *now))
    }
    ordered = sorted(changes.items(), key=lambda item: (-abs(item[1]), item[0] or ""))
    worst = Decimal(0) if not ordered else _to_percent(ordered[0][1])
    level = max(
        (worst_level for limit, worst_level in parse_limits(rule)
         if any(abs(change) * 100 > Fraction(limit.amount) for change in changes.values())),
        key=SEVERITY.index, default=OK,
    )  # fmt: skip
    reference = _name_reference(rule, held)
    told = [
        f"{_format_value(value)} {reference} {_to_percent(usual.get(value, Fraction(0)))} %, is "
        f"{_to_percent(now.get(value, Fraction(0)))} % ({_to_percent(change):+} points)"
        for value, change in ordered[:_SHOWN]
        if change
    ]
    told = told or [f"the shares are those of {'before' if rule.against == 'prior' else 'the controls'}"]
    message = f"{rule.column}, {plural(len(changes), 'value')}: {'; '.join(told)}; {_format_limits(rule)}"
    return CheckResult(rule.name, partition, f"{worst}%", level, message)


def _to_shares(text: str) -> dict[str | None, Fraction]:
    rows = decode_shares(text)
    total = sum(rows.values())
    return {value: Fraction(count, total) for value, count in rows.items()}


def _take_medians(shares: Sequence[Mapping[str | None, Fraction]]) -> dict[str | None, Fraction]:
    """The median share of every value; a partition that lacks a value has 0 of it."""
    if len(shares) == 1:
        return dict(shares[0])
    values = dict.fromkeys(value for one in shares for value in one)
    return {value: _median(sorted(one.get(value, Fraction(0)) for one in shares)) for value in values}


def _median(ordered: Sequence[Fraction]) -> Fraction:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _to_percent(share: Fraction) -> Decimal:
    return round_percent(Decimal(share.numerator) * 100 / share.denominator)


def _format_value(value: str | None) -> str:
    if value is None:
        return "NULL"
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")


def _format_limits(rule: Distribution) -> str:
    unit: Callable[[str], str] = (lambda text: text.replace("%", "points")) if rule.shares else (lambda text: text)
    return ", ".join(
        f"{'warns' if level == WARN else 'blocks'} above {unit(limit.text)}" for limit, level in parse_limits(rule)
    )
