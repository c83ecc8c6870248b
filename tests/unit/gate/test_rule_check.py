"""Rules that cannot be measured are found before anything is computed, all of them, each by its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from errata.gate.rules.rule_check import find_flaws
from errata.model.product import Check, Comparison, Metric, Reconciliation, References, Threshold
from unit.gate.manifests import input_pin, manifest

ZERO = Threshold("mustBe", "0")
RAW = input_pin("raw", "lake.raw.tx", "business_date", "date", columns={"id": "string", "amount": "decimal(10, 2)"})
BLIND = input_pin("blind", "files", "business_date", "date")


def test_every_flaw_is_found_with_its_place_and_key() -> None:
    """One wrong rule does not hide the next."""
    run = manifest(
        inputs=(RAW, BLIND),
        checks=(
            Check("fine", Metric.NULL_VALUES, ZERO, ("currency",)),
            Check("no column", Metric.NULL_VALUES, ZERO, ("nope",)),
            Check("bad pattern", Metric.INVALID_VALUES, ZERO, ("currency",), pattern="(a+)+"),
            Check("bad expression", Metric.EXPRESSION, ZERO, expression="rand() > gross"),
            Check("schema", Metric.ROW_COUNT, ZERO),
            Check("no key", Metric.MISSING_REFERENCES, ZERO, ("currency",), references=References("raw", ("nope",))),
        ),
        reconcile=(
            Reconciliation("plain", "raw", "sum(amount)", "sum(gross)"),
            Reconciliation("no source", "raw", "sum(nope)", "sum(gross)"),
            Reconciliation("unknown source", "blind", "sum(nope)", "sum(gross)"),
            Reconciliation("no input", "nope", "count(*)", "count(*)"),
        ),
        compare=(Comparison("text", "sum(currency)", "5%"), Comparison("fine too", "SUM( gross )", "5%")),
    )
    found = [(flaw.section, flaw.position, flaw.key, flaw.message) for flaw in find_flaws(run)]
    assert [(section, position, key) for section, position, key, _ in found] == [
        ("checks", 1, "column"),
        ("checks", 2, "pattern"),
        ("checks", 3, "expression"),
        ("checks", 4, ""),
        ("checks", 5, "references"),
        ("reconcile", 1, "source"),
        ("reconcile", 3, "input"),
        ("compare", 0, "metric"),
    ]
    reasons = [
        "found nope",
        "exhaust",
        "rand()",
        "taken by Errata",
        "found nope",
        "found nope",
        "one of blind, raw",
        "a string",
    ]
    assert [reason for (*_, message), reason in zip(found, reasons, strict=True) if reason not in message] == []


PLAIN = """
import sys
sys.path.insert(0, {tests!r})
from errata.model.product import Check, Metric, Threshold
from errata.gate.rules.rule_check import find_flaws
from unit.gate.manifests import manifest
zero = Threshold("mustBe", "0")
checks = [
    Check("a", Metric.NULL_VALUES, zero, ("currency",)),
    Check("b", Metric.INVALID_VALUES, zero, ("gross",), minimum="0"),
]
assert find_flaws(manifest(checks=tuple(checks))) == ()
assert "sqlglot" not in sys.modules
checks.append(Check("c", Metric.EXPRESSION, zero, expression="gross < 0"))
assert find_flaws(manifest(checks=tuple(checks))) == ()
assert "sqlglot" in sys.modules
"""


def test_only_rules_with_an_expression_wait_for_the_sql_parser() -> None:
    """Its import takes half a second, which checks of columns, ranges and patterns do not need."""
    tests = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PLAIN.format(tests=tests)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_comparison_with_a_constant_of_another_type_is_refused_by_its_place() -> None:
    """The same for a comparison with the current time; text that is a value of the column's type is fine."""
    wrong = ["event_count < 'abc'", "gross > 0 or is_open = 3", "business_date < 5", "business_date < 'today'"]
    checks = [Check(str(n), Metric.EXPRESSION, ZERO, expression=text) for n, text in enumerate(wrong)]
    fine = Check("fine", Metric.EXPRESSION, ZERO, expression="event_count < '5' and business_date < '2026-01-31'")
    found = find_flaws(manifest(checks=(*checks, fine)))
    assert [(flaw.position, flaw.key) for flaw in found] == [(n, "expression") for n in range(len(wrong))]
