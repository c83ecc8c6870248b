"""Each rule of the verdict, on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from errata.errors import UsageError
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import Verdict, judge_candidate
from errata.model.product import Check, Comparison, Metric, Reconciliation, Threshold
from errata.ports.measure import Measurement
from errata.views.checks import CheckResult
from unit.gate.manifests import COLUMNS, input_pin, manifest

DAY = "2026-01-01"
RAW = input_pin("transactions", "lake.raw.tx", "business_date", "date")
Numbers = Mapping[tuple[str, str], str | None]
GOOD: Numbers = {("candidate", "rowCount"): "10", ("prior", "rowCount"): "9"}


def _judged(
    numbers: Numbers,
    *,
    adopted: Mapping[str, int] | None = None,
    columns: Mapping[str, str] = COLUMNS,
    accept: tuple[str, ...] = (),
    **rules: Any,
) -> Verdict:
    run = manifest(partitions=(DAY,), inputs=(RAW,), **rules)
    measured = [Measurement(scope, DAY, name, value) for (scope, name), value in {**GOOD, **numbers}.items()]
    rows = int({**GOOD, **numbers}["candidate", "rowCount"] or 0)
    facts = CandidateSummary({DAY: rows} if adopted is None else adopted, columns)
    return judge_candidate(run, measured, facts, dict.fromkeys(accept, "bo"))


def _one(verdict: Verdict, name: str) -> CheckResult:
    (found,) = [check for check in verdict.checks if check.name == name]
    return found


def test_a_sound_candidate_passes_and_every_rule_says_so() -> None:
    """With nothing wrong, the built-in rules are all there and all ok."""
    verdict = _judged({})
    assert verdict.passed
    assert [(c.name, c.partition, c.level) for c in verdict.checks] == [
        ("schema", None, "ok"),
        ("completeness", DAY, "ok"),
        ("adopted", DAY, "ok"),
        ("empty", DAY, "ok"),
    ]


def test_a_planned_partition_without_adopted_output_blocks() -> None:
    """Every planned partition must have been computed."""
    verdict = _judged({("candidate", "rowCount"): "0", ("prior", "rowCount"): "0"}, adopted={})
    assert not verdict.passed
    assert _one(verdict, "completeness").level == "block"


@pytest.mark.parametrize("adopted", [9, 11])
def test_the_candidate_has_exactly_the_adopted_rows(adopted: int) -> None:
    """A row more or less than was adopted is a fault of the assembly."""
    verdict = _judged({}, adopted={DAY: adopted})
    assert not verdict.passed
    assert _one(verdict, "adopted").message == f"the candidate has 10 rows, {adopted} were adopted"


@pytest.mark.parametrize(
    "columns, said",
    [
        ({name: kind for name, kind in COLUMNS.items() if name != "gross"}, "gross is missing"),
        ({**COLUMNS, "more": "int"}, "more is new"),
        ({**COLUMNS, "gross": "double"}, "gross is double, planned decimal(18, 2)"),
    ],
)
def test_the_schema_is_the_planned_one(columns: Mapping[str, str], said: str) -> None:
    """Columns and types equal the pinned ones."""
    found = _one(_judged({}, columns=columns), "schema")
    assert found.level == "block"
    assert found.message == f"columns differ from the plan: {said}"


CHECKS = [
    ("mustBe", "3", None, "3", True),
    ("mustBe", "3", None, "4", False),
    ("mustNotBe", "3", None, "3", False),
    ("mustNotBe", "3", None, "4", True),
    ("mustBeGreaterThan", "3", None, "3", False),
    ("mustBeGreaterThan", "3", None, "4", True),
    ("mustBeGreaterOrEqualTo", "3", None, "3", True),
    ("mustBeGreaterOrEqualTo", "3", None, "2", False),
    ("mustBeLessThan", "3", None, "3", False),
    ("mustBeLessThan", "3", None, "2", True),
    ("mustBeLessOrEqualTo", "3", None, "3", True),
    ("mustBeLessOrEqualTo", "3", None, "4", False),
    ("mustBeBetween", "3", "5", "3", True),
    ("mustBeBetween", "3", "5", "5", True),
    ("mustBeBetween", "3", "5", "6", False),
    ("mustNotBeBetween", "3", "5", "5", False),
    ("mustNotBeBetween", "3", "5", "6", True),
]


@pytest.mark.parametrize("operator, operand, upper, value, passes", CHECKS)
def test_thresholds(operator: str, operand: str, upper: str | None, value: str, passes: bool) -> None:
    """Every operator of the standard, at its edge and beyond it."""
    check = Check("c", Metric.NULL_VALUES, Threshold(operator, operand, upper), ("gross",))
    verdict = _judged({("candidate", "check.c"): value}, checks=(check,))
    assert verdict.passed is passes
    assert _one(verdict, "c").level == ("ok" if passes else "block")


def test_percent_is_of_the_partitions_rows() -> None:
    """Three of 10 rows are 30 %, and nothing of nothing is 0 %."""
    check = Check("c", Metric.NULL_VALUES, Threshold("mustBeLessThan", "30"), ("gross",), unit="percent")
    found = _one(_judged({("candidate", "check.c"): "3"}, checks=(check,)), "c")
    assert (found.level, found.value) == ("block", "30.00")
    assert found.message == "nullValues is 30.00 % (3 of 10 rows); expected less than 30 %"
    nothing = {("candidate", "check.c"): "0", ("candidate", "rowCount"): "0", ("prior", "rowCount"): "0"}
    assert _one(_judged(nothing, checks=(check,)), "c").value == "0.00"


def test_row_count_is_judged_from_the_row_count() -> None:
    """The check needs no measurement of its own."""
    check = Check("c", Metric.ROW_COUNT, Threshold("mustBeGreaterThan", "10"))
    assert _one(_judged({}, checks=(check,)), "c").message == "rowCount is 10 rows; expected more than 10"
    assert not _judged({}, checks=(check,)).passed


def test_what_was_not_measured_blocks() -> None:
    """A rule without its number is not a rule that holds."""
    check = Check("c", Metric.NULL_VALUES, Threshold("mustBe", "0"), ("gross",))
    assert _one(_judged({}, checks=(check,)), "c").level == "block"
    rule = Reconciliation("r", "transactions", "sum(amount)", "sum(gross)")
    assert _one(_judged({("candidate", "reconcile.r"): "1"}, reconcile=(rule,)), "r").level == "block"
    comparison = Comparison("v", "sum(gross)", "5%")
    assert _one(_judged({("candidate", "compare.v"): "1"}, compare=(comparison,)), "v").level == "block"
    unmeasured = judge_candidate(manifest(partitions=(DAY,)), [], CandidateSummary({DAY: 0}, COLUMNS))
    assert {c.name for c in unmeasured.problems} == {"adopted", "empty"}


WARNING = Check("c", Metric.NULL_VALUES, Threshold("mustBe", "0"), ("gross",), severity="warn")


def test_a_warning_rejects_until_someone_accepts_it_by_name() -> None:
    """The acceptance is on the record, another name does not help, and the level stays."""
    numbers: Numbers = {("candidate", "check.c"): "1"}
    assert not _judged(numbers, checks=(WARNING,)).passed
    assert not _judged(numbers, checks=(WARNING,), accept=("other",)).passed
    verdict = _judged(numbers, checks=(WARNING,), accept=("c",))
    assert verdict.passed
    assert (_one(verdict, "c").level, _one(verdict, "c").accepted_by) == ("warn", "bo")


def test_a_block_cannot_be_accepted() -> None:
    """Acceptance is for warnings only."""
    verdict = _judged({("candidate", "check.c"): "1"}, checks=(replace(WARNING, severity="block"),), accept=("c",))
    assert not verdict.passed
    assert _one(verdict, "c").accepted_by is None


def test_other_thresholds_use_the_same_numbers() -> None:
    """Judging again needs no measurement that the first verdict did not have."""
    numbers: Numbers = {("candidate", "check.c"): "1"}
    relaxed = replace(WARNING, threshold=Threshold("mustBeLessOrEqualTo", "1"))
    assert not _judged(numbers, checks=(WARNING,)).passed
    assert _judged(numbers, checks=(relaxed,)).passed


@pytest.mark.parametrize(
    "tolerance, source, target, level",
    [
        ("0", "10.10", "10.1", "ok"),
        ("0", "10.10", "10.11", "block"),
        ("0.01", "10.10", "10.11", "ok"),
        ("0.01", "10.10", "10.08", "block"),
        ("1%", "100", "101", "ok"),
        ("1%", "-100", "-101", "ok"),
        ("1%", "100", "98.99", "block"),
        ("1%", "0", "0.01", "block"),
        ("0", "0", "0", "ok"),
        ("0", None, None, "ok"),
        ("0", None, "1", "block"),
        ("0", "2026-01-01", "2026-01-01", "ok"),
        ("0", "nan", "nan", "block"),
        ("5", "nan", "1", "block"),
        ("100%", "1" + "0" * 34 + "1.00", "2" + "0" * 34 + "2.00", "ok"),
        ("100%", "1" + "0" * 34 + "1.00", "2" + "0" * 34 + "2.01", "block"),
        ("0", "123456789012345678901234567890.01", "123456789012345678901234567890.02", "block"),
    ],
)
def test_reconciliation(tolerance: str, source: str | None, target: str | None, level: str) -> None:
    """Source and output agree within the tolerance, in exact decimals; what is no number must be the same."""
    rule = Reconciliation("r", "transactions", "sum(amount)", "sum(gross)", tolerance)
    numbers = {("input:transactions", "reconcile.r"): source, ("candidate", "reconcile.r"): target}
    verdict = _judged(numbers, reconcile=(rule,))
    assert _one(verdict, "r").level == level
    assert verdict.passed is (level == "ok")


def test_reconciliation_says_both_numbers() -> None:
    """The message is a sentence with the numbers a person needs."""
    rule = Reconciliation("r", "transactions", "sum(amount)", "sum(gross)", "0.5%")
    numbers: Numbers = {("input:transactions", "reconcile.r"): "200.00", ("candidate", "reconcile.r"): "198.99"}
    found = _one(_judged(numbers, reconcile=(rule,)), "r")
    assert found.value == "-1.01"
    assert found.message == (
        "sum(amount) of transactions is 200.00, sum(gross) of the output is 198.99; they differ by 1.01, allowed 0.5 %"
    )


@pytest.mark.parametrize(
    "before, after, level",
    [
        ("100", "105", "ok"),
        ("100", "105.01", "warn"),
        ("100", "94.99", "warn"),
        ("-100", "-94.99", "warn"),
        ("100", "160", "warn"),
        ("100", "160.01", "block"),
        ("100", "-1", "block"),
        ("0", "0", "ok"),
        ("0", "0.01", "warn"),
        (None, "5", "warn"),
        (None, None, "ok"),
    ],
)
def test_comparison_with_the_prior_output(before: str | None, after: str | None, level: str) -> None:
    """Change is relative to what was there; exactly the limit is within it; from zero it needs a person."""
    rule = Comparison("v", "sum(gross)", "5%", "60%")
    numbers = {("prior", "compare.v"): before, ("candidate", "compare.v"): after}
    verdict = _judged(numbers, compare=(rule,))
    assert _one(verdict, "v").level == level
    assert verdict.passed is (level == "ok")


def test_comparison_is_exact_at_the_limit_of_decimals() -> None:
    """38 digits are compared to the last one."""
    big = "1" + "0" * 35 + ".00"
    rule = Comparison("v", "sum(gross)", "5", None)
    for after, level in (("1" + "0" * 34 + "5.00", "ok"), ("1" + "0" * 34 + "5.01", "warn")):
        numbers: Numbers = {("prior", "compare.v"): big, ("candidate", "compare.v"): after}
        assert _one(_judged(numbers, compare=(rule,)), "v").level == level


def test_comparison_limits_may_be_amounts() -> None:
    """A limit without a percent sign is in the metric's own unit."""
    numbers: Numbers = {("prior", "compare.v"): "0", ("candidate", "compare.v"): "3"}
    found = _one(_judged(numbers, compare=(Comparison("v", "sum(gross)", "3", "5"),)), "v")
    assert found.level == "ok"
    assert _one(_judged(numbers, compare=(Comparison("v", "sum(gross)", "2", "5"),)), "v").level == "warn"


