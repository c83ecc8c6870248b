"""What each metric counts in a row, as a condition; and the columns a check speaks of. Pure.

Per partition:

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from errata.errors import UsageError
from errata.model.product import Check, Metric
from errata.validator.expressions import row_condition

__all__ = ["CONDITIONS", "check_columns", "count_if"]

_SPARK_TYPES = {"long": "BIGINT", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "uuid": "STRING"}


def _null_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    return _any(_column(name).is_(exp.null()) for name in check_columns(check, types))


def _missing_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    texts = [exp.Literal.string(text) for text in check.missing_values or ("",)]
    return _any(
        exp.or_(_column(name).is_(exp.null()), exp.cast(_column(name), "STRING").isin(*texts))
        for name in check_columns(check, types)
    )


def _invalid_values(check: Check, types: Mapping[str, str]) -> exp.Expr:
    if not check.valid_values and check.pattern is None:
        raise UsageError(f"check {check.name} was refused; invalidValues needs validValues or a pattern")
    # comparing NULL gives NULL, which is not counted: a NULL is missing, not invalid
    wrong = []
    for name in check_columns(check, types):
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


CONDITIONS: dict[Metric, Callable[[Check, Mapping[str, str]], exp.Expr]] = {
    Metric.NULL_VALUES: _null_values,
    Metric.MISSING_VALUES: _missing_values,
    Metric.INVALID_VALUES: _invalid_values,
    Metric.EXPRESSION: _expression,
}
"""Metrics that count rows for which a condition holds."""


def count_if(check: Check, types: Mapping[str, str]) -> str:
    """The aggregate that counts a check's rows."""
    return exp.CountIf(this=CONDITIONS[check.metric](check, types)).sql("spark")


def check_columns(check: Check, types: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a check, all of the target; or a usage error."""
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
