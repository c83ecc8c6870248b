"""Numbers against rules: the verdict over a candidate. Pure; judging again with other thresholds needs no scan.

Every rule says ok, warn or block for each partition it speaks about. A candidate passes when nothing blocks and every
warning was accepted by name; what blocks cannot be accepted. Rules that are always there: ``schema``, ``completeness``
(each planned partition has adopted output), ``adopted`` (the candidate has exactly the adopted rows), ``empty`` (a
partition that had rows, or whose source has, and has none now) and ``foreign`` (an input holds rows of partitions that
its files are not pinned for).

A partition that is empty now is not compared with what it held before: ``empty`` asks that question. A prior value of
zero has no percentage, so where a limit is a percentage any change of it is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, localcontext

from errata.model.manifest import Manifest
from errata.model.product import Check, Comparison, Metric, Reconciliation
from errata.validator.names import check_measure, compare_measure, reconcile_measure
from errata.validator.ports import CANDIDATE, PRIOR, ROW_COUNT, Measurement, input_scope
from errata.validator.thresholds import Limit, holds, threshold_text

__all__ = ["Acceptance", "CandidateFacts", "CheckResult", "Verdict", "judge"]

OK, WARN, BLOCK = "ok", "warn", "block"
_SEVERITY = (OK, WARN, BLOCK)
_PRECISION = 100  # Spark's decimals have up to 38 digits, and nothing here may round a product of two


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """What is known without a scan: adopted rows of every partition that has an adopted chunk, and the schema."""

    adopted_rows: Mapping[str, int]
    columns: Mapping[str, str]  # name → Iceberg type text


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A warning that a person accepts, by the rule's name."""

    name: str
    why: str
    person: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one rule says about one partition (None: about the candidate as a whole)."""

    name: str
    partition: str | None
    value: str | None
    level: str  # ok | warn | block
    message: str
    accepted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results; ``passed`` when nothing blocks and every warning is accepted."""

    passed: bool
    checks: tuple[CheckResult, ...]
    unused_acceptances: tuple[str, ...] = field(default=())

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """What stands in the way."""
        return tuple(c for c in self.checks if c.level == BLOCK or (c.level == WARN and c.accepted_by is None))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Measurements by where they were taken."""

    by_place: Mapping[tuple[str, str, str], Measurement]

    def get(self, scope: str, partition: str, name: str) -> Measurement | None:
        return self.by_place.get((scope, partition, name))

    def rows(self, scope: str, partition: str) -> int | None:
        found = self.get(scope, partition, ROW_COUNT)
        return None if found is None or found.value is None else int(found.value)


def judge(
    manifest: Manifest,
    measurements: Iterable[Measurement],
    facts: CandidateFacts,
    acceptances: Iterable[Acceptance] = (),
) -> Verdict:
    """The verdict; for other thresholds, pass the manifest with its rules replaced."""
    numbers = _Numbers({(m.scope, m.partition, m.name): m for m in measurements})
    accepted = {a.name: a for a in acceptances}
    with localcontext(prec=_PRECISION):
        results = tuple(_accept(result, accepted) for result in _results(manifest, numbers, facts))
    warned = {result.name for result in results if result.level == WARN}
    open_problems = any(r.level == BLOCK or (r.level == WARN and r.accepted_by is None) for r in results)
    return Verdict(not open_problems, results, tuple(sorted(set(accepted) - warned)))


def _accept(result: CheckResult, accepted: Mapping[str, Acceptance]) -> CheckResult:
    acceptance = accepted.get(result.name)
    if result.level != WARN or acceptance is None:
        return result
    return CheckResult(
        result.name, result.partition, result.value, result.level, result.message, accepted_by=acceptance.person
    )


def _results(manifest: Manifest, numbers: _Numbers, facts: CandidateFacts) -> Iterator[CheckResult]:
    yield _schema(manifest, facts)
    yield from _foreign(manifest, numbers)
    for partition in manifest.partitions:
        yield _completeness(partition, facts)
        yield _adopted(partition, numbers, facts)
        yield _empty(partition, manifest, numbers)
        for check in manifest.checks:
            yield _check(check, partition, numbers)
        for rule in manifest.reconcile:
            yield _reconcile(rule, partition, numbers)
        for comparison in manifest.compare:
            yield _compare(comparison, partition, numbers)


def _schema(manifest: Manifest, facts: CandidateFacts) -> CheckResult:
    planned, found = manifest.target.columns, facts.columns
    differences = [f"{name} is missing" for name in planned if name not in found]
    differences += [f"{name} is new" for name in found if name not in planned]
    differences += [
        f"{name} is {found[name]}, planned {kind}" for name, kind in planned.items() if found.get(name, kind) != kind
    ]
    if differences:
        return CheckResult("schema", None, None, BLOCK, f"columns differ from the plan: {'; '.join(differences)}")
    return CheckResult("schema", None, None, OK, f"{len(planned)} columns as planned")


def _foreign(manifest: Manifest, numbers: _Numbers) -> Iterator[CheckResult]:
    planned = set(manifest.partitions)
    for scope, partition, name in numbers.by_place:
        if name == ROW_COUNT and partition not in planned:
            rows = numbers.rows(scope, partition)
            message = f"{scope} has {rows} rows of {partition}, which was not asked for"
            yield CheckResult("foreign", partition, str(rows), BLOCK, message)


def _completeness(partition: str, facts: CandidateFacts) -> CheckResult:
    if partition not in facts.adopted_rows:
        return CheckResult("completeness", partition, None, BLOCK, "no adopted output for this partition")
    return CheckResult("completeness", partition, None, OK, "output adopted")


def _adopted(partition: str, numbers: _Numbers, facts: CandidateFacts) -> CheckResult:
    rows, adopted = numbers.rows(CANDIDATE, partition), facts.adopted_rows.get(partition, 0)
    if rows is None:
        return _unmeasured("adopted", partition)
    if rows != adopted:
        message = f"the candidate has {rows} rows, {adopted} were adopted"
        return CheckResult("adopted", partition, str(rows), BLOCK, message)
    return CheckResult("adopted", partition, str(rows), OK, f"{rows} rows, as adopted")


def _empty(partition: str, manifest: Manifest, numbers: _Numbers) -> CheckResult:
    rows = numbers.rows(CANDIDATE, partition)
    if rows is None:
        return _unmeasured("empty", partition)
    if rows:
        return CheckResult("empty", partition, str(rows), OK, f"{rows} rows")
    before = numbers.rows(PRIOR, partition) or 0
    sources = {pin.name: numbers.rows(input_scope(pin.name), partition) or 0 for pin in manifest.inputs}
    reasons = [f"it had {before} rows before"] if before else []
    reasons += [f"input {name} has {count} rows" for name, count in sources.items() if count]
    if reasons:
        message = f"the partition has no rows now; {' and '.join(reasons)}"
        return CheckResult("empty", partition, "0", WARN, message)
    return CheckResult("empty", partition, "0", OK, "no rows now, none before and none known in the inputs")


def _check(check: Check, partition: str, numbers: _Numbers) -> CheckResult:
    found = numbers.get(CANDIDATE, partition, check_measure(check))
    rows = numbers.rows(CANDIDATE, partition)
    if found is None or found.value is None or rows is None:
        return _unmeasured(check.name, partition)
    count = Decimal(found.value)
    what = f"{count} of {rows} rows" if check.metric is not Metric.ROW_COUNT else f"{count} rows"
    value = count
    if check.unit == "percent":
        value = count * 100 / rows if rows else Decimal(0)
        what = f"{_short(value)} % ({what})"
    expected = threshold_text(check.threshold, check.unit)
    passed = holds(check.threshold, value)
    level = OK if passed else check.severity
    message = f"{check.metric} is {what}; expected {expected}"
    return CheckResult(
        check.name, partition, _text(_short(value) if check.unit == "percent" else value), level, message
    )


def _reconcile(rule: Reconciliation, partition: str, numbers: _Numbers) -> CheckResult:
    name = reconcile_measure(rule)
    source, target = numbers.get(input_scope(rule.input), partition, name), numbers.get(CANDIDATE, partition, name)
    if source is None or target is None:
        return _unmeasured(rule.name, partition)
    left, right = _decimal(source.value), _decimal(target.value)
    if left is None or right is None:
        level = OK if source.value == target.value else BLOCK
        message = f"{rule.source} of {rule.input} is {source.value}, {rule.target} of the output is {target.value}"
        return CheckResult(rule.name, partition, target.value, level, message)
    limit = Limit.parse(rule.tolerance)
    off = abs(right - left)
    exact = "" if source.exact and target.exact else " (floating point, not exact)"
    message = (
        f"{rule.source} of {rule.input} is {_text(left)}, {rule.target} of the output is {_text(right)}{exact}; "
        f"they differ by {_text(off)}, allowed {limit.text}"
    )
    level = BLOCK if limit.is_exceeded(off, left) else OK
    return CheckResult(rule.name, partition, _text(right - left), level, message)


def _compare(rule: Comparison, partition: str, numbers: _Numbers) -> CheckResult:
    name = compare_measure(rule)
    if not numbers.rows(PRIOR, partition):
        return CheckResult(rule.name, partition, None, OK, "nothing was there before to compare with")
    if numbers.rows(CANDIDATE, partition) == 0:
        return CheckResult(rule.name, partition, None, OK, "the partition has no rows now; see the rule empty")
    old, new = numbers.get(PRIOR, partition, name), numbers.get(CANDIDATE, partition, name)
    if old is None or new is None:
        return _unmeasured(rule.name, partition)
    before, after = _decimal(old.value), _decimal(new.value)
    if before is None or after is None:
        level = OK if old.value == new.value else WARN
        return CheckResult(rule.name, partition, new.value, level, f"{rule.metric} was {old.value}, is {new.value}")
    change = after - before
    level = max(
        (_level(limit, worst, change, before) for limit, worst in _limits(rule)), key=_SEVERITY.index, default=OK
    )
    words = ", ".join(f"{'warns' if worst == WARN else 'blocks'} above {limit.text}" for limit, worst in _limits(rule))
    percent = _short(change * 100 / before.copy_abs()) if before else None
    moved = (
        f"{percent:+} %" if percent is not None else "a change from zero has no percentage" if change else "no change"
    )
    message = f"{rule.metric} was {_text(before)}, is {_text(after)} ({moved}); {words}"
    return CheckResult(rule.name, partition, None if percent is None else f"{percent}%", level, message)


def _limits(rule: Comparison) -> list[tuple[Limit, str]]:
    return [(Limit.parse(text), worst) for text, worst in ((rule.warn, WARN), (rule.block, BLOCK)) if text is not None]


def _level(limit: Limit, worst: str, change: Decimal, before: Decimal) -> str:
    if limit.is_percent and change and not before:
        return WARN
    return worst if limit.is_exceeded(abs(change), before) else OK


def _unmeasured(name: str, partition: str) -> CheckResult:
    return CheckResult(name, partition, None, BLOCK, "was not measured")


def _decimal(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _text(number: Decimal) -> str:
    return format(number, "f")


def _short(percent: Decimal) -> Decimal:
    return percent.quantize(Decimal("0.01"))
