"""A plan with rules that cannot be measured is refused with the lines that say so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from errata.errors import NotFound, ProjectFileError
from errata.model.partition import Grain
from errata.model.product import Check, Metric, Product, Reconciliation, Target, Threshold, Transform
from errata.planning.rule_check import refuse_flawed_rules
from unit.gate.manifests import input_pin, manifest

ZERO = Threshold("mustBe", "0")
CHECKS = (
    Check("rows", Metric.ROW_COUNT, ZERO),
    Check("odd", Metric.EXPRESSION, ZERO, expression="reflect('java.lang.System', 'exit') is null"),
)
BALANCE = Reconciliation("gross", "raw", "sum(amnt)", "sum(gross)")
LINES = {"checks[0]": 20, "checks[1]": 22, "checks[1].expression": 23, "reconcile[0]": 30}


def _workspace(describe: Any) -> Any:
    project = SimpleNamespace(redact=lambda text: text)
    return SimpleNamespace(project=project, engines=SimpleNamespace(tables=SimpleNamespace(describe=describe)))


def _product() -> Product:
    target = Target("lake.fin.daily_revenue", "business_date", Grain.DAY)
    return Product("fin.daily_revenue", "o", target, Transform("m:f", "1"), (), path="products/p.yaml", lines=LINES)


def _describe(table: str) -> Any:
    assert table == "lake.raw.tx"
    return SimpleNamespace(columns=[SimpleNamespace(name="amount", type="long")])


def _gone(table: str) -> Any:
    raise NotFound(table)


def test_all_flaws_are_told_at_once_by_file_and_line() -> None:
    """Columns of tables that are read are known too, though no data file is opened."""
    raw = input_pin("raw", "lake.raw.tx", "business_date", "date")
    run = manifest(checks=CHECKS, reconcile=(BALANCE,), inputs=(raw,))
    with pytest.raises(ProjectFileError) as refusal:
        refuse_flawed_rules(_workspace(_describe), _product(), run)
    title, odd, gross = refusal.value.message.splitlines()
    assert title == "the plan was refused: 2 rules of fin.daily_revenue cannot be measured"
    assert odd.startswith("  products/p.yaml:23: checks[1].expression: check odd: expression ")
    assert odd.endswith("this one runs any code, found reflect()")
    assert gross == (
        "  products/p.yaml:30: reconcile[0]: reconcile gross, source: expression 'sum(amnt)' was refused; "
        "expected a column of the table, found amnt; did you mean amount"
    )
    assert [problem["line"] for problem in refusal.value.fields["problems"]] == [23, 30]
    assert refusal.value.state == "nothing was planned; no table was touched"


def test_an_input_that_cannot_be_described_is_not_held_against_its_rules() -> None:
    """Files are not opened and a missing table is reported elsewhere: only what is known is judged."""
    raw = input_pin("raw", "lake.raw.tx", "business_date", "date")
    refuse_flawed_rules(_workspace(_gone), _product(), manifest(reconcile=(BALANCE,), inputs=(raw,)))
