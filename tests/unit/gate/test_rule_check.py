"""Rules that cannot be measured are found before anything is computed, all of them, each by its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from errata.gate.rules.expressions import parse_row_condition
from errata.gate.rules.rule_check import _is_plain_condition, find_flaws
from errata.model.product import Check, Comparison, Metric, Reconciliation, References, Threshold
from unit.gate.manifests import COLUMNS, input_pin, manifest

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
from errata.model.product import Check, Comparison, Metric, Reconciliation, Threshold
from errata.gate.rules.rule_check import find_flaws
from unit.gate.manifests import input_pin, manifest
zero = Threshold("mustBe", "0")
checks = [
    Check("a", Metric.NULL_VALUES, zero, ("currency",)),
    Check("b", Metric.INVALID_VALUES, zero, ("gross",), minimum="0"),
]
rules = dict(
    inputs=(input_pin("raw", "lake.raw.tx", "business_date", "date"),),
    reconcile=(
        Reconciliation("r", "raw", "sum(amount)", "sum(gross)"),
        Reconciliation("n", "raw", "count(*)", "count(*)"),
    ),
    compare=(Comparison("c", "sum(gross)", "5%"),),
)
assert find_flaws(manifest(checks=tuple(checks), **rules)) == ()
assert "sqlglot" not in sys.modules
plain = "gross < 0 or Gross > event_count AND currency = 'EUR' or account_id is not null"
checks.append(Check("c", Metric.EXPRESSION, zero, expression=plain))
assert find_flaws(manifest(checks=tuple(checks), **rules)) == ()
assert "sqlglot" not in sys.modules
checks.append(Check("d", Metric.EXPRESSION, zero, expression="abs(gross) < 0"))
assert find_flaws(manifest(checks=tuple(checks), **rules)) == ()
assert "sqlglot" in sys.modules
"""


def test_simple_rules_do_not_wait_for_the_sql_parser() -> None:
    """Half a second of import is a good part of a plan, and most products need none of it."""
    tests = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PLAIN.format(tests=tests)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_shortcut_knows_constants_as_the_parser_does() -> None:
    """A plain comparison with a constant of another type, or with the current time, is refused by its place."""
    wrong = ["event_count < 'abc'", "gross > 0 or is_open = 3", "business_date < 5", "business_date < 'today'"]
    checks = [Check(str(n), Metric.EXPRESSION, ZERO, expression=text) for n, text in enumerate(wrong)]
    fine = Check("fine", Metric.EXPRESSION, ZERO, expression="event_count < '5' and business_date < '2026-01-31'")
    found = find_flaws(manifest(checks=(*checks, fine)))
    assert [(flaw.position, flaw.key) for flaw in found] == [(n, "expression") for n in range(len(wrong))]
    assert _is_plain_condition(fine.expression or "", COLUMNS)
    assert not any(_is_plain_condition(text, COLUMNS) for text in wrong)


_SIDES = st.sampled_from(
    [
        "is_open",
        "currency",
        "business_date",
        "'5'",
        "'today'",
        "'2026-01-31'",
        "gross",
        "EVENT_COUNT",
        "0",
        "-1.5",
        "'a b'",
        "nope",
        "current_date",
        "'it''s'",
        "null",
        "date",
        "(1)",
    ]
)
_TERMS = st.one_of(
    st.tuples(_SIDES, st.sampled_from(["<", ">=", "=", "<>", "!=", "==", " in "]), _SIDES).map("".join),
    st.tuples(_SIDES, st.sampled_from([" is null", " IS NOT NULL", " is true", ""])).map("".join),
)
_CONDITIONS = st.lists(_TERMS, min_size=1, max_size=4).flatmap(
    lambda terms: st.sampled_from([" and ", " OR ", "  or\n"]).map(lambda word: word.join(terms))
)


@settings(max_examples=300, deadline=None)
@given(_CONDITIONS)
def test_what_is_waved_through_the_parser_accepts(text: str) -> None:
    """A shortcut that is more generous than the gate would only move the refusal behind hours of work."""
    columns = {**COLUMNS, "current_date": "date", "date": "date"}
    if _is_plain_condition(text, columns):
        parse_row_condition(text, where="test", types=columns)
