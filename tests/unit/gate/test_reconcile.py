"""Reconciliation in groups: what is measured, and one finding that names the worst."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.gate.measure.scan_plan import compile_plan
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.product import GroupKey, Reconciliation
from errata.ports.measure import CANDIDATE, Measurement, group_measure
from errata.views.checks import CheckResult
from unit.gate.manifests import COLUMNS, input_pin, manifest

DAY = "2026-01-01"
RAW = input_pin("tx", "lake.raw.tx", "business_date", "date")
CURRENCY = GroupKey("currency", "ccy", "currency")
RULE = Reconciliation("gross", "tx", "sum(amount)", "sum(gross)", by=(CURRENCY,))
Totals = dict[tuple[str | None, ...], str | None]


def _measured(scope: str, place: str, totals: Totals, groups: int | None = None) -> list[Measurement]:
    found = [Measurement(scope, place, group_measure("reconcile.gross", key), text) for key, text in totals.items()]
    counted = len(totals) if groups is None else groups
    return [*found, Measurement(scope, place, "groups.gross", str(counted))]


def _judged(source: Totals, target: Totals, *, rule: Reconciliation = RULE, **more: Any) -> CheckResult:
    place = "" if rule.per == "run" else DAY
    run = manifest(partitions=(DAY,), inputs=(RAW,), reconcile=(rule,))
    rows = Measurement(CANDIDATE, DAY, "rowCount", "3")
    measured = [*_measured("input:tx", place, source, **more), *_measured(CANDIDATE, place, target), rows]
    (found,) = (
        c for c in judge_candidate(run, measured, CandidateSummary({DAY: 3}, COLUMNS)).checks if c.name == "gross"
    )
    return found


def test_groups_that_agree_are_one_line() -> None:
    """Decimals are compared as numbers, whatever their zeros."""
    found = _judged({("EUR",): "10.10", ("USD",): "0"}, {("EUR",): "10.1", ("USD",): "0.00"})
    assert (found.level, found.partition, found.value) == ("ok", DAY, "0.00")
    assert found.message == "2 groups by currency on both sides; largest difference 0.00, allowed 0"


def test_the_worst_group_is_named_with_both_values() -> None:
    """One finding per partition says how many are off, which is worst, which follow, and what only one side has."""
    source: Totals = {("EUR",): "10.00", ("USD",): "5.00", ("GBP",): "7", ("CHF",): "1", ("SEK",): "2"}
    target: Totals = {("EUR",): "9.00", ("USD",): "5.50", ("GBP",): "7.00", ("NOK",): "3", ("SEK",): "2.01"}
    found = _judged(source, target)
    assert (found.level, found.value) == ("block", "3")
    assert found.message == (
        "5 of 6 groups by currency are off, allowed 0; worst NOK: sum(amount) of tx is absent, sum(gross) of the "
        "output is 3 (off by 3); then CHF (off by -1), EUR (off by -1.00), 2 more; 1 only in tx, 1 only in the output"
    )


def test_one_cent_in_one_group_is_seen_where_the_total_agrees() -> None:
    """Sums that are kept over all groups do not hide that they moved between them."""
    found = _judged({("EUR",): "10.00", ("USD",): "5.00"}, {("EUR",): "10.01", ("USD",): "4.99"})
    assert found.level == "block"
    assert found.message.startswith("2 of 2 groups by currency are off, allowed 0; worst EUR: ")


@pytest.mark.parametrize(
    "tolerance, source, target, level",
    [
        ("0.01", "10.00", "10.01", "ok"),
        ("0.01", "10.00", "10.02", "block"),
        ("1%", "100", "101", "ok"),
        ("1%", "100", "101.01", "block"),
        ("1%", None, "0.01", "block"),
        ("0", None, "0.00", "ok"),
        ("0", "0", None, "ok"),
        ("1", "1", None, "ok"),
        ("0", "123456789012345678901234567890.01", "123456789012345678901234567890.02", "block"),
    ],
)
def test_tolerance_is_per_group(tolerance: str, source: str | None, target: str | None, level: str) -> None:
    """A group is held against the tolerance on its own; what only one side has is held against zero."""
    rule = Reconciliation("gross", "tx", "sum(amount)", "sum(gross)", tolerance, by=(CURRENCY,))
    sides = [{} if text is None else {("EUR",): text} for text in (source, target)]
    assert _judged(sides[0], sides[1], rule=rule).level == level


@pytest.mark.parametrize("target", [{}, {("EUR",): None}, {("EUR",): "2026-01-02"}])
def test_what_is_no_number_must_be_the_same(target: Totals) -> None:
    """A latest date that is absent, NULL or another is off, whatever the tolerance."""
    rule = Reconciliation("gross", "tx", "max(at)", "max(at)", "100", by=(CURRENCY,))
    assert _judged({("EUR",): "2026-01-01"}, {("EUR",): "2026-01-01"}, rule=rule).level == "ok"
    found = _judged({("EUR",): "2026-01-01"}, target, rule=rule)
    assert (found.level, found.value) == ("block", None)


def test_a_run_as_a_whole_has_one_finding_without_a_partition() -> None:
    """By jurisdiction and month over a product by day."""
    keys = (GroupKey("jurisdiction", "j", "j"), GroupKey("month", "m", "m"))
    rule = Reconciliation("gross", "tx", "count(*)", "count(*)", by=keys, per="run")
    found = _judged({("EU", "2026-01"): "3"}, {("EU", "2026-01"): "2", (None, "2026-02"): "1"}, rule=rule)
    assert (found.partition, found.level) == (None, "block")
    assert "2 of 2 groups by jurisdiction, month are off" in found.message
    assert "EU, 2026-01" in found.message
    assert "null, 2026-02" in found.message


def test_a_group_that_got_lost_blocks() -> None:
    """The number of groups was measured too; a ledger that lacks one of them is no measurement."""
    assert _judged({("EUR",): "1"}, {("EUR",): "1"}, groups=2).message == "was not measured"
    run = manifest(partitions=(DAY,), inputs=(RAW,), reconcile=(RULE,))
    (found,) = (c for c in judge_candidate(run, [], CandidateSummary({DAY: 0}, COLUMNS)).checks if c.name == "gross")
    assert (found.level, found.message) == ("block", "was not measured")


def test_no_rows_on_either_side_agree() -> None:
    """An empty partition has no groups, and says so."""
    assert _judged({}, {}).message == "no groups by currency on either side; allowed 0"


_KEYS = st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=2).map(tuple)
_CENTS = st.integers(-(10**6), 10**6)


@given(st.dictionaries(_KEYS, _CENTS, max_size=8), st.dictionaries(_KEYS, _CENTS, max_size=8), st.integers(0, 100))
def test_the_fold_counts_what_a_naive_reader_counts(source: Any, target: Any, cents: int) -> None:
    """Groups beyond the tolerance are counted exactly, and the worst is the largest difference."""
    offs = [target.get(key, 0) - source.get(key, 0) for key in source.keys() | target.keys()]
    beyond = [off for off in offs if abs(off) > cents]
    rule = Reconciliation("gross", "tx", "sum(a)", "sum(b)", str(Decimal(cents) / 100), by=(CURRENCY,))
    sides = [{key: str(Decimal(n) / 100) for key, n in side.items()} for side in (source, target)]
    found = _judged(sides[0], sides[1], rule=rule)
    assert found.level == ("block" if beyond else "ok")
    if beyond:
        assert found.message.startswith(f"{len(beyond)} of {len(offs)} group")
        assert abs(Decimal(found.value or "0")) * 100 == max(map(abs, offs))


def _scan(scope: str, *rules: Reconciliation, **more: Any) -> Any:
    run = manifest(inputs=(RAW, input_pin("rates", "lake.ref.rates", None, None)), reconcile=rules, **more)
    return next(scan for scan in compile_plan(run).scans if scan.scope == scope)


def test_a_filter_is_written_into_every_aggregate() -> None:
    """Rules with different filters share one scan, so a filter may not cut the rows of the others."""
    rule = Reconciliation(
        "share", "tx", "sum(a) / count(*)", "sum(gross) filter (where is_open) / count(distinct account_id)",
        where="currency <> 'XXX'", source_where="a > 0", target_where="gross > 1",
    )  # fmt: skip
    assert _scan(CANDIDATE, rule).aggregates["reconcile.share"] == (
        "TRY_DIVIDE(COALESCE(SUM(`gross`) FILTER(WHERE `is_open` AND (`currency` <> 'XXX' AND `gross` > 1)), 0), "
        "COUNT(DISTINCT `account_id`) FILTER(WHERE `currency` <> 'XXX' AND `gross` > 1))"
    )
    assert _scan("input:tx", rule).aggregates["reconcile.share"] == (
        "TRY_DIVIDE(COALESCE(SUM(`a`) FILTER(WHERE `currency` <> 'XXX' AND `a` > 0), 0), "
        "COUNT(*) FILTER(WHERE `currency` <> 'XXX' AND `a` > 0))"
    )


def test_rules_with_groups_are_not_aggregates_by_partition() -> None:
    """They are measured apart, each side by its own expressions; only rows that the filter leaves make a group."""
    month = GroupKey("month", "date_trunc('MONTH', at)", "date_trunc('MONTH', business_date)")
    rule = Reconciliation("g", "tx", "sum(a)", "sum(gross)", by=(CURRENCY, month), per="run", target_where="is_open")
    scan = _scan(CANDIDATE, rule)
    assert "reconcile.g" not in scan.aggregates
    (total,) = scan.groups
    assert (total.name, total.per_partition) == ("reconcile.g", False)
    assert total.keys == ("`currency`", "DATE_TRUNC('MONTH', `business_date`)")
    assert total.rows == "COUNT_IF(`is_open`)"
    (source,) = _scan("input:tx", rule).groups
    assert source.keys == ("`ccy`", "DATE_TRUNC('MONTH', `at`)")
    assert source.rows == "COUNT(*)"


def test_an_input_that_is_read_whole_is_balanced_over_the_run_only() -> None:
    """It has no partitions, so nothing is measured per partition."""
    with pytest.raises(UsageError, match="rates was refused; expected an input with a partition column"):
        _scan(CANDIDATE, Reconciliation("r", "rates", "count(*)", "count(*)"))
    scan = _scan("input:rates", Reconciliation("r", "rates", "count(*)", "count(*)", per="run"))
    assert not scan.aggregates
    assert len(scan.groups) == 1


def test_columns_of_an_input_are_known_where_it_declares_them() -> None:
    """A name that it does not have is refused before anything runs, and sums of its whole numbers are exact."""
    declared = input_pin("tx", "lake.raw.tx", "day", "date", columns={"units": "long"})
    rule = Reconciliation("u", "tx", "sum(units)", "sum(event_count)", source_where="day > '2026-01-01'")
    scan = compile_plan(manifest(inputs=(declared,), reconcile=(rule,))).scans[-1]
    assert "SUM(CAST(`units` AS DECIMAL(38, 0)))" in scan.aggregates["reconcile.u"]
    unknown = Reconciliation("u", "tx", "sum(unit)", "sum(event_count)")
    with pytest.raises(UsageError, match=r"reconcile u, source.*found unit; did you mean units"):
        compile_plan(manifest(inputs=(declared,), reconcile=(unknown,)))


@pytest.mark.parametrize(
    "change, said",
    [
        ({"by": (GroupKey("c", "c", "nope"),)}, "reconcile r, by c, target.*a column of the table, found nope"),
        ({"by": (GroupKey("c", "sum(a)", "currency"),)}, "reconcile r, by c, source.*found the aggregate sum"),
        ({"by": (GroupKey("c", "(select 1)", "currency"),)}, "reconcile r, by c, source.*was refused"),
        ({"by": (GroupKey("c", "rand()", "currency"),)}, "reconcile r, by c, source.*was refused"),
        ({"by": (GroupKey("c", "*", "currency"),)}, "reconcile r, by c, source.*was refused"),
        ({"where": "gross"}, "reconcile r, where, target.*a condition that is true or false"),
        ({"target_where": "nope > 1"}, "reconcile r, target_where, target.*found nope"),
        ({"source_where": "sum(a) > 1"}, "reconcile r, source_where, source.*found the aggregate sum"),
    ],
)
def test_groups_and_filters_are_expressions_of_one_row(change: dict[str, Any], said: str) -> None:
    """What is no column expression is refused with the rule, the key and the side."""
    rule = Reconciliation("r", "tx", "count(*)", "count(*)", **change)
    with pytest.raises(UsageError, match=said):
        _scan(CANDIDATE, rule)
