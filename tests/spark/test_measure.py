"""Measurements are what a naive reader would count, and cost the same number of jobs however much is asked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.measure import aggregates
from errata.engines.spark.measure.aggregates import PartitionGrouping, measure_scan
from errata.engines.spark.measure.measurer import SparkMeasurer
from errata.errors import RunExpired, UsageError
from errata.gate.measure.names import content_columns
from errata.gate.measure.scan_plan import compile_plan
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.partition import Grain
from errata.model.product import Check, Comparison, Metric, Reconciliation, Threshold
from errata.model.table import DataFile
from errata.ports.measure import CANDIDATE, CONTENT_A, CONTENT_B, PRIOR, ROW_COUNT, MeasurePlan, Scan
from unit.gate.manifests import input_pin, manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZERO = Threshold("mustBe", "0")
COLUMNS = {
    "d": "date",
    "k": "int",
    "s": "string",
    "amount": "decimal(10, 2)",
    "x": "double",
    "m": "map<string, int>",
    "run": "string",
}
DDL = "d date, k int, s string, amount decimal(10,2), x double, m map<string,int>, run string"
CHECKS = (
    Check("rows", Metric.ROW_COUNT, ZERO),
    Check("no_k", Metric.NULL_VALUES, ZERO, ("k",)),
    Check("no_k_or_s", Metric.NULL_VALUES, ZERO, ("k", "s")),
    Check("missing_s", Metric.MISSING_VALUES, ZERO, ("s",)),
    Check("missing_named", Metric.MISSING_VALUES, ZERO, ("s",), missing_values=("it's", "\\d")),
    Check("bad_s", Metric.INVALID_VALUES, ZERO, ("s",), valid_values=("a", "it's", "\\d", "")),
    Check("bad_amount", Metric.INVALID_VALUES, ZERO, ("amount",), valid_values=("1.5", "2")),
    Check("shape", Metric.INVALID_VALUES, ZERO, ("s",), pattern=r"^(a|\\d)?$"),
    Check("shape_k", Metric.INVALID_VALUES, ZERO, ("k",), pattern=r"^\d$"),
    Check("negative", Metric.EXPRESSION, ZERO, expression="Amount < 0 and s <> 'a'"),
    Check("same_k", Metric.DUPLICATE_VALUES, ZERO, ("k",)),
    Check("same_ks", Metric.DUPLICATE_VALUES, ZERO, ("s", "k")),
    Check("same_k_again", Metric.DUPLICATE_VALUES, ZERO, ("k",)),
)


def _row(day: date, pick: random.Random) -> tuple[Any, ...]:
    return (
        day,
        pick.choice([None, 1, 2, 3, 12]),
        pick.choice([None, "", "a", "it's", "\\d", "b"]),
        pick.choice([None, Decimal("1.50"), Decimal("2.00"), Decimal("-0.01"), Decimal("12345678.99")]),
        pick.choice([None, 0.5, -0.0, float("nan")]),
        pick.choice([None, {"a": 1, "b": 2}]),
        "r1",
    )


def _expected(rows: list[tuple[Any, ...]]) -> dict[str, str]:
    """The naive reader."""
    ks, ss, amounts = [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows]

    def extra(keys: list[Any]) -> int:
        return sum(n - 1 for n in Counter(keys).values())

    counts = {
        "rowCount": len(rows),
        "check.no_k": ks.count(None),
        "check.no_k_or_s": sum(k is None or s is None for k, s in zip(ks, ss, strict=True)),
        "check.missing_s": sum(s in (None, "") for s in ss),
        "check.missing_named": sum(s in (None, "it's", "\\d") for s in ss),
        "check.bad_s": sum(s == "b" for s in ss),
        "check.bad_amount": sum(a not in (None, Decimal("1.5"), Decimal(2)) for a in amounts),
        "check.shape": sum(s not in (None, "", "a", "\\d") for s in ss),
        "check.shape_k": ks.count(12),
        "check.negative": sum(
            a is not None and a < 0 and s not in (None, "a") for a, s in zip(amounts, ss, strict=True)
        ),
        "check.same_k": extra(ks),
        "check.same_k_again": extra(ks),
        "check.same_ks": extra(list(zip(ks, ss, strict=True))),
        "reconcile.gross": sum((a for a in amounts if a is not None), Decimal(0)),
        "compare.ks": sum(k for k in ks if k is not None),
    }
    return {name: str(Decimal(value)) for name, value in counts.items()}


@pytest.fixture(scope="module")
def lake(base_spark: SparkSession) -> Iterator[dict[str, Any]]:
    """A prior and a candidate snapshot of a target, with the rows of each."""
    pick = random.Random(7)  # noqa: S311 - test data
    days = [date(2026, 1, 1) + timedelta(n) for n in range(40)]
    base_spark.sql(f"CREATE TABLE lake.measure ({DDL}) USING iceberg PARTITIONED BY (d)")
    prior = [_row(day, pick) for day in days for _ in range(pick.randrange(4))]
    _frame(base_spark, prior).writeTo("lake.measure").append()
    candidate = [_row(day, pick) for day in days for _ in range(pick.randrange(12))]
    candidate += [_row(date(2027, 1, 1), pick)]
    _frame(base_spark, candidate).writeTo("lake.measure").overwrite(_all())
    ids = [
        str(row[0])
        for row in base_spark.sql("select snapshot_id from lake.measure.snapshots order by committed_at").collect()
    ]
    yield {"days": tuple(str(day) for day in days), "prior": prior, "candidate": candidate, "ids": (ids[0], ids[-1])}
    base_spark.sql("DROP TABLE lake.measure PURGE")


def _all() -> Any:
    from pyspark.sql import functions

    return functions.lit(True)  # noqa: FBT003 - a literal is a value


def _frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> Any:
    return spark.createDataFrame(rows, DDL).coalesce(1)


def _manifest(lake: dict[str, Any], **changes: Any) -> Manifest:
    target = target_pin("lake.measure", "d", "date", Grain.DAY, COLUMNS, key=("k",))
    return manifest(target=target, partitions=lake["days"], lineage_columns=("run",), **changes)


def _values(found: Any, scope: str) -> dict[str, dict[str, str]]:
    values: dict[str, dict[str, str]] = {}
    for one in found:
        if one.scope == scope:
            values.setdefault(one.partition, {})[one.name] = one.value
    return values


def _nothing(digest: str) -> bytes:
    raise AssertionError(digest)


def test_every_metric_is_what_a_naive_reader_counts(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Forty random partitions, some of them empty, at once: candidate, prior and input agree with plain Python."""
    plan_of = _manifest(
        lake,
        checks=CHECKS,
        reconcile=(Reconciliation("gross", "raw", "sum(AMOUNT)", "sum(amount)"),),
        compare=(Comparison("ks", "sum(k)"),),
        inputs=(input_pin("raw", "lake.measure", "d", "date", snapshot_id=lake["ids"][0]),),
    )
    found = SparkMeasurer(spark, _nothing).measure(
        plan_of, compile_plan(plan_of), candidate_snapshot=lake["ids"][1], prior_snapshot=lake["ids"][0]
    )
    by_scope = {"candidate": lake["candidate"], "prior": lake["prior"], "input:raw": lake["prior"]}
    for scope, rows in by_scope.items():
        values = _values(found, scope)
        assert tuple(values) == lake["days"]
        for day, measured in values.items():
            expected = _expected([row for row in rows if str(row[0]) == day])
            counted = {name: str(Decimal(v)) for name, v in measured.items() if not name.startswith("content")}
            assert {n: Decimal(v) for n, v in counted.items()} == {n: Decimal(expected[n]) for n in counted}, (
                scope,
                day,
            )
    assert {name for m in _values(found, CANDIDATE).values() for name in m} > {"check.same_ks", CONTENT_A, CONTENT_B}
    assert "0" in {m[ROW_COUNT] for m in _values(found, CANDIDATE).values()}


