"""Balances in groups and control periods: numbers as a naive reader adds them, in a fixed number of Spark jobs."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.measure import grouped_totals as groups
from errata.engines.spark.measure.aggregates import PartitionGrouping, measure_scan
from errata.engines.spark.measure.measurer import SparkMeasurer
from errata.errors import UsageError
from errata.gate.measure.distribution import RANK_ERROR
from errata.gate.measure.scan_plan import compile_plan
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import Control, Distribution, GroupKey, Reconciliation
from errata.ports.measure import CANDIDATE, CONTROL, PRIOR, GroupedTotal, Scan, encode_shares
from protocol import test_controls
from support.world import World
from unit.gate.manifests import input_pin, manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"d": "date", "j": "string", "at": "timestamp", "amount": "decimal(18, 2)", "ok": "boolean"}
DDL = "d date, j string, at timestamp_ntz, amount decimal(18,2), ok boolean"
DAYS = tuple(date(2026, 1, 28) + timedelta(n) for n in range(8))
BY_MONTH = (
    GroupKey("jurisdiction", "upper(j)", "upper(j)"),
    GroupKey("month", "date_trunc('MONTH', at)", "cast(date_trunc('MONTH', d) as date)"),
)
RULES = (
    Reconciliation("by j", "raw", "sum(amount)", "sum(amount)", by=(GroupKey("j", "j", "j"),)),
    Reconciliation("by month", "raw", "sum(amount)", "sum(amount)", by=BY_MONTH, per="run"),
    Reconciliation("kinds", "raw", "count(distinct j)", "count(distinct j)", per="run"),
    Reconciliation("good", "raw", "sum(amount)", "sum(amount)", by=(GroupKey("j", "j", "j"),), where="ok"),
    Reconciliation("good day", "raw", "sum(amount)", "sum(amount)", where="ok", source_where="amount > 0"),
)


@pytest.fixture(scope="module")
def lake(base_spark: SparkSession) -> Iterator[dict[str, Any]]:
    """Two snapshots of random rows in eight days around a month's end; one day has none."""
    pick = random.Random(11)  # noqa: S311 - test data
    base_spark.sql(f"CREATE TABLE lake.balances ({DDL}) USING iceberg PARTITIONED BY (d)")
    sides, ids = [], []
    for _ in range(2):
        rows = [
            (day, pick.choice([None, "EU", "eu", 'U"S', ""]), datetime.combine(day, datetime.min.time()),
             Decimal(pick.randrange(-500, 500)) / 100, pick.choice([None, True, False]))
            for day in DAYS[:-1] for _ in range(pick.randrange(1, 9))
        ]  # fmt: skip
        base_spark.createDataFrame(rows, DDL).coalesce(1).writeTo("lake.balances").overwritePartitions()
        sides.append(rows)
        ids.append(
            str(base_spark.sql("select max_by(snapshot_id, committed_at) from lake.balances.snapshots").first()[0])
        )
    yield {"prior": sides[0], "candidate": sides[1], "ids": ids}
    base_spark.sql("DROP TABLE lake.balances PURGE")


def _run(lake: dict[str, Any], **changes: Any) -> Manifest:
    target = target_pin("lake.balances", "d", "date", Grain.DAY, COLUMNS, key=())
    raw = input_pin("raw", "lake.balances", "d", "date", snapshot_id=lake["ids"][0])
    facts = {"target": target, "partitions": tuple(map(str, DAYS)), "inputs": (raw,), "reconcile": RULES} | changes
    return manifest(**facts)


def _nothing(digest: str) -> bytes:
    raise AssertionError(digest)


def _measure(spark: SparkSession, lake: dict[str, Any], run: Manifest) -> Any:
    return SparkMeasurer(spark, _nothing).measure(
        run, compile_plan(run), candidate_snapshot=lake["ids"][1], prior_snapshot=lake["ids"][0]
    )


