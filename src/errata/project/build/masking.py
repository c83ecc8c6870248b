"""Refuse rules whose results would expose values of classified columns: groups, quantiles, shares, minimum. Pure.

Measurements are stored and shown to everyone who reads a verdict, so they cannot be masked afterwards. Counts and sums
of classified columns are not values of a row and stay allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from errata.model.product import Metric, Product
from errata.project.problems import ProblemReport
from errata.text.sql_names import find_column

Path = tuple[str | int, ...]

_PICKS = re.compile(r"\b(min|max|median|percentile|bit_and|bit_or|bit_xor)\s*\(", re.IGNORECASE)
"""Aggregates that return a value of a row; bit aggregates over one row return that row's bits."""


def refuse_exposing_rules(product: Product, report: ProblemReport) -> None:
    """Report every rule that would show values of a classified column."""
    hidden = product.classified
    if not hidden:
        return
    folded = {name.casefold() for name in hidden}
    for path, column, shows in _iterate_shown_columns(product):
        if column.casefold() in folded:
            report.at(path, f"{shows}, and this column is classified")
    for path, text in _iterate_groups(product, report):
        if found := find_column(text, hidden):
            said = f"groups are named by their values, and {found} is classified; expected other columns"
            report.at(path, said)
    for path, text in _iterate_aggregates(product):
        refuse_exposing_aggregate(text, hidden, path, report)


def refuse_exposing_aggregate(text: str, classified: Sequence[str], path: Path, report: ProblemReport) -> None:
    """Report an aggregate that returns a value of a classified column."""
    for picked in _PICKS.finditer(text):
        inside = _read_argument(text, picked.end())
        if found := find_column(inside, classified):
            said = f"{picked[1].lower()}() shows a value of a row, and {found} is classified"
            report.at(path, f"{said}; expected a count, a sum or another column")
            break


def _iterate_shown_columns(product: Product) -> Iterator[tuple[Path, str, str]]:
    """Columns of which a rule shows values, and how."""
    for n, check in enumerate(product.checks):
        if check.metric is Metric.FRESHNESS:
            for column in check.columns:
                yield ("checks", n, "column"), column, "freshness shows the newest value"
    for n, rule in enumerate(product.distribution):
        shows = "shares are named by the values" if rule.shares else "a quantile shows a value of a row"
        yield ("distribution", n, "column"), rule.column, shows


def _iterate_groups(product: Product, report: ProblemReport) -> Iterator[tuple[Path, str]]:
    for n, rule in enumerate(product.reconcile):
        for m, key in enumerate(rule.by):
            named: Path = ("reconcile", n, "by", key.name)
            if report.text_at(("reconcile", n, "by", m)):
                yield ("reconcile", n, "by", m), key.target
            elif report.text_at(named):
                yield named, key.target
            else:
                yield (*named, "source"), key.source
                yield (*named, "target"), key.target


def _iterate_aggregates(product: Product) -> Iterator[tuple[Path, str]]:
    for n, rule in enumerate(product.reconcile):
        yield ("reconcile", n, "source"), rule.source
        yield ("reconcile", n, "target"), rule.target
    for n, comparison in enumerate(product.compare):
        yield ("compare", n, "metric"), comparison.metric
    for n, control in enumerate(product.control):
        yield ("control", n, "metric"), control.metric


def _read_argument(text: str, start: int) -> str:
    """The argument text from ``start``, just after an opening parenthesis, to its closing parenthesis."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]