def test_comparison_needs_something_on_both_sides() -> None:
    """A new partition has no prior; an emptied one is the business of another rule."""
    rule = Comparison("v", "sum(gross)", "5%", "60%")
    new: Numbers = {("prior", "rowCount"): "0", ("prior", "compare.v"): "0", ("candidate", "compare.v"): "7"}
    assert _judged(new, compare=(rule,)).passed
    gone: Numbers = {("candidate", "rowCount"): "0", ("prior", "compare.v"): "7", ("candidate", "compare.v"): "0"}
    assert _judged(gone, compare=(rule,), accept=("empty",)).passed


@pytest.mark.parametrize(
    "numbers, level",
    [
        ({("prior", "rowCount"): "9"}, "warn"),
        ({("prior", "rowCount"): "0", ("input:transactions", "rowCount"): "4"}, "warn"),
        ({("prior", "rowCount"): "0", ("input:transactions", "rowCount"): "0"}, "ok"),
        ({("prior", "rowCount"): "0"}, "ok"),
    ],
)
def test_a_partition_that_went_empty_needs_consent(numbers: Numbers, level: str) -> None:
    """No rows where there were some, or where the source has some, is a question for a person."""
    emptied = {("candidate", "rowCount"): "0", **numbers}
    assert _one(_judged(emptied), "empty").level == level
    assert _judged(emptied).passed is (level == "ok")
    assert _judged(emptied, accept=("empty",)).passed


