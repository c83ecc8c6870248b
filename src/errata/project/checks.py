"""Checks as written → checks as judged: which keys a metric takes, exactly one threshold, a name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from errata.model.product import Check, Metric, Threshold
from errata.project.files import THRESHOLDS, CheckFile
from errata.project.problems import Report

__all__ = ["checks_of"]

_DBT = {"not_null": Metric.NULL_VALUES, "unique": Metric.DUPLICATE_VALUES, "accepted_values": Metric.INVALID_VALUES}
_OWN_KEYS = ("column", "columns", "expression", "validValues", "pattern", "missingValues")
_TAKES = {
    Metric.ROW_COUNT: frozenset[str](),
    Metric.NULL_VALUES: frozenset({"column"}),
    Metric.MISSING_VALUES: frozenset({"column", "missingValues"}),
    Metric.INVALID_VALUES: frozenset({"column", "validValues", "pattern"}),
    Metric.DUPLICATE_VALUES: frozenset({"column", "columns"}),
    Metric.EXPRESSION: frozenset({"expression"}),
}


def checks_of(files: Sequence[CheckFile], report: Report) -> tuple[Check, ...]:
    """The checks that could be read; what is wrong with the others is in the report."""
    return tuple(check for n, file in enumerate(files) if (check := _check(n, file, report)) is not None)


def _check(n: int, file: CheckFile, report: Report) -> Check | None:
    metric = _metric(n, file, report)
    if metric is None:
        return None
    given = file.model_dump(by_alias=True, exclude_none=True)
    _keys(n, metric, given, report)
    threshold = _threshold(n, file, given, report)
    if threshold is None:
        return None
    columns = tuple(file.columns or ()) or ((file.column,) if file.column else ())
    if len(set(columns)) < len(columns):
        report.at(("checks", n, "columns"), "expected each column once", found=False)
    return Check(
        name=file.name or (f"{metric}({','.join(columns)})" if columns else str(metric)),
        metric=metric,
        threshold=threshold,
        columns=columns,
        expression=file.expression,
        valid_values=tuple(file.valid_values or ()),
        pattern=file.pattern,
        missing_values=tuple(file.missing_values or ()),
        unit=file.unit,
        severity=file.severity,
    )


def _metric(n: int, file: CheckFile, report: Report) -> Metric | None:
    if file.metric is not None:
        return _DBT.get(file.metric) or Metric(file.metric)
    if file.expression is not None:
        return Metric.EXPRESSION
    report.at_key(("checks", n, "metric"), f'missing key "metric" (or "expression") in checks[{n}]')
    return None


def _keys(n: int, metric: Metric, given: dict[str, object], report: Report) -> None:
    def missing(key: str, why: str = "") -> None:
        report.at_key(("checks", n, key), f'missing key "{key}" in checks[{n}], which {why or metric} needs')

    for key in _OWN_KEYS:
        if key in given and key not in _TAKES[metric]:
            report.at_key(("checks", n, key), f'the key "{key}" in checks[{n}] does not belong to the metric {metric}')
    if metric is Metric.DUPLICATE_VALUES:
        if ("column" in given) == ("columns" in given):
            report.at(("checks", n), "duplicateValues: expected either column or columns", found=False)
    elif "column" in _TAKES[metric] and "column" not in given:
        missing("column")
    if metric is Metric.INVALID_VALUES and not {"validValues", "pattern"} & set(given):
        report.at(("checks", n), "invalidValues: expected validValues or pattern", found=False)
    if metric is Metric.EXPRESSION:
        for key in ("name", "expression"):
            if key not in given:
                missing(key, "a check by expression")
    if metric is Metric.ROW_COUNT and given["unit"] == "percent":
        report.at(("checks", n, "unit"), "rowCount counts rows; expected rows")


def _threshold(n: int, file: CheckFile, given: dict[str, object], report: Report) -> Threshold | None:
    found = [key for key in THRESHOLDS if key in given]
    if not found and file.metric in _DBT:
        return Threshold("mustBe", "0")  # as dbt's tests do
    if len(found) != 1:
        said = ", ".join(found) if found else "none"
        report.at(("checks", n), f"expected exactly one threshold ({', '.join(THRESHOLDS)}); found {said}", found=False)
        return None
    operand = given[found[0]]
    if not isinstance(operand, list):
        return Threshold(found[0], str(operand))
    lower, upper = (str(bound) for bound in operand)
    if Decimal(lower) > Decimal(upper):
        report.at(("checks", n, found[0]), "expected the lower bound first", found=False)
    return Threshold(found[0], lower, upper)
