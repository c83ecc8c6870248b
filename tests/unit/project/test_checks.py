from __future__ import annotations

import pytest

from errata.model.product import Check, Comparison, Metric, Reconciliation, Threshold
from errata.project import load_project
from unit.project.conftest import Write
from unit.project.test_load import problems_of, product_with

METRICS = (
    "rowCount, nullValues, missingValues, invalidValues, duplicateValues, expression, not_null, unique, accepted_values"
)


def checks_with(write: Write, *lines: str) -> tuple[Check, ...]:
    return product_with(write, "checks:\n" + "".join(f"  - {line}\n" for line in lines)).checks


def test_checks_get_names_from_what_they_measure(write: Write):
    """A check without a name is called by its metric and columns."""
    checks = checks_with(
        write,
        "{metric: rowCount, mustBeGreaterThan: 0}",
        "{metric: nullValues, column: account_id, mustBe: 0}",
        "{metric: duplicateValues, columns: [a, b], mustBe: 0}",
        '{name: no_negative_gross, expression: "gross < 0", mustBe: 0}',
    )
    assert [check.name for check in checks] == [
        "rowCount",
        "nullValues(account_id)",
        "duplicateValues(a,b)",
        "no_negative_gross",
    ]
    assert [check.metric for check in checks] == [
        Metric.ROW_COUNT,
        Metric.NULL_VALUES,
        Metric.DUPLICATE_VALUES,
        Metric.EXPRESSION,
    ]
    assert all((check.unit, check.severity) == ("rows", "block") for check in checks)


def test_dbt_names_are_aliases_with_dbts_threshold(write: Write):
    """`not_null`, `unique` and `accepted_values` mean zero offenders unless said otherwise."""
    checks = checks_with(
        write,
        "{metric: not_null, column: a}",
        "{metric: unique, column: a}",
        "{metric: accepted_values, column: a, validValues: [1, x]}",
        "{name: few, metric: not_null, column: a, mustBeLessThan: 3, severity: warn}",
    )
    assert [check.name for check in checks[:3]] == ["nullValues(a)", "duplicateValues(a)", "invalidValues(a)"]
    assert all(check.threshold == Threshold("mustBe", "0") for check in checks[:3])
    assert checks[3].threshold == Threshold("mustBeLessThan", "3")
    assert checks[3].severity == "warn"


@pytest.mark.parametrize(
    "line,said",
    [
        ("{mustBe: 0}", 'missing key "metric" (or "expression") in checks[0]'),
        ("{metric: nullValues, mustBe: 0}", 'missing key "column" in checks[0], which nullValues needs'),
        ("{metric: duplicateValues, mustBe: 0}", "checks[0]: duplicateValues: expected either column or columns"),
        (
            "{metric: duplicateValues, column: a, columns: [a], mustBe: 0}",
            "checks[0]: duplicateValues: expected either column or columns",
        ),
        ("{metric: invalidValues, column: a, mustBe: 0}", "checks[0]: invalidValues: expected validValues or pattern"),
        ("{expression: a < 0, mustBe: 0}", 'missing key "name" in checks[0], which a check by expression needs'),
        (
            "{metric: rowCount, column: a, mustBe: 0}",
            'the key "column" in checks[0] does not belong to the metric rowCount',
        ),
        (
            "{metric: rowCount, mustBe: 1, unit: percent}",
            'checks[0].unit: rowCount counts rows; expected rows; found "percent"',
        ),
        (
            "{metric: rowcount, mustBe: 1}",
            f'checks[0].metric: expected one of {METRICS} (nearest: "rowCount"); found "rowcount"',
        ),
        ("{metric: rowCount, mustBe: lots}", 'checks[0].mustBe: expected a decimal number such as 0.5; found "lots"'),
        ("{metric: rowCount, mustBe: 1e3}", "checks[0].mustBe: expected a decimal number such as 0.5; found 1e3"),
        ("{metric: rowCount, mustBeBetween: [1]}", "checks[0].mustBeBetween: expected 2 entries"),
        ("{metric: rowCount, mustBeBetween: [2, 1]}", "checks[0].mustBeBetween: expected the lower bound first"),
        (
            "{name: empty, metric: rowCount, mustBe: 1}",
            'checks[0].name: expected a name: one line of text without "=", other than "empty"; found "empty"',
        ),
    ],
)
def test_wrong_checks_are_refused_at_their_line(write: Write, line: str, said: str):
    """Each metric takes its own keys and exactly one threshold."""
    assert problems_of(write(extra=f"checks:\n  - {line}\n")) == [f"products/daily_revenue.yaml:13: {said}"]


