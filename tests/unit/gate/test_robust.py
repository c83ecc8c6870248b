"""Control periods: robust statistics, which partitions are comparable, and what a verdict says of them."""

from __future__ import annotations

import statistics
from datetime import datetime
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.gate.measure.scan_plan import compile_plan
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import Verdict, judge_candidate
from errata.gate.verdict.robust import measure_spread, median
from errata.model.partition import Grain, list_comparable, parse_partition, to_ordinal
from errata.model.product import Control
from errata.ports.measure import CANDIDATE, CONTROL, Measurement
from errata.views.checks import CheckResult
from unit.gate.manifests import COLUMNS, manifest

DAY = "2026-03-02"
MONDAYS = list_comparable(Grain.DAY, DAY, 4)
RULE = Control("usual", "sum(gross)")
_NUMBERS = st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=12)


@given(_NUMBERS)
def test_median_is_that_of_the_standard_library(numbers: list[Decimal]) -> None:
    """Odd and even counts, repeated and negative numbers."""
    assert median(numbers) == statistics.median(numbers)


@given(_NUMBERS, st.decimals(-(10**9), 10**9, places=2))
def test_the_score_is_the_distance_in_median_absolute_deviations(numbers: list[Decimal], value: Decimal) -> None:
    """1.4826 MAD where that is not 0, else 1.2533 mean absolute deviations, else only equal or not."""
    middle = statistics.median(numbers)
    typical = statistics.median([abs(number - middle) for number in numbers])
    mean = sum(abs(number - middle) for number in numbers) / len(numbers)
    score = measure_spread(numbers).score(value)
    if not mean:
        assert score == (None if value != middle else 0)
    else:
        unit = float(typical) * 1.4826 if typical else float(mean) * 1.2533
        assert float(score or 0) == pytest.approx(float(value - middle) / unit, rel=1e-9)


@given(_NUMBERS.filter(lambda numbers: len(numbers) > 2))
def test_one_odd_control_of_many_does_not_hide_another(numbers: list[Decimal]) -> None:
    """The unit does not grow with how far a single control is out."""
    with localcontext(prec=50):
        far, farther = (measure_spread([*numbers, *numbers, Decimal(10) ** n]) for n in (12, 20))
    assert far.unit == farther.unit or not far.is_robust


@given(st.datetimes(min_value=datetime(1900, 1, 1)), st.integers(1, 6))  # noqa: DTZ001 - what Hypothesis takes
def test_comparable_partitions_share_weekday_and_hour_or_month(at: Any, reach: int) -> None:
    """As many before as after, none of them the partition itself."""
    for grain, text, step in (
        (Grain.HOUR, f"{at:%Y-%m-%dT%H}", 168),
        (Grain.DAY, f"{at:%Y-%m-%d}", 7),
        (Grain.MONTH, f"{at:%Y-%m}", 12),
    ):
        here = to_ordinal(grain, parse_partition(grain, text))
        away = [to_ordinal(grain, other) - here for other in list_comparable(grain, text, reach)]
        assert away == [n * step for n in range(-reach, reach + 1) if n][: len(away)]
        assert len(away) == 2 * reach or at.year >= 9990


def test_nothing_is_comparable_with_years_values_and_null() -> None:
    """They share no season and no order."""
    assert (
        list_comparable(Grain.YEAR, "2026", 4)
        == list_comparable(Grain.VALUE, "EU", 4)
        == list_comparable(Grain.DAY, "null", 4)
        == ()
    )


def _run(rule: Control = RULE, controls: tuple[str, ...] = MONDAYS) -> Any:
    return manifest(partitions=(DAY,), control=(rule,), control_partitions={DAY: controls} if controls else {})


def _verdict(
    value: str | None, controls: dict[str, str | None], rule: Control = RULE, sealed: tuple[str, ...] = ()
) -> Verdict:
    measured = [Measurement(CANDIDATE, DAY, "rowCount", "3"), Measurement(CANDIDATE, DAY, "control.usual", value)]
    for name, number in controls.items():
        measured.append(Measurement(CONTROL, name, "control.usual", number))
        measured.append(Measurement(CONTROL, name, "rowCount", "0" if number == "0" else "5"))
    run = _run(rule, sealed or tuple(controls))
    return judge_candidate(run, measured, CandidateSummary({DAY: 3}, COLUMNS))


def _judged(value: str | None, controls: dict[str, str | None], rule: Control = RULE, **more: Any) -> CheckResult:
    (found,) = (check for check in _verdict(value, controls, rule, **more).checks if check.name == "usual")
    return found


def _of(*numbers: str | None) -> dict[str, str | None]:
    return dict(zip(MONDAYS, numbers, strict=False))


