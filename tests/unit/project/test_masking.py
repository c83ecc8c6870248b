"""What a diff tolerates and what it hides, as product files say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.ports.tables import Column
from unit.planning.worlds import PRODUCT as PLANNED
from unit.planning.worlds import ask, plan
from unit.project.conftest import Write
from unit.project.test_check import Facts, Tables, found, with_transform
from unit.project.test_load import problems_of, product_with


def test_tolerances_and_classified_columns_are_read(write: Write):
    """Amounts keep their text, absolute or in percent."""
    product = product_with(write, "diff: {tolerance: {rate: 0.000001, score: 0.1%}}\nclassified: [account_id, iban]\n")
    assert product.tolerance == {"rate": "0.000001", "score": "0.1%"}
    assert product.classified == ("account_id", "iban")


@pytest.mark.parametrize(
    "extra, said",
    [
        ("diff: {tolerance: {account_id: 1}}\n", "diff.tolerance.account_id: this column identifies rows"),
        ("diff: {tolerance: {rate: -1}}\n", "diff.tolerance.rate: expected a decimal number or a percentage"),
        ("diff: {tolerances: {}}\n", 'unknown key "tolerances"'),
        ("classified: [iban, iban]\n", "classified[1]: given twice"),
        ("classified: [business_date]\n", "classified[0]: partitions are named everywhere by this column"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(write: Write, extra: str, said: str):
    """A key has no tolerance, a partition has no mask."""
    assert any(said in problem for problem in problems_of(write(extra=extra)))


BALANCE = 'name: g, input: transactions, source: "sum(a)", target: "sum(b)"'
SHOWING = {
    f"reconcile:\n  - {{{BALANCE}, by: [currency, Iban]}}\n": "reconcile[0].by[1]: groups are named by their values",
    f"reconcile:\n  - {{{BALANCE}, by: {{who: upper(`iban`)}}}}\n": "reconcile[0].by.who: groups are named",
    f"reconcile:\n  - {{{BALANCE}, by: {{who: {{source: a, target: upper(iban)}}}}}}\n": (
        "reconcile[0].by.who.target: groups are named"
    ),
    "checks:\n  - {metric: freshness, column: iban, unit: days, mustBeLessThan: 1}\n": (
        "checks[0].column: freshness shows the newest value"
    ),
    "compare:\n  - {metric: max(trim(iban)), warn: 5%}\n": "compare[0].metric: max() shows a value of a row",
    "control:\n  - {metric: count(*) + MIN(iban)}\n": "control[0].metric: min() shows a value of a row",
}


@pytest.mark.parametrize("rule", SHOWING)
def test_no_rule_shows_values_of_a_classified_column(write: Write, rule: str):
    """What is measured is stored and shown, so a mask would come too late; the refusal names the line."""
    (problem,) = problems_of(write(extra="classified: [iban]\n" + rule))
    assert problem.startswith(f"products/daily_revenue.yaml:14: {SHOWING[rule]}")
    assert "iban is classified" in problem or "this column is classified" in problem


def test_counts_and_sums_of_classified_columns_stay_possible(write: Write):
    """They are no values of rows; neither is text that only reads like the column's name."""
    rules = (
        "checks:\n  - {metric: piiValues, column: iban, mustBe: 0}\n"
        "compare:\n  - {name: many, metric: max(a) - count(distinct iban), warn: 5%}\n"
        "reconcile:\n  - {name: g, input: transactions, source: sum(iban), target: sum(iban),\n"
        "     by: {k: \"left(a, 'iban')\"}}\n"
    )
    assert product_with(write, "classified: [iban]\n" + rules).compare[0].name == "many"


def test_the_table_must_have_the_columns_and_the_types(write: Write):
    """Only numbers that are not whole may have a tolerance."""
    extra = "diff: {tolerance: {amount: 0.01, n: 1}}\nclassified: [acount_id]\n"
    facts = Facts(columns=(*Facts().columns, Column("amount", "decimal(10, 2)"), Column("n", "long")))
    problems = found(with_transform(write(extra=extra)), Tables({"lake.fin.daily_revenue": facts}))
    assert len(problems) == 2
    assert any("diff.tolerance.n: expected a column of type float, double or decimal; n is long" in p for p in problems)
    assert any(
        'classified[0]: expected a column of lake.fin.daily_revenue (nearest: "account_id")' in p for p in problems
    )


def test_a_plan_seals_them_or_is_refused():
    """The diff of a run follows its manifest; names that the table lacks and whole numbers are refused."""
    product = replace(PLANNED, tolerance={"gross": "0.01"}, classified=("account_id",))
    made = plan(ask(), product=product).manifest
    assert made is not None
    assert (made.tolerance, made.classified) == ({"gross": "0.01"}, ("account_id",))
    wrong = replace(PLANNED, tolerance={"account_id": "1"}, classified=("iban",))
    said = " ".join(verdict.message for verdict in plan(ask(), product=wrong).verdicts if verdict.rule == "schema")
    assert "lacks columns named under classified or diff: iban" in said
    assert "diff.tolerance of account_id: expected float, double or decimal, found string" in said
