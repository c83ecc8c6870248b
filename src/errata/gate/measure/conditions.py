"""Build the SQL condition for the rows that each metric counts. Pure.

``rowCount``
    rows.
``nullValues``
    rows in which any of the columns is NULL.
``missingValues``
    rows in which any of the columns is NULL or one of ``missingValues`` (the empty string when none are named).
``invalidValues``
    rows in which any of the columns is not NULL and not one of ``validValues``, does not contain ``pattern`` (a Java
    regular expression; write ``^…$`` for the whole value), is below ``minimum`` or above ``maximum`` or not a number,
    or has fewer than ``minLength`` or more than ``maxLength`` characters.
``duplicateValues``
    rows beyond the first of each key; NULLs are equal to each other.
``expression``
    rows for which the condition is true; NULL is not true. With ``must_hold``, rows for which it is false.
``timestampBounds``
    rows whose timestamp is more than ``before`` earlier than the start of their partition's interval, or not earlier
    than its end plus ``after``. Rows of the partition ``null`` have no interval and are not counted.
``missingReferences``
    rows whose key contains no NULL and is not among the keys of an input.
``piiValues``
    rows in which any of the columns contains something that looks like one of ``kinds``.
``freshness``
    is not a count: the newest value, whose age is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from sqlglot import exp

from errata.gate.rules.expressions import parse_row_condition
from errata.gate.rules.fit import list_pii_columns
from errata.gate.rules.literals import parse_literal
from errata.gate.rules.patterns import CARD, PII_PATTERNS
from errata.model.duration import to_seconds
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import PII_KINDS, Check, Metric

_PARTITION_TEXTS = {
    Grain.HOUR: "yyyy-MM-dd'T'HH",
    Grain.DAY: "yyyy-MM-dd",
    Grain.MONTH: "yyyy-MM",
    Grain.YEAR: "yyyy",
}


def _match_null(check: Check, manifest: Manifest) -> exp.Expr:
    del manifest
    return _any_of(_column(name).is_(exp.null()) for name in check.columns)


def _match_missing(check: Check, manifest: Manifest) -> exp.Expr:
    del manifest
    texts = [exp.Literal.string(text) for text in check.missing_values or ("",)]
    return _any_of(
        exp.or_(_column(name).is_(exp.null()), exp.cast(_column(name), "STRING").isin(*texts)) for name in check.columns
    )


def _match_invalid(check: Check, manifest: Manifest) -> exp.Expr:
    # comparing NULL gives NULL, which is not counted: a NULL is missing, not invalid
    wrong: list[exp.Expr] = []
    for name in check.columns:
        kind = manifest.target.columns[name]
        if check.valid_values:
            wrong.append(exp.not_(_column(name).isin(*(_build_literal(text, kind) for text in check.valid_values))))
        if check.pattern is not None:
            wrong.append(exp.not_(_match_pattern(_cast_to_text(name, kind), check.pattern)))
        wrong += _match_out_of_range(check, name, kind)
    return _any_of(wrong)


def _match_out_of_range(check: Check, name: str, kind: str) -> Iterable[exp.Expr]:
    if check.minimum is not None:
        yield _column(name) < _build_literal(check.minimum, kind)
    if check.maximum is not None:
        yield _column(name) > _build_literal(check.maximum, kind)
    if (check.minimum is not None or check.maximum is not None) and kind in ("float", "double"):
        yield exp.IsNan(this=_column(name))
    length = exp.Length(this=_column(name))
    if check.min_length is not None:
        yield length.copy() < exp.Literal.number(check.min_length)
    if check.max_length is not None:
        yield length.copy() > exp.Literal.number(check.max_length)


def _match_expression(check: Check, manifest: Manifest) -> exp.Expr:
    types = manifest.target.columns
    condition = parse_row_condition(check.expression or "", where=f"check {check.name}", types=types)
    return exp.not_(condition) if check.must_hold else condition


def _match_out_of_bounds(check: Check, manifest: Manifest) -> exp.Expr:
    grain = manifest.target.grain
    start = _build_partition_start(manifest)
    end = exp.Add(this=start.copy(), expression=_interval(1, str(grain).upper()))
    first, last = _shift_moment(start, exp.Sub, check.before), _shift_moment(end, exp.Add, check.after)
    moments = [exp.cast(_column(name), "TIMESTAMP", dialect="spark") for name in check.columns]
    return _any_of(exp.or_(moment.copy() < first.copy(), moment.copy() >= last.copy()) for moment in moments)


def _build_partition_start(manifest: Manifest) -> exp.Expr:
    """First instant of the partition that a row is in."""
    target = manifest.target
    if target.column_type == "string":
        text = exp.Literal.string(_PARTITION_TEXTS[target.grain])
        return exp.Anonymous(this="TRY_TO_TIMESTAMP", expressions=[_column(target.column), text])
    unit = exp.Literal.string(str(target.grain).upper())
    return exp.Anonymous(this="DATE_TRUNC", expressions=[unit, _column(target.column)])


def _shift_moment(moment: exp.Expr, operator: type[exp.Binary], length: str) -> exp.Expr:
    by = to_seconds(length)
    return operator(this=moment, expression=_interval(by, "SECOND")) if by else moment


def _interval(count: int, unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit))


def _match_pii(check: Check, manifest: Manifest) -> exp.Expr:
    kinds = check.kinds or PII_KINDS
    plain = "|".join(f"(?:{PII_PATTERNS[kind]})" for kind in kinds if kind != CARD)
    found: list[exp.Expr] = []
    for name in list_pii_columns(check, manifest):
        text = _cast_to_text(name, manifest.target.columns[name])
        if plain:
            found.append(_match_pattern(text, plain))
        if CARD in kinds:
            found.append(exp.and_(_match_pattern(text.copy(), PII_PATTERNS[CARD]), _has_card(text)))
    return _any_of(found)


def _has_card(text: exp.Expr) -> exp.Expr:
    """Whether any number that looks like a card number has a valid check digit."""
    one = exp.to_identifier("number", quoted=True)
    arguments = [text.copy(), exp.Literal.string(PII_PATTERNS[CARD]), exp.Literal.number(0)]
    numbers = exp.Anonymous(this="REGEXP_EXTRACT_ALL", expressions=arguments)
    digits = exp.Anonymous(
        this="REGEXP_REPLACE",
        expressions=[exp.column(one.copy()), exp.Literal.string("[ -]"), exp.Literal.string("")],
    )
    test = exp.Lambda(this=exp.Anonymous(this="LUHN_CHECK", expressions=[digits]), expressions=[one])
    return exp.Anonymous(this="EXISTS", expressions=[numbers, test])


CONDITIONS: dict[Metric, Callable[[Check, Manifest], exp.Expr]] = {
    Metric.NULL_VALUES: _match_null,
    Metric.MISSING_VALUES: _match_missing,
    Metric.INVALID_VALUES: _match_invalid,
    Metric.EXPRESSION: _match_expression,
    Metric.TIMESTAMP_BOUNDS: _match_out_of_bounds,
    Metric.PII_VALUES: _match_pii,
}
"""Metrics that count rows by a condition. They assume that :mod:`errata.gate.rules.fit` has accepted the check."""


def count_if_sql(check: Check, manifest: Manifest) -> str:
    """Aggregate that counts a check's rows."""
    return exp.CountIf(this=CONDITIONS[check.metric](check, manifest)).sql("spark")


def newest_value_sql(check: Check) -> str:
    """Aggregate of ``freshness``: the newest value, as text in UTC."""
    (name,) = check.columns
    return exp.cast(exp.Max(this=_column(name)), "STRING").sql("spark")


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def _cast_to_text(name: str, kind: str) -> exp.Expr:
    return _column(name) if kind == "string" else exp.cast(_column(name), "STRING")


def _match_pattern(text: exp.Expr, pattern: str) -> exp.Expr:
    return exp.RegexpLike(this=text, expression=exp.Literal.string(pattern))


def _build_literal(text: str, kind: str) -> exp.Expr:
    value, cast = parse_literal(text, kind)
    if cast is None:
        return exp.Literal.string(text)
    shown = format(value, "f") if isinstance(value, Decimal) else str(value)
    return exp.cast(exp.Literal.string(shown), cast, dialect="spark")


def _any_of(terms: Iterable[exp.Expr]) -> exp.Expr:
    return exp.or_(*terms)