def _naive(rows: list[Any], side: str) -> dict[tuple[str, str], Decimal]:
    """(partition, measurement) → total, added up row by row."""
    sums: dict[tuple[str, str], Any] = defaultdict(Decimal)
    kinds = {j for _, j, *_ in rows if j is not None}
    for day, j, _, amount, ok in rows:
        one = json.dumps([j], separators=(",", ":"))
        month = json.dumps([None if j is None else j.upper(), f"{day:%Y-%m}-01"], separators=(",", ":"))
        sums[str(day), f"reconcile.by j {one}"] += amount
        sums["", f"reconcile.by month {month}"] += amount
        if ok:
            sums[str(day), f"reconcile.good {one}"] += amount
        sums[str(day), "reconcile.good day"] += amount if ok and (side == "candidate" or amount > 0) else 0
    sums["", "reconcile.kinds"] = Decimal(len(kinds))
    return dict(sums)


def test_every_group_is_what_a_naive_reader_adds(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Per partition and over the run, with filters, NULLs and texts that need quoting; and how many there are."""
    found = _measure(spark, lake, _run(lake))
    for scope, side in ((CANDIDATE, "candidate"), ("input:raw", "prior")):
        expected = _naive(lake[side], side) | {(str(DAYS[-1]), "reconcile.good day"): Decimal(0)}
        measured = {
            (m.partition, m.name): Decimal(m.value) for m in found if m.scope == scope and "reconcile." in m.name
        }
        assert measured == expected
        counts = {
            (m.partition, m.name): int(m.value) for m in found if m.scope == scope and m.name.startswith("groups.")
        }
        assert counts["", "groups.by month"] == sum(name.startswith("reconcile.by month") for _, name in expected)
        for day in map(str, DAYS):
            mine = sum(at == day and name.startswith("reconcile.good [") for at, name in expected)
            assert counts[day, "groups.good"] == mine


def test_equal_sides_agree_and_a_cent_in_one_group_does_not(spark: SparkSession, lake: dict[str, Any]) -> None:
    """The same rows balance by every rule; one cent that moves between two groups is found where the total is kept."""
    run = _run(lake, inputs=(replace(_run(lake).inputs[0], snapshot_id=lake["ids"][1]),), reconcile=RULES[:4])
    found = list(_measure(spark, lake, run))
    facts = CandidateSummary({str(day): sum(row[0] == day for row in lake["candidate"]) for day in DAYS}, COLUMNS)

    def off(measured: Any) -> set[str]:
        return {check.name for check in judge_candidate(run, measured, facts).problems} & {rule.name for rule in RULES}

    assert off(found) == set()
    at = [n for n, m in enumerate(found) if m.scope == CANDIDATE and m.name.startswith("reconcile.by month")][:2]
    for n, cent in zip(at, (Decimal("0.01"), Decimal("-0.01")), strict=True):
        found[n] = replace(found[n], value=str(Decimal(found[n].value) + cent))
    assert off(found) == {"by month"}


def _jobs(spark: SparkSession, lake: dict[str, Any], run: Manifest) -> int:
    group = f"balances-{len(run.reconcile)}-{len(run.control)}"
    spark.sparkContext.setJobGroup(group, group)
    _measure(spark, lake, run)
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.slow
def test_groupings_and_controls_do_not_add_jobs_by_rule(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Three rules with three groupings and twelve cost the same, with one control and with five."""
    scope, outside = tuple(map(str, DAYS[:3])), tuple(map(str, DAYS[3:7]))
    few = _run(lake, partitions=scope, reconcile=RULES[:3], control=(Control("c", "count(*)"),))
    many = _run(
        lake,
        partitions=scope,
        reconcile=tuple(replace(rule, name=f"{rule.name} {n}") for n in range(4) for rule in RULES[:3]),
        control=tuple(Control(f"c{n}", f"sum(amount) + {n}") for n in range(5)),
    )
    counts = [_jobs(spark, lake, replace(run, control_partitions={scope[0]: outside})) for run in (few, many)]
    assert counts[0] == counts[1], counts


@pytest.mark.slow
def test_distributions_do_not_add_jobs_by_rule_or_partition(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Two rules on two days cost as many jobs as eight on six, against the prior output and against controls."""
    outside = tuple(map(str, DAYS[6:7]))
    counts = []
    for days, times in ((2, 1), (6, 4)):
        rules = tuple(
            one
            for n in range(times)
            for one in (
                Distribution(f"q{n}", "amount", quantiles=("0.5", "0.9"), warn="5%"),
                Distribution(f"s{n}", ("j", "ok")[n % 2], shares=True, warn="5%"),
                Distribution(f"c{n}", "j", shares=True, against="control", warn="5%"),
            )
        )
        scope = tuple(map(str, DAYS[:days]))
        run = _run(lake, partitions=scope, reconcile=(), distribution=rules, control_partitions={scope[0]: outside})
        spark.sparkContext.setJobGroup(f"spread-{days}", "")
        _measure(spark, lake, run)
        counts.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(f"spread-{days}")))
    assert counts[0] == counts[1], counts


def test_quantiles_and_shares_are_those_of_a_naive_reader(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Each day on its own, NULLs of the categories counted, NULL amounts left out; few rows give exact quantiles."""
    rules = (
        Distribution("q", "amount", quantiles=("0.1", "0.5", "0.95"), warn="5%"),
        Distribution("s", "j", shares=True, warn="5%"),
        Distribution("b", "ok", shares=True, warn="5%"),
    )
    found = {
        (m.scope, m.partition, m.name): m for m in _measure(spark, lake, _run(lake, reconcile=(), distribution=rules))
    }
    for scope in (CANDIDATE, PRIOR):
        for day in DAYS:
            rows = [row for row in lake[scope] if row[0] == day]
            amounts = sorted(row[3] for row in rows)
            for quantile in ("0.1", "0.5", "0.95"):
                one = found[scope, str(day), f"distribution.q {quantile}"]
                expected = amounts[max(0, math.ceil(Decimal(quantile) * len(amounts)) - 1)] if amounts else None
                assert (one.value, one.exact) == (None if expected is None else f"{expected:.2f}", False)
            for name, values in (
                ("s", [row[1] for row in rows]),
                ("b", [None if row[4] is None else str(row[4]).lower() for row in rows]),
            ):
                assert found[scope, str(day), f"distribution.{name}"].value == encode_shares(Counter(values))


def test_quantiles_of_many_rows_are_exact_or_within_the_stated_error(spark: SparkSession) -> None:
    """Exact up to 5,000 rows in several files and tasks; beyond that the rank is off by at most 0.01 % of the rows."""
    pick = random.Random(7)  # noqa: S311 - test data
    sizes = {1: 5_000, 2: 60_000}
    rows = [(date(2026, 1, day), pick.gauss(0, 1000)) for day, size in sizes.items() for _ in range(size)]
    pick.shuffle(rows)
    wanted = ("0.01", "0.5", "0.95", "0.999")
    rule = Distribution("q", "x", quantiles=wanted, warn="5%")
    run = manifest(
        target=target_pin("t", "d", "date", Grain.DAY, {"d": "date", "x": "double"}, key=()),
        distribution=(rule,),
        partitions=("2026-01-01", "2026-01-02"),
    )
    scan = next(one for one in compile_plan(run).scans if one.scope == CANDIDATE)
    frame = spark.createDataFrame(rows, "d date, x double").repartition(7)
    found = measure_scan(replace(scan, content=()), frame, PartitionGrouping("d", "date", Grain.DAY), run.partitions)
    for day, size in sizes.items():
        ordered = sorted(x for d, x in rows if d.day == day)
        for quantile in wanted:
            (value,) = [
                float(m.value) for m in found
                if (m.partition, m.name) == (f"2026-01-0{day}", f"distribution.q {quantile}")
            ]  # fmt: skip
            rank, asked = ordered.index(value) + 1, math.ceil(Decimal(quantile) * size)
            assert abs(rank - asked) <= (0 if size <= 5_000 else math.ceil(size * RANK_ERROR)), (quantile, rank, asked)


def test_controls_are_measured_outside_the_scope_only(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Each control partition has its numbers from the prior output; partitions of the run have none there."""
    day, controls = str(DAYS[0]), (str(DAYS[6]), str(DAYS[7]))
    run = _run(lake, partitions=(day,), reconcile=(), control=(Control("c", "sum(amount)"),))
    found = _measure(spark, lake, replace(run, control_partitions={day: controls}))
    measured = {(m.partition, m.name): Decimal(m.value) for m in found if m.scope == CONTROL}
    rows = [row for row in lake["prior"] if row[0] == DAYS[6]]
    assert measured == {
        (controls[0], "rowCount"): len(rows),
        (controls[0], "control.c"): sum(row[3] for row in rows),
        (controls[1], "rowCount"): 0,
        (controls[1], "control.c"): 0,
    }
    assert {m.partition for m in found if m.scope == PRIOR} == {day}


def test_too_many_groups_are_refused_before_they_reach_the_driver(spark: SparkSession) -> None:
    """The rule is named; another rule with few groups in the same scan is not blamed."""
    few = GroupedTotal("few", "reconcile.few", "COUNT(*)", "COUNT(*)", ("id % 2",), per_partition=False)
    many = replace(few, rule="many", name="reconcile.many", keys=("id",))
    scan = Scan("input:raw", {}, groups=(few, many))
    with pytest.raises(UsageError, match="reconcile many: more than 10 groups of input:raw were refused"):
        groups.measure_groups(scan, spark.range(200), None, (), most=10)
    assert groups.measure_groups(replace(scan, groups=(few,)), spark.range(200), None, (), most=10)


@pytest.mark.parametrize("key, said", [("array(1)", "array<int>"), ("cast(1 as double)", "double")])
def test_groups_have_values_that_can_be_compared(spark: SparkSession, key: str, said: str) -> None:
    """Floating point and nested values are no names of groups."""
    total = GroupedTotal("r", "reconcile.r", "COUNT(*)", "COUNT(*)", (key,), per_partition=False)
    with pytest.raises(UsageError, match=f"was refused; expected text.*found {said}"):
        groups.measure_groups(Scan("input:raw", {}, groups=(total,)), spark.range(1), None, ())


def test_values_of_groups_have_one_spelling(spark: SparkSession) -> None:
    """A decimal, a whole number and text, a midnight and a date name the same group on both sides."""
    keys = (
        "cast('1.50' as decimal(9,4))",
        "timestamp '2026-01-01'",
        "timestamp_ntz '2026-01-01 00:00:01.5'",
        "true",
        "2L",
    )
    total = GroupedTotal("r", "reconcile.r", "COUNT(*)", "COUNT(*)", keys, per_partition=True)
    rows = spark.sql("select date '2026-01-01' as d")
    scan = Scan("input:raw", {}, groups=(total,))
    found = groups.measure_groups(scan, rows, PartitionGrouping("d", "date", Grain.DAY), ("2026-01-01", "2026-01-02"))
    assert [(m.partition, m.name, m.value) for m in found] == [
        ("2026-01-01", 'reconcile.r ["1.5","2026-01-01","2026-01-01 00:00:01.5","true","2"]', "1"),
        ("2026-01-01", "groups.r", "1"),
        ("2026-01-02", "groups.r", "0"),
    ]


@pytest.mark.slow
def test_a_run_shows_its_controls_in_the_plan_and_in_the_verdict(make_world: Callable[..., World]) -> None:
    """As on tables in memory: the finding names the controls and their numbers."""
    test_controls.test_a_run_shows_its_controls_in_the_plan_and_in_the_verdict(make_world)
