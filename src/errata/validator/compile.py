"""The checks, reconciliations and comparisons of a run manifest as one measure plan. Pure.

Per table there is one set of aggregates, grouped by partition, and at most one two-level aggregate for uniqueness;
the number of scans does not depend on the number of checks. The prior output is counted and compared; its checksum is
taken only when someone asks for a diff. What each metric counts, per partition:

``rowCount``
    rows.
``nullValues``
    rows in which any of the columns is NULL.
``missingValues``
    rows in which any of the columns is NULL or one of ``missingValues`` (the empty string when none are named).
``invalidValues``
    rows in which any of the columns is not NULL and not one of ``validValues``, or does not contain ``pattern`` (a
    Java regular expression; write ``^…$`` for the whole value).
``duplicateValues``
    rows beyond the first of each key; NULLs are equal to each other.
``expression``
    rows for which the condition is true; NULL is not true.

Sums of decimals stay decimal and sums of integer columns of the target are taken as decimal(38, 0), so they are exact.
Sums of integer inputs are 64-bit: exact, or an error. Sums of floating-point columns are measured as Spark adds them,
differ in the last digits from scan to scan, and are marked inexact: give them a tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from errata.errors import UsageError
from errata.model.manifest import Manifest
from errata.model.product import Check, Metric
from errata.validator.expressions import aggregate, row_condition
from errata.validator.names import check_measure, compare_measure, content_columns, reconcile_measure
from errata.validator.ports import CANDIDATE, PRIOR, ROW_COUNT, MeasurePlan, Scan, input_scope

__all__ = ["RESERVED", "compile_plan"]

RESERVED = frozenset({"adopted", "completeness", "empty", "foreign", "schema"})
"""Names of the rules that are always there; a user's rule cannot have them."""

_SPARK_TYPES = {"long": "BIGINT", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "uuid": "STRING"}


def compile_plan(manifest: Manifest) -> MeasurePlan:
    """What to measure, or a usage error that says which rule cannot be."""
    _refuse_names(manifest)
    types = manifest.target.columns
    count = {ROW_COUNT: "COUNT(*)"}
    content = content_columns(manifest)
    rows = {check_measure(c): _count_if(c, types) for c in manifest.checks if c.metric in _CONDITIONS}
    unique = {check_measure(c): _columns(c, types) for c in manifest.checks if c.metric is Metric.DUPLICATE_VALUES}
    totals = {
        reconcile_measure(r): aggregate(r.target, where=f"reconcile {r.name}, target", types=types).sql("spark")
        for r in manifest.reconcile
    }
    compared = {
        compare_measure(c): aggregate(c.metric, where=f"compare {c.name}", types=types).sql("spark")
        for c in manifest.compare
    }
    return MeasurePlan(
        (
            Scan(CANDIDATE, count | rows | totals | compared, unique, content),
            Scan(PRIOR, count | compared),
            *_input_scans(manifest, count),
        )
    )


def _input_scans(manifest: Manifest, count: Mapping[str, str]) -> Iterable[Scan]:
    pins = {pin.name: pin for pin in manifest.inputs}
    for rule in manifest.reconcile:
        if rule.input not in pins:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected one of {', '.join(sorted(pins))}"
            )
        if pins[rule.input].partition is None:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected an input with a partition column, "
                "because reference data is not cut to the partitions"
            )
    for name in sorted({rule.input for rule in manifest.reconcile}):
        sums = {
            reconcile_measure(r): aggregate(r.source, where=f"reconcile {r.name}, source", types=None).sql("spark")
            for r in manifest.reconcile
            if r.input == name
        }
        yield Scan(input_scope(name), {**count, **sums})


def _refuse_names(manifest: Manifest) -> None:
    names = Counter(check.name for check in manifest.checks)
    names.update(rule.name for rule in manifest.reconcile)
    names.update(rule.name for rule in manifest.compare)
    for name, times in names.items():
        if times > 1 or name in RESERVED:
            why = "is taken by Errata itself" if name in RESERVED else f"is used {times} times"
            raise UsageError(f"the rule name {name} was refused; expected one name for one rule, but it {why}")


def _null_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    return _any(_column(name).is_(exp.null()) for name in _columns(check, types))


def _missing_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    texts = [exp.Literal.string(text) for text in check.missing_values or ("",)]
    return _any(
        exp.or_(_column(name).is_(exp.null()), exp.cast(_column(name), "STRING").isin(*texts))
        for name in _columns(check, types)
    )


def _invalid_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    if not check.valid_values and check.pattern is None:
        raise UsageError(f"check {check.name} was refused; invalidValues needs validValues or a pattern")
    # comparing NULL gives NULL, which is not counted: a NULL is missing, not invalid
    wrong = []
    for name in _columns(check, types):
        if check.valid_values:
            wrong.append(exp.not_(_column(name).isin(*(_literal(text, types[name]) for text in check.valid_values))))
        if check.pattern is not None:
            matches = exp.RegexpLike(this=_text(name, types), expression=exp.Literal.string(check.pattern))
            wrong.append(exp.not_(matches))
    return _any(wrong)


def _expression(check: Check, types: Mapping[str, str]) -> exp.Expr:
    if not check.expression:
        raise UsageError(f"check {check.name} was refused; metric expression needs an expression")
    return row_condition(check.expression, where=f"check {check.name}", types=types)


_CONDITIONS: dict[Metric, Callable[[Check, Mapping[str, str]], exp.Expr]] = {
    Metric.NULL_VALUES: _null_values,
    Metric.MISSING_VALUES: _missing_values,
    Metric.INVALID_VALUES: _invalid_values,
    Metric.EXPRESSION: _expression,
}


def _count_if(check: Check, types: Mapping[str, str]) -> str:
    return exp.CountIf(this=_CONDITIONS[check.metric](check, types)).sql("spark")


def _columns(check: Check, types: Mapping[str, str]) -> tuple[str, ...]:
    unknown = [name for name in check.columns if name not in types]
    if unknown or not check.columns:
        found = unknown[0] if unknown else "none"
        raise UsageError(
            f"check {check.name} ({check.metric}): expected columns of the target, found {found}",
            hint=f"columns are: {', '.join(types)}",
        )
    return check.columns


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def _text(name: str, types: Mapping[str, str]) -> exp.Expr:
    return _column(name) if types[name] == "string" else exp.cast(_column(name), "STRING")


def _literal(text: str, kind: str) -> exp.Expr:
    literal = exp.Literal.string(text)
    return literal if kind == "string" else exp.cast(literal, _SPARK_TYPES.get(kind, kind.upper()), dialect="spark")


def _any(terms: Iterable[exp.Expr]) -> exp.Expr:
    return exp.or_(*terms)
