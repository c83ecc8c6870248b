"""Balances in groups and control periods as product files write them."""

from __future__ import annotations

import pytest

from errata.model.product import Control, GroupKey, Reconciliation
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of, product_with

RULE = 'name: g, input: transactions, source: "sum(a)", target: "sum(b)"'


def test_groups_are_columns_or_expressions_of_each_side(write: Write):
    """A list names columns of both sides; a mapping gives one expression for both, or one for each."""
    product = product_with(
        write,
        "reconcile:\n"
        f"  - {{{RULE}, by: [currency, region]}}\n"
        f"  - {{{RULE.replace('g,', 'h,')}, per: run, where: is_open, source_where: a > 0, target_where: b > 0,\n"
        "     by: {jurisdiction: upper(j), month: {source: trunc(at), target: trunc(d)}}}\n",
    )
    columns = tuple(GroupKey(name, name, name) for name in ("currency", "region"))
    keys = (GroupKey("jurisdiction", "upper(j)", "upper(j)"), GroupKey("month", "trunc(at)", "trunc(d)"))
    assert product.reconcile == (
        Reconciliation("g", "transactions", "sum(a)", "sum(b)", by=columns),
        Reconciliation(
            "h", "transactions", "sum(a)", "sum(b)", "0", keys, "is_open", "a > 0", "b > 0", per="run"
        ),
    )  # fmt: skip


def test_controls_have_defaults(write: Write):
    """Four weeks around, three controls, 3.5 and 8; a limit that is left out beside another does not count."""
    product = product_with(
        write,
        "control:\n  - {metric: count(*)}\n"
        "  - {name: gross, metric: sum(b), weeks: 8, least: 5, warn: 2.5}\n"
        "  - {name: max, metric: max(b), block: 20}\n",
    )
    assert product.control == (
        Control("control(count(*))", "count(*)", 4, 3, "3.5", "8"),
        Control("gross", "sum(b)", 8, 5, "2.5", None),
        Control("max", "max(b)", 4, 3, None, "20"),
    )


@pytest.mark.parametrize(
    "section,line,said",
    [
        ("reconcile", f"{{{RULE}, by: [a, a]}}", 'reconcile[0].by[1]: given twice; found "a"'),
        ("reconcile", f"{{{RULE}, by: []}}", "reconcile[0].by: expected at least 1 entry"),
        ("reconcile", f"{{{RULE}, by: {{}}}}", "reconcile[0].by: expected at least 1 entry"),
        ("reconcile", f"{{{RULE}, by: currency}}", 'reconcile[0].by: expected a mapping; found "currency"'),
        ("reconcile", f"{{{RULE}, by: {{m: {{source: a}}}}}}", 'missing key "target" in reconcile[0].by.m'),
        ("reconcile", f"{{{RULE}, per: day}}", 'reconcile[0].per: expected one of partition, run; found "day"'),
        ("control", "{metric: n(), years: 3}", 'the key "years" in control[0] does not fit a target by day; use weeks'),
        ("control", "{metric: n(), weeks: 1}", "control[0].least: expected at most 2, because there are no more"),
        ("control", "{metric: n(), warn: 9, block: 8}", "control[0].warn: expected no more than block, 8; found 9"),
        ("control", "{metric: n(), warn: 0}", "control[0].warn: expected a score above 0; found 0"),
        ("control", "{metric: max(a = 1)}", 'missing key "name" in control[0], whose metric has an "=" in it'),
    ],
)  # fmt: skip
def test_wrong_groups_and_controls_are_refused_at_their_line(write: Write, section: str, line: str, said: str):
    """What is missing or does not fit the grain is said where it stands."""
    assert problems_of(write(extra=f"{section}:\n  - {line}\n")) == [f"products/daily_revenue.yaml:13: {said}"]


@pytest.mark.parametrize("grain", ["year", "value"])
def test_years_and_values_have_no_controls(write: Write, grain: str):
    """Nothing is comparable with them, so the rule is refused instead of never being met."""
    root = write(product=PRODUCT.replace("grain: day", f"grain: {grain}"), extra="control:\n  - {metric: count(*)}\n")
    said = f"control[0]: partitions by {grain} have no comparable ones; expected hour, day or month"
    assert problems_of(root) == [f"products/daily_revenue.yaml:13: {said}"]


def test_months_are_compared_over_years(write: Write):
    """The same calendar month of other years."""
    root = write(
        product=PRODUCT.replace("grain: day", "grain: month"), extra="control:\n  - {metric: count(*), weeks: 3}\n"
    )
    assert problems_of(root) == [
        'products/daily_revenue.yaml:13: the key "weeks" in control[0] does not fit a target by month; use years'
    ]


def test_an_input_that_is_read_whole_needs_per_run(write: Write):
    """It has no partitions to be balanced by."""
    whole = "  rates: {table: lake.ref.rates}\n"
    rule = 'reconcile:\n  - {name: r, input: rates, source: "count(*)", target: "count(*)"}\n'
    said = "reconcile[0].input: an input that is read whole has no partitions; expected per: run beside it"
    assert problems_of(write(extra=whole + rule)) == [f'products/daily_revenue.yaml:14: {said}; found "rates"']
    assert product_with(write, whole + rule.replace("}", ", per: run}")).reconcile[0].per == "run"
