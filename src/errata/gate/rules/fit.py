"""Check that a check fits its table: columns, types, values, patterns, inputs. Pure; parses no SQL.

Everything that can be wrong with a check without parsing its expression is refused here, with the key of the product
file that is at fault. ``errata check`` and ``errata plan`` call this before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from errata.errors import UsageError
from errata.gate.rules.literals import TIMES, BadLiteral, is_nested, is_number, parse_literal
from errata.gate.rules.patterns import refuse_pattern
from errata.model.manifest import InputPin, Manifest
from errata.model.product import PII_KINDS, Check, Distribution, Metric

Types = Mapping[str, str]


def refuse_misfit(check: Check, manifest: Manifest) -> None:
    """Raise ``UsageError`` when a check cannot be measured; its field ``key`` is the product file key at fault."""
    _FIT_CHECKS[check.metric](check, manifest)


def refuse_distribution(rule: Distribution, types: Types) -> None:
    """Raise ``UsageError`` when a column is not there, or its values have no quantiles or are no categories."""
    what, kind = f"distribution {rule.name}", types.get(rule.column)
    if kind is None:
        raise UsageError(
            f"{what}: expected a column of the target, found {rule.column}",
            hint=f"columns are: {', '.join(types)}",
            key="column",
        )
    if rule.quantiles and not is_number(kind):
        raise UsageError(f"{what}: expected a column of numbers, found {rule.column} {kind}", key="column")
    if rule.shares and not (kind in _CATEGORIES or kind.startswith("decimal")):
        raise UsageError(
            f"{what}: expected a column whose values are categories ({', '.join(_CATEGORIES)} or decimal), found "
            f"{rule.column} {kind}",
            key="column",
        )


_CATEGORIES = ("string", "boolean", "int", "long", "date")


def require_columns(check: Check, types: Types) -> tuple[str, ...]:
    """Columns of a check; raises ``UsageError`` unless all are columns of the target."""
    unknown = [name for name in check.columns if name not in types]
    if unknown or not check.columns:
        found = unknown[0] if unknown else "none"
        raise UsageError(
            f"check {check.name} ({check.metric}): expected columns of the target, found {found}",
            hint=f"columns are: {', '.join(types)}",
            key=_column_key(check),
        )
    return check.columns


def list_pii_columns(check: Check, manifest: Manifest) -> tuple[str, ...]:
    """Columns to search for personal data: those named, or all text columns except lineage."""
    types = manifest.target.columns
    if check.columns:
        return require_columns(check, types)
    return tuple(name for name, kind in types.items() if kind == "string" and name not in manifest.lineage_columns)


def find_input_types(pin: InputPin) -> Types | None:
    """Column types of an input, if the manifest has them; else None."""
    if pin.columns:
        return pin.columns
    found = {name: kind for schema in pin.schemas for name, kind in schema.items()}
    return found or None


def _column_key(check: Check) -> str:
    return "columns" if len(check.columns) > 1 else "column"


def _build_refusal(check: Check, key: str, expected: str, found: Any) -> UsageError:
    return UsageError(
        f"check {check.name} ({check.metric}): {key} was refused; expected {expected}, found {found}", key=key
    )


def _check_nothing(check: Check, manifest: Manifest) -> None:
    del check, manifest


def _check_column_names(check: Check, manifest: Manifest) -> None:
    require_columns(check, manifest.target.columns)


def _check_key(check: Check, manifest: Manifest) -> None:
    types = manifest.target.columns
    for name in require_columns(check, types):
        if types[name].startswith("map"):
            raise _build_refusal(check, _column_key(check), "columns that can be compared", f"{name}, a {types[name]}")


def _check_validity(check: Check, manifest: Manifest) -> None:
    types = manifest.target.columns
    if not (check.valid_values or check.pattern is not None or _has_bounds(check)):
        raise UsageError(
            f"check {check.name} was refused; invalidValues needs validValues, a pattern, a range or a length",
            key="metric",
        )
    for name in require_columns(check, types):
        kind = types[name]
        for text in check.valid_values:
            _parse_check_literal(check, "validValues", text, kind)
        _check_range(check, name, kind)
        for key, value in (("minLength", check.min_length), ("maxLength", check.max_length)):
            if value is not None and kind != "string":
                raise _build_refusal(check, key, "a column of text", f"{name}, a {kind}")
    if check.pattern is not None:
        refuse_pattern(check.pattern, f"check {check.name}")
    if check.min_length is not None and check.max_length is not None and check.min_length > check.max_length:
        raise _build_refusal(check, "minLength", f"at most maxLength, {check.max_length}", check.min_length)


def _has_bounds(check: Check) -> bool:
    bounds = (check.minimum, check.maximum, check.min_length, check.max_length)
    return any(bound is not None for bound in bounds)


def _check_range(check: Check, name: str, kind: str) -> None:
    given = {"minimum": check.minimum, "maximum": check.maximum}
    bounds = {key: text for key, text in given.items() if text is not None}
    for key in bounds:
        if not is_number(kind) and kind not in TIMES:
            raise _build_refusal(check, key, "a column of numbers, dates or timestamps", f"{name}, a {kind}")
    values: dict[str, Any] = {key: _parse_check_literal(check, key, text, kind) for key, text in bounds.items()}
    if len(values) == 2 and values["minimum"] > values["maximum"]:
        raise _build_refusal(check, "minimum", f"at most maximum, {check.maximum}", check.minimum)


def _parse_check_literal(check: Check, key: str, text: str, kind: str) -> Any:
    try:
        return parse_literal(text, kind)[0]
    except BadLiteral as error:
        raise _build_refusal(check, key, str(error), repr(text)) from None


def _check_moment(check: Check, manifest: Manifest) -> None:
    types = manifest.target.columns
    for name in require_columns(check, types):
        if types[name] not in TIMES:
            raise _build_refusal(
                check, "column", f"a {', '.join(TIMES[:-1])} or {TIMES[-1]}", f"{name}, a {types[name]}"
            )


def _check_bounds(check: Check, manifest: Manifest) -> None:
    if not manifest.target.grain.is_time:
        raise _build_refusal(check, "metric", "a target by hour, day, month or year", f"grain {manifest.target.grain}")
    _check_moment(check, manifest)


def _check_references(check: Check, manifest: Manifest) -> None:
    types, wanted = manifest.target.columns, check.references
    _check_key(check, manifest)
    pins = {pin.name: pin for pin in manifest.inputs if not pin.own}
    if wanted is None or wanted.input not in pins:
        found = "none" if wanted is None else wanted.input
        raise _build_refusal(check, "references", f"one of the inputs {', '.join(pins)}", found)
    if len(wanted.columns) != len(check.columns):
        raise _build_refusal(check, "references", f"{len(check.columns)} columns", len(wanted.columns))
    known = find_input_types(pins[wanted.input])
    if known is None:
        return
    for name, other in zip(check.columns, wanted.columns, strict=True):
        if other not in known:
            raise _build_refusal(check, "references", f"columns of {wanted.input}: {', '.join(known)}", other)
        if _find_type_family(types[name]) != _find_type_family(known[other]):
            what = f"a column of {wanted.input} that compares with {name}, a {types[name]}"
            raise _build_refusal(check, "references", what, f"{other}, a {known[other]}")


def _find_type_family(kind: str) -> str:
    if is_number(kind):
        return "number"
    return "time" if kind in TIMES else "string" if kind == "uuid" else kind


def _check_pii(check: Check, manifest: Manifest) -> None:
    columns = list_pii_columns(check, manifest)
    if not columns:
        raise _build_refusal(check, "column", "a target with columns of text", "none")
    for name in columns:
        if is_nested(manifest.target.columns[name]):
            raise _build_refusal(check, _column_key(check), "columns of one value", f"{name}, nested")
    for kind in check.kinds:
        if kind not in PII_KINDS:
            raise _build_refusal(check, "kinds", f"some of {', '.join(PII_KINDS)}", kind)


def _check_expression(check: Check, manifest: Manifest) -> None:
    del manifest
    if not check.expression:
        raise UsageError(f"check {check.name} was refused; metric expression needs an expression", key="expression")


_FIT_CHECKS: dict[Metric, Callable[[Check, Manifest], None]] = {
    Metric.ROW_COUNT: _check_nothing,
    Metric.NULL_VALUES: _check_column_names,
    Metric.MISSING_VALUES: _check_column_names,
    Metric.INVALID_VALUES: _check_validity,
    Metric.DUPLICATE_VALUES: _check_key,
    Metric.EXPRESSION: _check_expression,
    Metric.FRESHNESS: _check_moment,
    Metric.TIMESTAMP_BOUNDS: _check_bounds,
    Metric.MISSING_REFERENCES: _check_references,
    Metric.PII_VALUES: _check_pii,
}