def test_rows_are_counted_from_metadata_where_that_is_exact(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Whole files are counted without a Spark job; with delete files, or files of no one partition, rows are read."""
    rules = _manifest(lake)
    counted = Counter(str(row[0]) for row in lake["prior"])
    whole = [DataFile(day, rows, 1, day) for day, rows in counted.items()]
    deleted = replace(whole[0], rows=1000, deletes=(ExpectedFile("gone", 1, "position_deletes"),))
    jobs = {}
    for name, files in {"whole": whole, "deleted": [deleted], "scattered": [replace(whole[0], partition=None)]}.items():
        spark.sparkContext.setJobGroup(name, name)
        measurer = SparkMeasurer(spark, _nothing, lambda *_, files=files: files)
        plan = MeasurePlan((Scan(PRIOR, {ROW_COUNT: "COUNT(*)"}),))
        found = measurer.measure(rules, plan, candidate_snapshot=lake["ids"][1], prior_snapshot=lake["ids"][0])
        assert {day: int(m[ROW_COUNT]) for day, m in _values(found, PRIOR).items()} == {
            day: counted.get(day, 0) for day in lake["days"]
        }
        jobs[name] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(name))
    assert jobs["whole"] == 0
    assert jobs["deleted"] == jobs["scattered"] > 0


def test_a_partition_of_many_rows_is_looked_through_by_one_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies in two files meet without being sent around; a key with the partition column is the key without it."""
    monkeypatch.setattr(aggregates, "_MIN_ROWS_PER_TASK", 1)
    spark.sql("CREATE TABLE lake.twice (d date, k int) USING iceberg PARTITIONED BY (d)")
    for values in (
        "('2026-01-01', 1), ('2026-01-01', 2), ('2026-01-02', 1)",
        "('2026-01-01', 1), ('2026-01-02', 8), ('2026-01-02', 9)",
    ):
        spark.sql(f"INSERT INTO lake.twice SELECT CAST(d AS date), k FROM VALUES {values} AS t(d, k)")
    asked = {"check.k": ("k",), "check.dk": ("d", "k")}
    scan = Scan(CANDIDATE, {ROW_COUNT: "COUNT(*)"})
    by, rows, days = PartitionGrouping("d", "date", Grain.DAY), spark.table("lake.twice"), ("2026-01-01", "2026-01-02")
    before, last = spark.conf.getAll, _stages(spark)[0].stageId()
    measure_scan(scan, rows, by, days)
    plain, last = _shuffled(spark, last)
    found = measure_scan(replace(scan, unique=asked), rows, by, days)
    assert _values(found, CANDIDATE)["2026-01-01"] == {ROW_COUNT: "3", "check.k": "1", "check.dk": "1"}
    assert _values(found, CANDIDATE)["2026-01-02"] == {ROW_COUNT: "3", "check.k": "0", "check.dk": "0"}
    assert spark.conf.getAll == before
    assert _shuffled(spark, last)[0] == plain > 0


def _shuffled(spark: SparkSession, after: int) -> tuple[int, int]:
    """Records that were sent from task to task by the stages after this one, and the newest stage."""
    stages = list(takewhile(lambda stage: stage.stageId() > after, _stages(spark)))
    return sum(stage.shuffleWriteRecords() for stage in stages), stages[0].stageId()


def _stages(spark: SparkSession) -> list[Any]:
    """The last stages, newest first."""
    context: Any = spark.sparkContext
    details = summaries = False
    quantiles, status = context._gateway.new_array(context._jvm.double, 0), context._jvm.java.util.ArrayList()
    found = context._jsc.sc().statusStore().stageList(None, details, summaries, quantiles, status)
    return [found.apply(n) for n in range(min(found.size(), 50))]


@pytest.mark.parametrize(
    "counts, is_worth_it",
    [
        ([50_000] * 45, True),
        ([50_000] * 2, True),
        ([50_000], False),
        ([500_000] + [50_000] * 4, False),
        ([100] * 45, False),
        ([0] * 45, False),
        ([], False),
    ],
)
def test_a_task_for_each_partition_leaves_no_core_waiting_and_has_rows_enough(
    counts: list[int], is_worth_it: bool
) -> None:
    """On two cores the largest partition is at most half of the rows, and the mean is worth starting a task."""
    assert aggregates.is_worth_own_tasks(counts, 2) is is_worth_it


def _jobs(spark: SparkSession, lake: dict[str, Any], checks: tuple[Check, ...], days: int) -> int:
    rules = _manifest({**lake, "days": lake["days"][:days]}, checks=checks, compare=(Comparison("ks", "sum(k)"),))
    group = f"count-{len(checks)}-{days}"
    spark.sparkContext.setJobGroup(group, group)
    SparkMeasurer(spark, _nothing).measure(
        rules, compile_plan(rules), candidate_snapshot=lake["ids"][1], prior_snapshot=lake["ids"][0]
    )
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.slow
def test_jobs_do_not_grow_with_checks_or_partitions(spark: SparkSession, lake: dict[str, Any]) -> None:
    """Three checks on twenty days and twenty on forty cost the same number of Spark jobs."""
    few = (CHECKS[0], CHECKS[1], CHECKS[10])
    many = CHECKS + tuple(Check(f"more{n}", Metric.EXPRESSION, ZERO, expression=f"k > {n}") for n in range(7))
    assert len(many) == 20
    counts = [_jobs(spark, lake, few, 20), _jobs(spark, lake, many, 40)]
    assert counts[0] == counts[1] <= 10, counts


def _digests(spark: SparkSession, cases: dict[str, list[tuple[Any, ...]]]) -> dict[str, tuple[str, ...]]:
    """(rows, a, b) of each case, all in one job."""
    from pyspark.sql import functions

    from errata.engines.spark.columns import content_hashes
    from errata.engines.spark.measure.checksums import hash_sum_sql

    rows = [(name, *row) for name, case in cases.items() for row in case]
    frame = spark.createDataFrame(rows, f"name string, {DDL}")
    first, second = content_hashes(frame, [name for name in sorted(COLUMNS) if name != "run"])
    sums = [functions.expr(hash_sum_sql(half)) for half in "ab"]
    found = frame.select("name", first.alias("a"), second.alias("b")).groupBy("name").agg(functions.count("*"), *sums)
    found = found.collect()
    return {row["name"]: tuple(str(value) for value in row[1:]) for row in found}


BASE = (date(2026, 1, 1), 1, "a", Decimal("10.00"), 0.0, {"a": 1, "b": 2}, "r1")


def _with(**changes: Any) -> tuple[Any, ...]:
    return tuple(changes.get(name, value) for name, value in zip(COLUMNS, BASE, strict=True))


def test_checksum_sees_what_plain_hashes_do_not(spark: SparkSession) -> None:
    """NULLs swapped between columns, doubled rows, a cent, and an entry of a map all change both halves."""
    cases = {
        "base": [BASE],
        "cent": [_with(amount=Decimal("10.01"))],
        "no k": [_with(k=None)],
        "no s": [_with(s=None)],
        "x in k": [_with(k=1, s=None, amount=None, x=None)],
        "x in s": [_with(k=None, s="1", amount=None, x=None)],
        "map": [_with(m={"a": 1, "b": 3})],
        "null in map": [_with(m={"a": None, "b": 1})],
        "other null in map": [_with(m={"a": 1, "b": None})],
        "pair": [BASE, BASE],
        "other pair": [_with(k=2), _with(k=2)],
    }
    digests = _digests(spark, cases)
    assert len({d[1] for d in digests.values()}) == len({d[2] for d in digests.values()}) == len(cases)


def test_checksum_tells_the_place_of_a_null(spark: SparkSession) -> None:
    """The same value in another column of the same type, with NULL where it was, is another row."""
    from pyspark.sql import functions

    from errata.engines.spark.columns import content_hashes

    rows = spark.createDataFrame(
        [("v", None, [None, "v"]), (None, "v", ["v", None])], "p string, q string, l array<string>"
    )
    for columns in (["p", "q"], ["l"]):
        first, second = content_hashes(rows, columns)
        assert rows.agg(functions.count_distinct(first), functions.count_distinct(second)).first()[:] == (2, 2), columns


def test_checksum_is_about_values_not_their_order_or_spelling(spark: SparkSession) -> None:
    """Row order, map order, the sign of zero, the bits of NaN and lineage columns do not count."""
    other = _with(k=2, x=float("nan"))
    digests = _digests(spark, {"one": [BASE, other], "two": [other, _with(run="r2", x=-0.0, m={"b": 2, "a": 1})]})
    assert digests["one"] == digests["two"]


def test_checksum_sum_is_exact(spark: SparkSession) -> None:
    """Halves summed as longs give the same number as a decimal sum of the hashes, at both ends of the range."""
    from pyspark.sql import functions as f

    from errata.engines.spark.measure.checksums import hash_sum_sql

    edges = [2**63 - 1, -(2**63), -1, 0, 2**31, -(2**31), 2**32 - 1, 2**31 - 1, 123456789012345678]
    rows = spark.createDataFrame([(n,) for n in edges * 3], "h bigint")
    row = rows.select(f.expr(hash_sum_sql("h"))).first()
    assert row is not None
    assert int(row[0]) == sum(edges) * 3


def test_sums_of_integers_are_the_sums_that_spark_makes_of_decimals(spark: SparkSession) -> None:
    """Written as sums of longs, a sum has the same value, type and NULL as Spark's own, at both ends of every type."""
    from pyspark.sql import functions as f

    from errata.engines.spark.measure.exact_sums import write_exact_sums

    shapes = [(9, 0), (9, 8), (10, 2), (12, 2), (18, 0), (18, 2), (18, 8)]
    edges = {
        f"d{p}_{s}": [Decimal(n).scaleb(-s) for n in (10**p - 1, 1 - 10**p, 1, -1, 0, 10**p // 3, -(10 ** (s or 1)))]
        for p, s in shapes
    }
    edges |= {
        "n": [2**63 - 1, -(2**63), -1, 2**32, -(2**31), 1, 0],
        "k": [2**31 - 1, -(2**31), -1, 5, 7, 1, 0],
    }
    kinds = {**{f"d{p}_{s}": f"decimal({p},{s})" for p, s in shapes}, "n": "bigint", "k": "int"}
    full = [("full", n, *row) for n, row in enumerate(zip(*edges.values(), strict=True))]
    empty = ("empty", 0, *(None for _ in edges))
    frame = spark.createDataFrame([*full, *full, empty], f"g string, i int, {', '.join(map(' '.join, kinds.items()))}")
    types = {field.name: field.dataType for field in frame.schema.fields}
    sums = []
    for name in kinds:
        column = f"CAST(`{name}` AS DECIMAL(38, 0))" if name in "nk" else f"`{name}`"
        sums += [f"SUM({column})", f"COALESCE(SUM({column}) FILTER(WHERE `i` > 2), 0)"]
    written = [write_exact_sums(sql, types) for sql in sums]
    assert not set(sums) & set(written)
    theirs, ours = (frame.groupBy("g").agg(*map(f.expr, texts)) for texts in (sums, written))
    assert [field.dataType for field in ours.schema] == [field.dataType for field in theirs.schema]
    assert {row[0]: row[1:] for row in ours.collect()} == {row[0]: row[1:] for row in theirs.collect()}


def test_checksums_of_partitions_are_those_of_the_measurement(spark: SparkSession, lake: dict[str, Any]) -> None:
    """The digest of a partition does not depend on how it was asked for; an empty one is all zero."""
    rules = _manifest(lake)
    measurer = SparkMeasurer(spark, _nothing)
    plan = compile_plan(rules)
    found = _values(measurer.measure(rules, plan, candidate_snapshot=lake["ids"][1], prior_snapshot=None), CANDIDATE)
    assert PRIOR not in {
        m.scope for m in measurer.measure(rules, plan, candidate_snapshot=lake["ids"][1], prior_snapshot=None)
    }
    some = lake["days"][:7]
    digests = measurer.checksums("lake.measure", lake["ids"][1], rules.target, some, content_columns(rules))
    assert {p: (str(d.rows), d.a, d.b) for p, d in digests.items()} == {
        p: (found[p][ROW_COUNT], found[p][CONTENT_A], found[p][CONTENT_B]) for p in some
    }


def test_an_expression_that_does_not_fit_is_refused_by_scope(spark: SparkSession, lake: dict[str, Any]) -> None:
    """What only Spark can know (an input's columns) is refused with the scope's name, not a stack trace."""
    rules = _manifest(
        lake,
        reconcile=(Reconciliation("gross", "raw", "sum(no_such)", "sum(amount)"),),
        inputs=(input_pin("raw", "lake.measure", "d", "date", snapshot_id=lake["ids"][0]),),
    )
    with pytest.raises(UsageError, match=r"input:raw.*no_such"):
        SparkMeasurer(spark, _nothing).measure(
            rules, compile_plan(rules), candidate_snapshot=lake["ids"][1], prior_snapshot=None
        )


def test_a_snapshot_that_is_gone_expires_the_run(spark: SparkSession, lake: dict[str, Any]) -> None:
    """A pinned snapshot that the table no longer has is never read as something else."""
    rules = _manifest(lake)
    with pytest.raises(RunExpired, match="12345"):
        SparkMeasurer(spark, _nothing).measure(
            rules, compile_plan(rules), candidate_snapshot="12345", prior_snapshot=None
        )
