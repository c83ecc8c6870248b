from __future__ import annotations

import re
from pathlib import Path

import pytest

from errata.model.product import Check, Comparison, Metric, Reconciliation, References, Threshold
from errata.project import load_project
from unit.project.conftest import Write
from unit.project.test_load import problems_of, product_with

METRICS = (
    "rowCount, nullValues, missingValues, invalidValues, duplicateValues, expression, freshness, timestampBounds, "
    "missingReferences, piiValues, not_null, unique, accepted_values, relationships, unique_combination_of_columns, "
    "accepted_range, expression_is_true"
)
VALIDITY = "validValues, pattern, minimum, maximum, minLength, maxLength"


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
        ("{metric: invalidValues, column: a, mustBe: 0}", f"checks[0]: invalidValues: expected one of {VALIDITY}"),
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
        ("{metric: freshness, column: a, mustBeLessThan: 2}", 'missing key "unit" in checks[0], which freshness needs'),
        (
            "{metric: freshness, column: a, mustBeLessThan: 2, unit: percent}",
            'checks[0].unit: freshness is an age; expected minutes, hours, days; found "percent"',
        ),
        (
            "{metric: nullValues, column: a, mustBe: 0, unit: hours}",
            'checks[0].unit: nullValues counts rows; expected rows or percent; found "hours"',
        ),
        (
            "{metric: invalidValues, column: a, minLength: 0, mustBe: 0}",
            "checks[0].minLength: expected a whole number from 1; found 0",
        ),
        (
            "{metric: timestampBounds, column: a, before: 1mo, mustBe: 0}",
            'checks[0].before: expected a whole number and s, min, h or d, such as 5min; found "1mo"',
        ),
        (
            "{metric: missingReferences, column: a, mustBe: 0}",
            'missing key "references" in checks[0], which missingReferences needs',
        ),
        (
            "{metric: missingReferences, column: a, references: {input: txactions, columns: [id]}, mustBe: 0}",
            (
                "checks[0].references.input: expected one of the inputs transactions "
                '(nearest: "transactions"); found "txactions"'
            ),
        ),
        (
            "{metric: missingReferences, column: a, references: {input: transactions, columns: [a, b]}, mustBe: 0}",
            "checks[0].references.columns: expected as many columns as the check has, 1",
        ),
        (
            "{metric: piiValues, kinds: [name], mustBe: 0}",
            'checks[0].kinds[0]: expected one of email, phone, iban, card, ssn, ipv4, ipv6; found "name"',
        ),
        (
            "{metric: nullValues, column: a, pattern: b, mustBe: 0}",
            'the key "pattern" in checks[0] does not belong to the metric nullValues',
        ),
        (
            "{metric: nullValues, column: a, mustBe: 0, per: chunk}",
            'checks[0].per: expected one of partition, run; found "chunk"',
        ),
        (
            "{metric: accepted_values, column: a, values: [b]}",
            'unknown key "values" in checks[0]; dbt\'s values is written validValues',
        ),
        (
            "{metric: accepted_range, column: a, min_value: 0}",
            'unknown key "min_value" in checks[0]; dbt\'s min_value is written minimum',
        ),
        (
            "{metric: not_null, column_name: a}",
            'unknown key "column_name" in checks[0]; dbt\'s column_name is written column',
        ),
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


def test_dbts_relationships_say_where_to_look_in_our_words(write: Write):
    """`to` and `field` name a model and a column there; here it is an input and its columns."""
    root = write(extra="checks:\n  - {metric: relationships, column: a, to: ref('x'), field: id}\n")
    advice = "is written references: {input: NAME, columns: [...]}"
    assert problems_of(root) == [
        f'products/daily_revenue.yaml:13: unknown key "to" in checks[0]; dbt\'s to {advice}',
        f'products/daily_revenue.yaml:13: unknown key "field" in checks[0]; dbt\'s field {advice}',
    ]


def test_every_kind_of_check_is_read(write: Write):
    """Ranges, lengths, ages, bounds, look-ups and personal data arrive as written; checks of the run say so."""
    ranged, length, fresh, bounds, lookup, personal, run, true, combination = checks_with(
        write,
        "{metric: accepted_range, column: a, minimum: 0, maximum: 2026-01-31}",
        "{metric: invalidValues, column: b, minLength: 2, maxLength: 3, mustBe: 0}",
        "{metric: freshness, column: a, unit: hours, mustBeLessThan: 26}",
        "{metric: timestampBounds, column: a, before: 2h, after: 30min, mustBe: 0}",
        "{metric: relationships, column: c, references: {input: transactions, columns: [id]}}",
        "{metric: piiValues, kinds: [ssn, email], mustBe: 0}",
        "{metric: duplicateValues, column: c, per: run, mustBe: 0}",
        "{name: positive, metric: expression_is_true, expression: gross > 0}",
        "{metric: unique_combination_of_columns, columns: [a, c]}",
    )
    assert (ranged.minimum, ranged.maximum, ranged.threshold) == ("0", "2026-01-31", Threshold("mustBe", "0"))
    assert (length.min_length, length.max_length) == (2, 3)
    assert (fresh.metric, fresh.unit, fresh.name) == (Metric.FRESHNESS, "hours", "freshness(a)")
    assert (bounds.before, bounds.after) == ("2h", "30min")
    assert lookup.references == References("transactions", ("id",))
    assert (personal.kinds, personal.columns, personal.name) == (("email", "ssn"), (), "piiValues")
    assert (run.per, run.name) == ("run", "duplicateValues(c) per run")
    assert (true.metric, true.must_hold, true.expression) == (Metric.EXPRESSION, True, "gross > 0")
    assert (combination.metric, combination.columns) == (Metric.DUPLICATE_VALUES, ("a", "c"))


def test_the_examples_of_the_reference_are_read(write: Write):
    """What the page on checks shows can be copied as it stands."""
    page = (Path(__file__).resolve().parents[3] / "docs/reference/checks.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    rates = "  fx_rates: {table: lake.ref.fx_rates}\n"
    assert len(product_with(write, rates + example).checks) == example.count("metric:")


def test_an_expression_may_have_several_lines(write: Write):
    """YAML's folded text is one expression; where it stands is remembered for refusals at plan time."""
    product = product_with(
        write,
        "checks:\n  - {metric: rowCount, mustBeGreaterThan: 0}\n  - name: long\n    expression: >\n      gross < 0\n"
        "      or net < 0\n    mustBe: 0\n",
    )
    assert product.checks[1].expression == "gross < 0 or net < 0"
    assert (product.lines["checks[0]"], product.lines["checks[1]"], product.lines["checks[1].expression"]) == (
        13,
        14,
        15,
    )


def test_rules_have_names_of_their_own_across_sections(write: Write):
    """`--accept NAME=WHY` must mean one rule."""
    root = write(
        extra="checks:\n"
        "  - {metric: rowCount, mustBeGreaterThan: 0}\n"
        "  - {metric: rowCount, mustBeLessThan: 9}\n"
        "compare:\n"
        "  - {name: rowCount, metric: count(*), warn: 5%}\n"
    )
    taken = 'expected a unique name; "rowCount" is taken'
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
