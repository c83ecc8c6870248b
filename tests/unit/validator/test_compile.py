"""Checks become aggregates; the text is pinned, because it is what is measured."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import UsageError
from errata.model.product import Check, Comparison, Metric, Reconciliation, Threshold
from errata.validator.compile import RESERVED, compile_plan
from errata.validator.ports import Scan
from unit.validator.manifests import input_pin, manifest

ZERO = Threshold("mustBe", "0")
RAW = input_pin("transactions", "lake.raw.tx", "business_date", "date")
RATES = input_pin("fx_rates", "lake.ref.fx", None, None)
CONTENT = ("account_id", "business_date", "currency", "event_count", "gross", "is_open")


def test_the_whole_plan_of_a_product() -> None:
    """One scan per table with all checks in it; lineage is not content; two rules share their input's scan."""
    run = manifest(
        inputs=(RAW, RATES),
        lineage_columns=("produced_by_run_id",),
        checks=(
            Check("rows", Metric.ROW_COUNT, ZERO),
            Check("account", Metric.NULL_VALUES, ZERO, ("account_id",)),
            Check("either", Metric.NULL_VALUES, ZERO, ("account_id", "currency")),
            Check("blank", Metric.MISSING_VALUES, ZERO, ("currency",)),
            Check("named", Metric.MISSING_VALUES, ZERO, ("currency",), missing_values=("N/A", "it's")),
            Check("currencies", Metric.INVALID_VALUES, ZERO, ("currency",), valid_values=("USD", "EUR")),
            Check("steps", Metric.INVALID_VALUES, ZERO, ("gross",), valid_values=("1.5", "2")),
            Check("shape", Metric.INVALID_VALUES, ZERO, ("currency",), pattern=r"^[A-Z]{3}\b$"),
            Check("keys", Metric.DUPLICATE_VALUES, ZERO, ("account_id", "currency")),
            Check("no_negative_gross", Metric.EXPRESSION, ZERO, expression="gross < 0"),
        ),
        reconcile=(
            Reconciliation("gross", "transactions", "sum(amount)", "sum(gross)"),
            Reconciliation("events", "transactions", "count(*)", "sum(event_count)"),
        ),
        compare=(Comparison("revenue", "sum(gross)", "5%", "60%"),),
    )
    events = "COALESCE(SUM(CAST(`event_count` AS DECIMAL(38, 0))), 0)"
    assert compile_plan(run).scans == (
        Scan(
            "candidate",
            {
                "rowCount": "COUNT(*)",
                "check.account": "COUNT_IF(`account_id` IS NULL)",
                "check.either": "COUNT_IF(`account_id` IS NULL OR `currency` IS NULL)",
                "check.blank": "COUNT_IF(`currency` IS NULL OR CAST(`currency` AS STRING) IN (''))",
                "check.named": "COUNT_IF(`currency` IS NULL OR CAST(`currency` AS STRING) IN ('N/A', 'it\\'s'))",
                "check.currencies": "COUNT_IF(NOT `currency` IN ('USD', 'EUR'))",
                "check.steps": (
                    "COUNT_IF(NOT `gross` IN (CAST('1.5' AS DECIMAL(18, 2)), CAST('2' AS DECIMAL(18, 2))))"
                ),
                "check.shape": "COUNT_IF(NOT `currency` RLIKE '^[A-Z]{3}\\\\b$')",
                "check.no_negative_gross": "COUNT_IF(`gross` < 0)",
                "reconcile.gross": "COALESCE(SUM(`gross`), 0)",
                "reconcile.events": events,
                "compare.revenue": "COALESCE(SUM(`gross`), 0)",
            },
            {"check.keys": ("account_id", "currency")},
            CONTENT,
        ),
        Scan("prior", {"rowCount": "COUNT(*)", "compare.revenue": "COALESCE(SUM(`gross`), 0)"}),
        Scan(
            "input:transactions",
            {
                "rowCount": "COUNT(*)",
                "reconcile.gross": "COALESCE(SUM(`amount`), 0)",
                "reconcile.events": "COUNT(*)",
            },
        ),
    )


def test_a_product_without_rules_is_still_counted_and_checksummed() -> None:
    """Row counts and the candidate's content are evidence, asked for or not; nothing else is scanned for nothing."""
    plan = compile_plan(manifest(inputs=(RAW,)))
    assert [(scan.scope, dict(scan.aggregates), bool(scan.content)) for scan in plan.scans] == [
        ("candidate", {"rowCount": "COUNT(*)"}, True),
        ("prior", {"rowCount": "COUNT(*)"}, False),
    ]


@pytest.mark.parametrize(
    "rules, reason",
    [
        ({"checks": (Check("a", Metric.NULL_VALUES, ZERO, ("nope",)),)}, "found nope"),
        ({"checks": (Check("a", Metric.NULL_VALUES, ZERO),)}, "found none"),
        ({"checks": (Check("a", Metric.DUPLICATE_VALUES, ZERO, ("nope",)),)}, "found nope"),
        ({"checks": (Check("a", Metric.INVALID_VALUES, ZERO, ("currency",)),)}, "validValues or a pattern"),
        ({"checks": (Check("a", Metric.EXPRESSION, ZERO),)}, "needs an expression"),
        ({"checks": (Check("a", Metric.ROW_COUNT, ZERO), Check("a", Metric.ROW_COUNT, ZERO))}, "used 2 times"),
        ({"checks": (Check("a", Metric.ROW_COUNT, ZERO),), "compare": (Comparison("a", "count(*)"),)}, "used 2 times"),
        ({"reconcile": (Reconciliation("a", "no_such", "count(*)", "count(*)"),)}, "input no_such was refused"),
        ({"reconcile": (Reconciliation("a", "fx_rates", "count(*)", "count(*)"),)}, "reference data is not cut"),
        ({"reconcile": (Reconciliation("a", "transactions", "amount", "count(*)"),)}, "reconcile a, source"),
        ({"reconcile": (Reconciliation("a", "transactions", "count(*)", "gross"),)}, "reconcile a, target"),
        ({"compare": (Comparison("a", "gross"),)}, "compare a"),
    ],
)
def test_rules_that_cannot_be_measured_are_refused(rules: dict[str, Any], reason: str) -> None:
    """The refusal names the rule and what is wrong with it, before anything is scanned."""
    with pytest.raises(UsageError, match=reason):
        compile_plan(manifest(inputs=(RAW, RATES), **rules))


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_names_of_built_in_rules_cannot_be_taken(name: str) -> None:
    """Accepting a warning by name must mean one rule."""
    with pytest.raises(UsageError, match="taken by Errata"):
        compile_plan(manifest(checks=(Check(name, Metric.ROW_COUNT, ZERO),)))
