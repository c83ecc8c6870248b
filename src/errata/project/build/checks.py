"""Build checks from a product file: which keys a metric takes, exactly one threshold, a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from errata.model.partition import Grain
from errata.model.product import PII_KINDS, Check, Metric, Threshold
from errata.project.forms import DBT_METRICS, CheckForm, InputForm, narrow
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import hint_nearest
from errata.project.yaml.value_reader import list_keys

_VALIDITY = ("validValues", "pattern", "minimum", "maximum", "minLength", "maxLength")
_TAKES: dict[Metric, tuple[str, ...]] = {
    Metric.ROW_COUNT: (),
    Metric.NULL_VALUES: ("column",),
    Metric.MISSING_VALUES: ("column", "missingValues"),
    Metric.INVALID_VALUES: ("column", *_VALIDITY),
    Metric.DUPLICATE_VALUES: ("column", "columns"),
    Metric.EXPRESSION: ("expression",),
    Metric.FRESHNESS: ("column",),
    Metric.TIMESTAMP_BOUNDS: ("column", "before", "after"),
    Metric.MISSING_REFERENCES: ("column", "columns", "references"),
    Metric.PII_VALUES: ("column", "columns", "kinds"),
}
_OWN_KEYS = tuple(dict.fromkeys(key for keys in _TAKES.values() for key in keys))
THRESHOLDS = {one.path[0]: one.field.name for one in list_keys(CheckForm) if one.path[0].startswith("must")}
_AGES = ("minutes", "hours", "days")


def build_checks(
    files: Sequence[CheckForm], inputs: Mapping[str, InputForm], grain: Grain, report: ProblemReport
) -> tuple[Check, ...]:
    """The valid checks; problems of the others go to the report."""
    found = []
    for n, file in enumerate(files):
        check = _build_check(n, file, report)
        if check is not None:
            _check_references(n, check, inputs, report)
            if check.metric is Metric.TIMESTAMP_BOUNDS and not grain.is_time:
                report.at(("checks", n, "metric"), "timestampBounds needs a target by hour, day, month or year")
            found.append(check)
    return tuple(found)


def _build_check(n: int, file: CheckForm, report: ProblemReport) -> Check | None:
    metric = _resolve_metric(n, file, report)
    if metric is None:
        return None
    given = report.keys_at(("checks", n))
    _check_keys(n, metric, given, report)
    _check_unit(n, metric, file.unit if "unit" in given else None, report)
    threshold = _build_threshold(n, file, given, report)
    if threshold is None:
        return None
    columns = file.columns or ((file.column,) if file.column else ())
    if len(set(columns)) < len(columns):
        report.at(("checks", n, "columns"), "expected each column once", found=False)
    about = f"({','.join(columns)})" if columns else ""
    kinds = tuple(kind for kind in PII_KINDS if kind in (file.kinds or PII_KINDS))
    return narrow(
        Check,
        file,
        name=file.name or f"{metric}{about}{' per run' if file.per == 'run' else ''}",
        metric=metric,
        threshold=threshold,
        columns=columns,
        kinds=kinds if metric is Metric.PII_VALUES else (),
        must_hold=file.metric == "expression_is_true",
    )


def _resolve_metric(n: int, file: CheckForm, report: ProblemReport) -> Metric | None:
    if file.metric:
        return DBT_METRICS.get(file.metric) or Metric(file.metric)
    if file.expression is not None:
        return Metric.EXPRESSION
    report.at_key(("checks", n, "metric"), f'missing key "metric" (or "expression") in checks[{n}]')
    return None


def _check_keys(n: int, metric: Metric, given: set[str], report: ProblemReport) -> None:
    def missing(key: str, why: str = "") -> None:
        report.at_key(("checks", n, key), f'missing key "{key}" in checks[{n}], which {why or metric} needs')

    takes = _TAKES[metric]
    for key in _OWN_KEYS:
        if key in given and key not in takes:
            report.at_key(("checks", n, key), f'the key "{key}" in checks[{n}] does not belong to the metric {metric}')
    if "columns" in takes:
        both, neither = {"column", "columns"} <= given, not {"column", "columns"} & given
        if both or (neither and metric is not Metric.PII_VALUES):
            report.at(("checks", n), f"{metric}: expected either column or columns", found=False)
    elif "column" in takes and "column" not in given:
        missing("column")
    if metric is Metric.INVALID_VALUES and not given & set(_VALIDITY):
        report.at(("checks", n), f"invalidValues: expected one of {', '.join(_VALIDITY)}", found=False)
    if metric is Metric.MISSING_REFERENCES and "references" not in given:
        missing("references")
    if metric is Metric.EXPRESSION:
        for key in ("name", "expression"):
            if key not in given:
                missing(key, "a check by expression")


def _check_unit(n: int, metric: Metric, unit: str | None, report: ProblemReport) -> None:
    if metric is Metric.FRESHNESS:
        if unit is None:
            report.at_key(("checks", n, "unit"), f'missing key "unit" in checks[{n}], which freshness needs')
        elif unit not in _AGES:
            report.at(("checks", n, "unit"), f"freshness is an age; expected {', '.join(_AGES)}")
    elif unit in _AGES:
        report.at(("checks", n, "unit"), f"{metric} counts rows; expected rows or percent")
    elif metric is Metric.ROW_COUNT and unit == "percent":
        report.at(("checks", n, "unit"), "rowCount counts rows; expected rows")


def _check_references(n: int, check: Check, inputs: Mapping[str, InputForm], report: ProblemReport) -> None:
    if check.references is None:
        return
    path = ("checks", n, "references")
    name = check.references.input
    if name not in inputs:
        report.at((*path, "input"), f"expected one of the inputs {', '.join(inputs)}{hint_nearest(name, inputs)}")
    elif inputs[name].own:
        report.at((*path, "input"), "own output cannot be looked up; expected another input")
    if len(check.references.columns) != len(check.columns):
        said = f"expected as many columns as the check has, {len(check.columns)}"
        report.at((*path, "columns"), said, found=False)


def _build_threshold(n: int, file: CheckForm, given: set[str], report: ProblemReport) -> Threshold | None:
    found = [key for key in THRESHOLDS if key in given]
    if not found and file.metric in DBT_METRICS:
        return Threshold("mustBe", "0")  # the default of dbt's tests
    if len(found) != 1:
        said = ", ".join(found) if found else "none"
        report.at(("checks", n), f"expected exactly one threshold ({', '.join(THRESHOLDS)}); found {said}", found=False)
        return None
    operand = getattr(file, THRESHOLDS[found[0]])
    if isinstance(operand, str):
        return Threshold(found[0], operand)
    lower, upper = operand
    if Decimal(lower) > Decimal(upper):
        report.at(("checks", n, found[0]), "expected the lower bound first", found=False)
    return Threshold(found[0], lower, upper)