def test_rows_of_a_partition_nobody_asked_for_block() -> None:
    """An input whose files hold other days would reconcile against the wrong rows."""
    run = manifest(partitions=(DAY,), inputs=(RAW,))
    numbers = [
        Measurement("candidate", DAY, "rowCount", "1"),
        Measurement("input:transactions", "2026-03-01", "rowCount", "2"),
    ]
    verdict = judge_candidate(run, numbers, CandidateSummary({DAY: 1}, COLUMNS))
    assert not verdict.passed
    assert _one(verdict, "foreign").message == "input:transactions has 2 rows of 2026-03-01, which was not asked for"


def test_inexact_sums_say_so() -> None:
    """A reader must know that the last digits of a floating-point sum mean nothing."""
    rule = Reconciliation("r", "transactions", "sum(x)", "sum(x)", "0.1")
    run = manifest(partitions=(DAY,), inputs=(RAW,), reconcile=(rule,))
    numbers = [
        Measurement("candidate", DAY, "rowCount", "1"),
        Measurement("candidate", DAY, "reconcile.r", "1e-05", exact=False),
        Measurement("input:transactions", DAY, "reconcile.r", "0"),
    ]
    verdict = judge_candidate(run, numbers, CandidateSummary({DAY: 1}, COLUMNS))
    assert verdict.passed
    assert "0.00001 (floating point, not exact)" in _one(verdict, "r").message


@pytest.mark.parametrize("tolerance", ["x", "nan", "-1", "5 percent"])
def test_a_tolerance_that_is_no_number_is_refused(tolerance: str) -> None:
    """A typo in a tolerance must not read as a wide one."""
    rule = Reconciliation("r", "transactions", "sum(amount)", "sum(gross)", tolerance)
    numbers: Numbers = {("input:transactions", "reconcile.r"): "1", ("candidate", "reconcile.r"): "1"}
    with pytest.raises(UsageError, match="was refused"):
        _judged(numbers, reconcile=(rule,))
