"""Checks become aggregates; the text is pinned, because it is what is measured."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import UsageError
from errata.gate.measure.names import RESERVED
from errata.gate.measure.scan_plan import compile_plan
from errata.model.partition import Grain
from errata.model.product import Check, Comparison, Metric, Reconciliation, References, Threshold
from errata.ports.measure import Lookup, Scan
from unit.gate.manifests import COLUMNS, input_pin, manifest, target_pin

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
                "check.steps": "COUNT_IF(NOT `gross` IN (CAST('1.5' AS DECIMAL(2, 1)), CAST('2' AS DECIMAL(1, 0))))",
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
        ({"checks": (Check("a", Metric.INVALID_VALUES, ZERO, ("currency",)),)}, "validValues, a pattern, a range"),
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


WIDE = target_pin(
    columns={**COLUMNS, "ts": "timestamptz", "day": "date", "x": "double", "n": "int", "tags": "map<a, b>"}
)
EMAIL = r"(?:\\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\\.[A-Za-z0-9-]{1,63}){0,4}\\.[A-Za-z]{2,24}\\b)"
CARD = (
    r"\\b(?:4\\d{3}|5[1-5]\\d{2}|2[2-7]\\d{2}|6011|65\\d{2}|3[47]\\d{2})[ -]?\\d{4,6}[ -]?\\d{4,5}"
    r"(?:[ -]?\\d{4})?\\b"
)
COMPILED = {
    "a decimal range": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("gross",), minimum="-0.50", maximum="1e3"),
        "COUNT_IF(`gross` < CAST('-0.50' AS DECIMAL(2, 2)) OR `gross` > CAST('1000' AS DECIMAL(4, 0)))",
    ),
    "a range of whole numbers": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("event_count",), minimum="0"),
        "COUNT_IF(`event_count` < CAST('0' AS BIGINT))",
    ),
    "a range of dates": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("day",), maximum="2026-01-31"),
        "COUNT_IF(`day` > CAST('2026-01-31' AS DATE))",
    ),
    "a range of instants, in UTC": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("ts",), minimum="2026-01-01T00:00:00+01:00"),
        "COUNT_IF(`ts` < CAST('2025-12-31 23:00:00' AS TIMESTAMP))",
    ),
    "NaN is in no range": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("x",), minimum="0.1"),
        "COUNT_IF(`x` < CAST('0.1' AS DOUBLE) OR ISNAN(`x`))",
    ),
    "a length": (
        Check("c", Metric.INVALID_VALUES, ZERO, ("currency",), min_length=2, max_length=3),
        "COUNT_IF(LENGTH(`currency`) < 2 OR LENGTH(`currency`) > 3)",
    ),
    "everything about a value at once": (
        Check(
            "c",
            Metric.INVALID_VALUES,
            ZERO,
            ("currency",),
            valid_values=("a",),
            pattern="^a",
            min_length=1,
            max_length=9,
        ),
        (
            "COUNT_IF(NOT `currency` IN ('a') OR NOT `currency` RLIKE '^a' OR LENGTH(`currency`) < 1"
            " OR LENGTH(`currency`) > 9)"
        ),
    ),
    "the newest value": (
        Check("c", Metric.FRESHNESS, ZERO, ("ts",), unit="hours"),
        "CAST(MAX(`ts`) AS STRING)",
    ),
    "bounds of a partition": (
        Check("c", Metric.TIMESTAMP_BOUNDS, ZERO, ("ts",), before="2h", after="30min"),
        (
            "COUNT_IF(CAST(`ts` AS TIMESTAMP) < (DATE_TRUNC('DAY', `business_date`) - INTERVAL '7200' SECOND)"
            " OR CAST(`ts` AS TIMESTAMP) >= (DATE_TRUNC('DAY', `business_date`) + INTERVAL '1' DAY"
            " + INTERVAL '1800' SECOND))"
        ),
    ),
    "bounds without slack": (
        Check("c", Metric.TIMESTAMP_BOUNDS, ZERO, ("day",)),
        (
            "COUNT_IF(CAST(`day` AS TIMESTAMP) < DATE_TRUNC('DAY', `business_date`)"
            " OR CAST(`day` AS TIMESTAMP) >= (DATE_TRUNC('DAY', `business_date`) + INTERVAL '1' DAY))"
        ),
    ),
    "personal data": (
        Check("c", Metric.PII_VALUES, ZERO, ("currency",), kinds=("email",)),
        f"COUNT_IF(`currency` RLIKE '{EMAIL}')",
    ),
    "cards have the right check digit": (
        Check("c", Metric.PII_VALUES, ZERO, ("n",), kinds=("card",)),
        (
            f"COUNT_IF(CAST(`n` AS STRING) RLIKE '{CARD}'"
            f" AND EXISTS(REGEXP_EXTRACT_ALL(CAST(`n` AS STRING), '{CARD}', 0), `number`"
            " -> LUHN_CHECK(REGEXP_REPLACE(`number`, '[ -]', ''))))"
        ),
    ),
    "what must hold": (
        Check("c", Metric.EXPRESSION, ZERO, expression="gross > 0 or is_open -- always", must_hold=True),
        "COUNT_IF(NOT (`gross` > 0 OR `is_open`))",
    ),
}


@pytest.mark.parametrize("case", COMPILED)
def test_each_metric_is_one_aggregate(case: str) -> None:
    """The text is pinned: it is what is measured."""
    check, expected = COMPILED[case]
    assert compile_plan(manifest(target=WIDE, checks=(check,))).scans[0].aggregates["check.c"] == expected


@pytest.mark.parametrize(
    "grain, column_type, start",
    [
        (Grain.HOUR, "timestamptz", "DATE_TRUNC('HOUR', `p`)"),
        (Grain.MONTH, "date", "DATE_TRUNC('MONTH', `p`)"),
        (Grain.YEAR, "string", "TRY_TO_TIMESTAMP(`p`, 'yyyy')"),
        (Grain.HOUR, "string", "TRY_TO_TIMESTAMP(`p`, 'yyyy-MM-dd\\'T\\'HH')"),
    ],
)
def test_bounds_follow_the_partitions_of_the_target(grain: Grain, column_type: str, start: str) -> None:
    """A month is a month and not 30 days; partitions that are text are read as time."""
    target = target_pin("t", "p", column_type, grain, {"p": column_type, "ts": "timestamp"})
    check = Check("c", Metric.TIMESTAMP_BOUNDS, ZERO, ("ts",))
    found = compile_plan(manifest(target=target, checks=(check,))).scans[0].aggregates["check.c"]
    moment = "CAST(`ts` AS TIMESTAMP)"
    unit = str(grain).upper()
    assert found == f"COUNT_IF({moment} < {start} OR {moment} >= ({start} + INTERVAL '1' {unit}))"


def test_personal_data_is_looked_for_in_all_text_but_lineage() -> None:
    """Columns that are not named are those of text; what Errata writes itself is left out."""
    check = Check("c", Metric.PII_VALUES, ZERO, kinds=("ssn",))
    plan = compile_plan(manifest(checks=(check,), lineage_columns=("produced_by_run_id",)))
    found = plan.scans[0].aggregates["check.c"]
    assert [name for name in COLUMNS if f"`{name}` RLIKE" in found] == ["account_id", "currency"]


def test_keys_are_grouped_as_little_as_possible() -> None:
    """The same key is one key; the partition column is constant in its partition; a key with it never crosses one."""
    day, account, currency = "business_date", "account_id", "currency"
    checks = (
        Check("a", Metric.DUPLICATE_VALUES, ZERO, (day, account, currency)),
        Check("b", Metric.DUPLICATE_VALUES, ZERO, (currency, account)),
        Check("c", Metric.DUPLICATE_VALUES, ZERO, (account, day), per="run"),
        Check("d", Metric.DUPLICATE_VALUES, ZERO, (currency, account), per="run"),
    )
    scan = compile_plan(manifest(checks=checks)).scans[0]
    assert scan.unique == {"check.a": (account, currency), "check.b": (account, currency), "check.c": (account,)}
    assert scan.unique_in_run == {"check.d": (account, currency)}
    hourly = target_pin("t", "ts", "timestamp", Grain.DAY, {"ts": "timestamp", "k": "int"})
    check = Check("a", Metric.DUPLICATE_VALUES, ZERO, ("ts", "k"))
    assert compile_plan(manifest(target=hourly, checks=(check,))).scans[0].unique == {"check.a": ("k", "ts")}


def test_look_ups_name_the_input_and_both_keys() -> None:
    """The engine joins what the plan says, with the columns in the order of the check."""
    check = Check(
        "c", Metric.MISSING_REFERENCES, ZERO, ("account_id", "currency"), references=References("fx_rates", ("a", "b"))
    )
    scan = compile_plan(manifest(checks=(check,), inputs=(RAW, RATES))).scans[0]
    assert scan.lookups == {"check.c": Lookup(("account_id", "currency"), "fx_rates", ("a", "b"))}


KNOWN = input_pin("known", "lake.ref.known", None, None, columns={"id": "string", "n": "long"})
MISFITS = {
    "a range of text": ({"columns": ("currency",), "minimum": "a"}, "numbers, dates or timestamps", "minimum"),
    "not a number": ({"columns": ("gross",), "maximum": "much"}, "a number", "maximum"),
    "not whole": ({"columns": ("n",), "minimum": "0.5"}, "a whole number of 32 bits", "minimum"),
    "too large": ({"columns": ("n",), "valid_values": ("4294967296",)}, "a whole number of 32 bits", "validValues"),
    "not a date": ({"columns": ("day",), "minimum": "yesterday"}, "a date such as", "minimum"),
    "not a truth": ({"columns": ("is_open",), "valid_values": ("maybe",)}, "true or false", "validValues"),
    "upside down": ({"columns": ("gross",), "minimum": "2", "maximum": "1"}, "at most maximum", "minimum"),
    "length of a number": ({"columns": ("gross",), "min_length": 1}, "a column of text", "minLength"),
    "lengths upside down": (
        {"columns": ("currency",), "min_length": 3, "max_length": 2},
        "at most maxLength",
        "minLength",
    ),
    "catastrophe": ({"columns": ("currency",), "pattern": "(a+)+$"}, "exhaust Java's stack", "pattern"),
    "nested": ({"columns": ("tags",), "valid_values": ("a",)}, "text, numbers, dates", "validValues"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_values_that_do_not_fit_their_column_are_refused(case: str) -> None:
    """What would be rounded, fail in the engine or run for ever is refused before, with the key that says it."""
    given, reason, key = MISFITS[case]
    check = Check("c", Metric.INVALID_VALUES, ZERO, **given)
    with pytest.raises(UsageError, match=reason) as refusal:
        compile_plan(manifest(target=WIDE, checks=(check,)))
    assert refusal.value.fields["key"] == key


@pytest.mark.parametrize(
    "check, reason",
    [
        (Check("c", Metric.FRESHNESS, ZERO, ("gross",), unit="days"), "gross, a decimal"),
        (Check("c", Metric.TIMESTAMP_BOUNDS, ZERO, ("currency",)), "currency, a string"),
        (Check("c", Metric.DUPLICATE_VALUES, ZERO, ("tags",)), "can be compared"),
        (Check("c", Metric.PII_VALUES, ZERO, ("tags",), kinds=("email",)), "columns of one value"),
        (Check("c", Metric.PII_VALUES, ZERO, ("currency",), kinds=("name",)), "some of email"),
        (Check("c", Metric.MISSING_REFERENCES, ZERO, ("currency",)), "one of the inputs known"),
        (
            Check("c", Metric.MISSING_REFERENCES, ZERO, ("currency",), references=References("none", ("id",))),
            "one of the inputs known",
        ),
        (
            Check("c", Metric.MISSING_REFERENCES, ZERO, ("currency",), references=References("known", ("id", "n"))),
            "1 columns, found 2",
        ),
        (
            Check("c", Metric.MISSING_REFERENCES, ZERO, ("currency",), references=References("known", ("nope",))),
            "columns of known: id, n, found nope",
        ),
        (
            Check("c", Metric.MISSING_REFERENCES, ZERO, ("currency",), references=References("known", ("n",))),
            "compares with currency, a string, found n, a long",
        ),
    ],
)
def test_metrics_that_do_not_fit_their_columns_are_refused(check: Check, reason: str) -> None:
    """Ages are of dates, keys can be compared, look-ups are in inputs that are there."""
    with pytest.raises(UsageError, match=reason):
        compile_plan(manifest(target=WIDE, checks=(check,), inputs=(KNOWN,)))


def test_bounds_need_partitions_that_are_intervals() -> None:
    """A partition by value has no beginning and no end."""
    target = target_pin("t", "p", "string", Grain.VALUE, {"p": "string", "ts": "timestamp"})
    with pytest.raises(UsageError, match="by hour, day, month or year"):
        compile_plan(manifest(target=target, checks=(Check("c", Metric.TIMESTAMP_BOUNDS, ZERO, ("ts",)),)))