def test_a_usual_number_is_ok_and_says_what_it_was_compared_with() -> None:
    """The finding names controls and their values; rows of control partitions are not foreign to the run."""
    verdict = _verdict("103", _of("100", "98", "102", "104", "96"))
    (found,) = (check for check in verdict.checks if check.name == "usual")
    assert (found.level, found.value) == ("ok", "1.01")
    assert found.message == (
        "sum(gross) is 103, 5 controls with median 100: robust z-score +1.01 in units of 2.9652; warns above 3.5, "
        "blocks above 8; controls 2026-02-02: 100, 2026-02-09: 98, 2026-02-16: 102, 2026-02-23: 104 and 1 more, "
        "from 96 to 104"
    )
    assert verdict.passed
    assert "foreign" not in {check.name for check in verdict.checks}


@pytest.mark.parametrize(
    "value, level", [("110.37", "ok"), ("110.38", "warn"), ("76.28", "warn"), ("76.27", "block"), ("200", "block")]
)
def test_levels_follow_the_score_on_both_sides(value: str, level: str) -> None:
    """A limit is exceeded by more than it says; too little is as unusual as too much."""
    assert _judged(value, _of("100", "98", "102", "104", "96")).level == level


def test_only_the_limits_that_are_given_count() -> None:
    """Without block nothing blocks."""
    rule = Control("usual", "sum(gross)", warn="2", block=None)
    found = _judged("1000000", _of("100", "98", "102"), rule)
    assert found.level == "warn"
    assert "warns above 2;" in found.message


def test_fewer_controls_than_asked_for_are_a_warning() -> None:
    """It says how many there are and which; none at all is said too."""
    few = _judged("100", _of("100", "101"))
    assert (few.level, few.value) == ("warn", None)
    assert few.message == (
        "sum(gross) is 100; it has 2 comparable partitions outside the run, expected at least 3: 2026-02-02: 100, "
        "2026-02-09: 101"
    )
    none = _judged("100", {})
    assert none.level == "warn"
    assert none.message.endswith(
        "0 comparable partitions outside the run, expected at least 3: nothing to compare with"
    )


def test_a_control_without_rows_or_number_does_not_count() -> None:
    """A partition that was emptied since planning is left out, and that is said."""
    found = _judged("100", _of("100", "101", "0", None))
    assert found.level == "warn"
    assert "2 comparable partitions outside the run (2 more hold no rows or no number)" in found.message


def test_controls_that_do_not_vary_warn_of_any_other_number() -> None:
    """There is no unit to measure in: equal is fine, different is a warning that says so, and never a block."""
    assert _judged("7", _of("7", "7", "7.00")).level == "ok"
    found = _judged("7000", _of("7", "7", "7"))
    assert (found.level, found.value) == ("warn", None)
    assert "the controls do not vary, so any other number is unusual" in found.message


def test_half_of_the_controls_equal_is_no_more_than_a_warning() -> None:
    """The mean absolute deviation is a guess at the unit; it may warn."""
    found = _judged("1000", _of("100", "100", "100", "104"))
    assert found.level == "warn"
    assert "z-score +718.10 in units of 1.2533 (half of the controls are equal)" in found.message
    assert _judged("101", _of("100", "100", "100", "104")).level == "ok"


def test_no_number_at_all_is_a_warning() -> None:
    """An average of nothing cannot be compared."""
    assert _judged(None, _of("1", "2", "3")).message.startswith("sum(gross) is NULL, 3 controls with median 2")


def test_what_was_not_measured_blocks() -> None:
    """A sealed control without its number is not a control that was fine."""
    found = _judged("1", _of("1", "2", "3"), sealed=MONDAYS)
    assert (found.level, found.message) == ("block", "was not measured")


def test_a_rule_takes_the_controls_within_its_own_reach() -> None:
    """The manifest holds those of the widest rule."""
    rule = Control("usual", "sum(gross)", reach=1, least=2)
    assert "2 controls with median" in _judged("5", _of(*"12345678"), rule).message


def test_controls_are_one_scan_of_their_own() -> None:
    """Every rule's number and the row count, over the control partitions of the partitions that are judged."""
    rules = (RULE, Control("rows", "count(*)"))
    run = manifest(
        partitions=(DAY,), control=rules, control_partitions={DAY: MONDAYS[:2], "2026-03-03": ("2026-03-10",)}
    )
    scan = next(scan for scan in compile_plan(run).scans if scan.scope == CONTROL)
    assert scan.partitions == MONDAYS[:2]
    assert set(scan.aggregates) == {"rowCount", "control.usual", "control.rows"}
    candidate = next(scan for scan in compile_plan(run).scans if scan.scope == CANDIDATE)
    assert set(scan.aggregates) <= set(candidate.aggregates)
    assert CONTROL not in {scan.scope for scan in compile_plan(_run(controls=())).scans}