@pytest.mark.parametrize("thresholds,found", [("", "none"), (", mustBe: 0, mustNotBe: 1", "mustBe, mustNotBe")])
def test_a_check_has_exactly_one_threshold(write: Write, thresholds: str, found: str):
    """Two thresholds would need a rule for which one counts."""
    (said,) = problems_of(write(extra=f"checks:\n  - {{metric: rowCount{thresholds}}}\n"))
    assert "checks[0]: expected exactly one threshold (mustBe, " in said
    assert said.endswith(f"; found {found}")


def test_rules_have_names_of_their_own_across_sections(write: Write):
    """`--accept NAME=WHY` must mean one rule."""
    root = write(
        extra="checks:\n"
        "  - {metric: rowCount, mustBeGreaterThan: 0}\n"
        "  - {metric: rowCount, mustBeLessThan: 9}\n"
        "compare:\n"
        "  - {name: rowCount, metric: count(*), warn: 5%}\n"
    )
    taken = 'expected a name of its own; "rowCount" is taken'
    assert problems_of(root) == [
        f"products/daily_revenue.yaml:14: checks[1]: {taken}",
        f"products/daily_revenue.yaml:16: compare[0]: {taken}",
    ]


def test_reconciliations_and_comparisons_load(write: Write):
    """Tolerances are decimals or percentages, kept as text; a comparison is called by its metric."""
    root = write(
        extra="reconcile:\n"
        '  - {name: gross, input: transactions, source: "sum(a)", target: "sum(b)", tolerance: 0.01}\n'
        '  - {name: events, input: transactions, source: "count(*)", target: "sum(n)"}\n'
        "compare:\n"
        '  - {metric: "sum(b)", warn: 5%, block: 60%}\n'
    )
    product = load_project(root).products["fin.daily_revenue"]
    assert product.reconcile == (
        Reconciliation("gross", "transactions", "sum(a)", "sum(b)", "0.01"),
        Reconciliation("events", "transactions", "count(*)", "sum(n)", "0"),
    )
    assert product.compare == (Comparison("sum(b)", "sum(b)", "5%", "60%"),)


@pytest.mark.parametrize(
    "section,line,said",
    [
        (
            "reconcile",
            '{name: g, input: txactions, source: "sum(a)", target: "sum(b)"}',
            'reconcile[0].input: expected one of the inputs transactions (nearest: "transactions"); found "txactions"',
        ),
        (
            "reconcile",
            '{name: g, input: transactions, source: "sum(a)", target: "sum(b)", tolerance: -1}',
            "reconcile[0].tolerance: expected a decimal number or a percentage, such as 0.5 or 5%; found -1",
        ),
        ("compare", "{metric: sum(b)}", "compare[0]: expected warn or block or both"),
        (
            "compare",
            "{metric: sum(b), warn: 70%, block: 60%}",
            'compare[0].warn: expected no more than block, 60%; found "70%"',
        ),
        (
            "compare",
            '{metric: "sum(b = 1)", warn: 1%}',
            'missing key "name" in compare[0], whose metric has an "=" in it',
        ),
    ],
)
def test_wrong_rules_are_refused_at_their_line(write: Write, section: str, line: str, said: str):
    """Inputs exist, tolerances are amounts, warnings come before blocks."""
    assert problems_of(write(extra=f"{section}:\n  - {line}\n")) == [f"products/daily_revenue.yaml:13: {said}"]
