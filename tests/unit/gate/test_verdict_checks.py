"""Checks over partitions and over the run: counts, shares and ages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.gate.verdict.checks import judge_check
from errata.gate.verdict.findings import MeasurementIndex
from errata.gate.verdict.thresholds import meets_threshold
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import Check, Metric, Threshold
from errata.ports.measure import Measurement
from errata.views.checks import CheckResult
from unit.gate.manifests import manifest, target_pin

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
FEW = Threshold("mustBeLessOrEqualTo", "2")
NULLS = Check("nulls", Metric.NULL_VALUES, FEW, ("currency",))


def _numbers(name: str, values: dict[str, Any], rows: int = 10) -> MeasurementIndex:
    found = [Measurement("candidate", day, "rowCount", str(rows)) for day in DAYS]
    found += [Measurement("candidate", day, name, None if v is None else str(v)) for day, v in values.items()]
    return MeasurementIndex({(m.scope, m.partition, m.name): m for m in found})


def _judged(check: Check, partition: str | None, values: dict[str, Any], **changes: Any) -> CheckResult:
    run: Manifest = manifest(partitions=DAYS, checks=(check,), **changes)
    return judge_check(check, partition, run, _numbers(f"check.{check.name}", values))


def test_over_the_run_counts_are_added_up() -> None:
    """Two rows a day are fine each day and six too many for the run; no further number is measured."""
    values = dict.fromkeys(DAYS, 2)
    assert [_judged(NULLS, day, values).level for day in DAYS] == ["ok"] * 3
    whole = Check("nulls", Metric.NULL_VALUES, FEW, ("currency",), per="run", severity="warn")
    found = _judged(whole, None, values)
    assert (found.partition, found.value, found.level) == (None, "6", "warn")
    assert found.message == "nullValues is 6 of 30 rows; expected at most 2"


def test_shares_over_the_run_are_of_all_its_rows() -> None:
    """Not the average of the days' shares."""
    check = Check("nulls", Metric.NULL_VALUES, FEW, ("currency",), per="run", unit="percent")
    assert _judged(check, None, dict(zip(DAYS, (0, 1, 0), strict=True))).message == (
        "nullValues is 3.33 % (1 of 30 rows); expected at most 2 %"
    )


@given(st.lists(st.integers(0, 10), min_size=3, max_size=3), st.sampled_from(["rows", "percent"]), st.integers(0, 30))
def test_the_run_is_judged_as_one_large_partition(counts: list[int], unit: str, limit: int) -> None:
    """Adding up and then judging is the same as judging what lies in one heap."""
    threshold = Threshold("mustBeLessThan", str(limit))
    check = Check("nulls", Metric.NULL_VALUES, threshold, ("currency",), per="run", unit=unit)
    value = Decimal(sum(counts)) if unit == "rows" else Decimal(sum(counts)) * 100 / 30
    found = _judged(check, None, dict(zip(DAYS, counts, strict=True)))
    assert (found.level == "ok") == meets_threshold(threshold, value)


def test_a_partition_that_was_not_measured_blocks_the_run() -> None:
    """What was not looked at is not fine, and is not zero."""
    whole = Check("nulls", Metric.NULL_VALUES, FEW, ("currency",), per="run")
    found = _judged(whole, None, {DAYS[0]: 0, DAYS[1]: 0})
    assert (found.level, found.message) == ("block", "was not measured")


def test_keys_that_cross_partitions_have_one_number_of_the_run() -> None:
    """Days without a duplicate in them do not prove that the run has none."""
    check = Check("key", Metric.DUPLICATE_VALUES, Threshold("mustBe", "0"), ("account_id",), per="run")
    assert _judged(check, None, {**dict.fromkeys(DAYS, 0), "": 4}).value == "4"
    assert _judged(check, None, dict.fromkeys(DAYS, 0)).message == "was not measured"
    with_day = Check(
        "key", Metric.DUPLICATE_VALUES, Threshold("mustBe", "0"), ("business_date", "account_id"), per="run"
    )
    assert _judged(with_day, None, dict.fromkeys(DAYS, 1)).value == "3"


def _fresh(unit: str = "hours", limit: str = "26", **changes: Any) -> Check:
    return Check("fresh", Metric.FRESHNESS, Threshold("mustBeLessThan", limit), ("ts",), unit=unit, **changes)


@pytest.mark.parametrize(
    "unit, newest, said, level",
    [
        ("hours", "2026-01-01 23:00:00", "1.00 hours (2026-01-01 23:00:00 at 2026-01-02 00:00:00)", "ok"),
        ("minutes", "2026-01-01 23:59:30.5", "0.49 minutes", "ok"),
        ("hours", "2025-12-31", "48.00 hours", "block"),
        ("days", "2025-12-01", "32.00 days", "block"),
        ("hours", "2026-01-02 12:00:00", "-12.00 hours", "ok"),
    ],
)
def test_an_age_is_that_of_the_newest_value_when_the_partition_ends(
    unit: str, newest: str, said: str, level: str
) -> None:
    """A date counts from its first moment; what lies after the end has a negative age."""
    found = _judged(_fresh(unit), DAYS[0], {DAYS[0]: newest})
    assert found.message.startswith(f"freshness is {said}")
    assert found.message.endswith(f"expected less than 26 {unit}")
    assert found.level == level


def test_the_age_of_the_run_is_that_at_its_last_partition() -> None:
    """One partition may be stale as long as the run is not."""
    values = dict(zip(DAYS, (None, "2026-01-03 22:00:00", "2026-01-01"), strict=True))
    found = _judged(_fresh(per="run"), None, values)
    assert (found.value, found.level) == ("2.00", "ok")


def test_partitions_by_value_are_as_old_as_the_runs_clock_says() -> None:
    """They have no end; the clock is sealed in the manifest, so judging again gives the same age."""
    target = target_pin("t", "region", "string", Grain.VALUE, {"region": "string", "ts": "timestamp"})
    check = _fresh("days", "2")
    run = manifest(target=target, partitions=("EU",), checks=(check,), as_of="2026-02-15T12:00:00.000Z")
    numbers = _numbers("check.fresh", {"EU": "2026-02-14 00:00:00"})
    assert judge_check(check, "EU", run, numbers).value == "1.50"


@pytest.mark.parametrize("value", [None, "+10000-01-01 00:00:00"])
def test_an_age_that_is_not_known_fails_the_check(value: str | None) -> None:
    """No value at all, or one beyond the calendar, is never fresh."""
    found = _judged(_fresh(severity="warn"), DAYS[0], {DAYS[0]: value})
    assert (found.value, found.level) == (None, "warn")
    assert found.message.startswith("freshness is unknown, because ")
