"""What users may write in checks, and what reaches the engine."""

from __future__ import annotations

import pytest

from errata.errors import UsageError
from errata.gate.rules import functions
from errata.gate.rules.expressions import MAX_CHARACTERS, parse_aggregate, parse_row_condition, parse_row_value
from unit.gate.manifests import COLUMNS

ROW = {
    "gross < 0": "`gross` < 0",
    "GROSS < 0 -- never": "`GROSS` < 0",
    "is_open": "`is_open`",
    "not (is_open and gross is null)": "NOT (`is_open` AND `gross` IS NULL)",
    "currency in ('it\\'s', 'EUR')": "`currency` IN ('it\\'s', 'EUR')",
    "currency rlike '^\\\\d+$'": "`currency` RLIKE '^\\\\d+$'",
    "exists(split(currency, ','), x -> x = account_id)": "EXISTS(SPLIT(`currency`, ','), `x` -> `x` = `account_id`)",
    "cast(gross as double) / event_count > 0.5": "CAST(`gross` AS DOUBLE) / `event_count` > 0.5",
    "business_date < date '2026-01-01'": "`business_date` < CAST('2026-01-01' AS DATE)",
    "nvl(gross, 0) > 0": "COALESCE(`gross`, 0) > 0",
    "gross <=> 1 or gross between 1 and 2": "`gross` IS NOT DISTINCT FROM 1 OR `gross` BETWEEN 1 AND 2",
    "case when is_open then gross > 0 else false end": "CASE WHEN `is_open` THEN `gross` > 0 ELSE FALSE END",
    "currency like any ('a%', 'b%')": "`currency` LIKE ANY ('a%', 'b%')",
    "lpad(account_id, 10, '0') = account_id": "LPAD(`account_id`, 10, '0') = `account_id`",
    "position('a' in currency) > 0": "LOCATE('a', `currency`) > 0",
    "regexp_replace(currency, '[^A-Z]', '') = ''": "REGEXP_REPLACE(`currency`, '[^A-Z]', '') = ''",
    "business_date - interval 1 day < date '2026-01-01'": (
        "`business_date` - INTERVAL '1' DAY < CAST('2026-01-01' AS DATE)"
    ),
    "struct(gross).gross > 1": "STRUCT(`gross` AS `gross`).`gross` > 1",
}
AGGREGATES = {
    "count(*)": "COUNT(*)",
    "sum(gross)": "COALESCE(SUM(`gross`), 0)",
    "sum(event_count)": "COALESCE(SUM(CAST(`event_count` AS DECIMAL(38, 0))), 0)",
    "sum(gross) / count(*)": "TRY_DIVIDE(COALESCE(SUM(`gross`), 0), COUNT(*))",
    "sum(gross) filter (where is_open) - sum(gross)": (
        "COALESCE(SUM(`gross`) FILTER(WHERE `is_open`), 0) - COALESCE(SUM(`gross`), 0)"
    ),
    "max(gross)": "MAX(`gross`)",
    "count(distinct account_id)": "COUNT(DISTINCT `account_id`)",
    "count_if(currency = 'EUR')": "COUNT_IF(`currency` = 'EUR')",
    "percentile(gross, 0.5)": "PERCENTILE(`gross`, 0.5)",
    "max(upper(currency)) = 'EUR'": "MAX(UPPER(`currency`)) = 'EUR'",
}
REFUSED_ROWS = {
    "sum(gross) > 0": "found the aggregate sum()",
    "gross in (select 1)": "no sub-query",
    "exists (select 1)": "no sub-query",
    "select 1": "not a statement",
    "drop table x": "not a statement",
    "gross < 0; drop table x": "exactly one expression",
    "": "exactly one expression",
    "gross <": "one Spark SQL expression",
    "gross": "true or false",
    "gross + 1": "true or false",
    "'yes'": "true or false",
    "gross as g": "not a statement",
    "row_number() over (order by gross) > 1": "no window function",
    "gross > :limit": "no parameter",
    "rand() < 0.5": r"found rand\(\)",
    "current_date() > business_date": r"found current_date\(\)",
    "now() > business_date": r"found now\(\)",
    "reflect('java.lang.Runtime', 'getRuntime') is null": r"found reflect\(\)",
    "java_method('java.lang.System', 'exit', 1) is null": r"found java_method\(\)",
    "gros < 0": "found gros; did you mean gross",
    "date_trunc() = business_date": "arguments as Spark documents them",
    "from_utc_timestamp(business_date, currency)": "true or false",
    "current_user = 'ana'": r"found current_user\(\)",
    "unix_timestamp() > 0": r"found current_timestamp\(\)",
    "my_udf(gross) > 0": r"a function of the list .* found my_udf\(\)",
    "uper(currency) = 'A'": r"found uper\(\); did you mean upper",
    "tools.upper(currency) = 'A'": "those are user-defined",
    "tools.db.upper(currency) = 'A'": "those are user-defined",
    "transform(array(1), x -> rand()) is null": r"found rand\(\)",
    "upper(x -> x) = 'A'": "x -> … in aggregate",
    "explode(array(1)) > 0": "one value for a row",
    "repeat(currency, 1000000000) = ''": r"no more memory .* found repeat\(\)",
    "lpad(currency, 1000000000, ' ') = ''": "a length up to 1,000",
    "lpad(currency, event_count, ' ') = ''": "a length up to 1,000",
    "raise_error('x') is null": r"found raise_error\(\)",
    "currency rlike '(a+)+$'": "exhaust Java's stack",
    "currency rlike account_id": "written out as text",
    "currency rlike concat('(a', '+)+')": "written out as text",
    "regexp_like(currency, '(a|a)*')": "exhaust Java's stack",
    "regexp_extract(currency, '(a|ab|b)*c', 0) = ''": "exhaust Java's stack",
    "split(currency, '(,+)+')[0] = ''": "exhaust Java's stack",
    "currency like account_id": "a pattern written out as text after LIKE",
    "currency like '%a%b%c%d%e%f%'": "at most 5 times %",
    "currency = 'a' collate utf8_lcase": "found collate",
    "any(is_open)": "found any",
    "every(is_open)": r"found every\(\)",
    "gross > $limit": "no parameter",
    "gross > 0 union select 1": "not a statement",
    "(" * 500 + "is_open" + ")" * 500: "nested too deeply",
    " or ".join(["is_open"] * 600): "at most 2,000 characters",
    " or ".join(["is_open"] * 600).replace("is_open", "1=1")[:1998]: "at most 1,000 parts|one Spark SQL expression",
}
REFUSED_AGGREGATES = {
    "gross": "an aggregate such as",
    "1": "an aggregate such as",
    "sum(gross) + gross": "`?gross`? outside",
    "sum(max(gross))": "not inside one another",
    "first(gross)": "row order",
    "collect_list(gross)": "row order",
    "sum(gross) over ()": "no window function",
    "sum(rand())": r"found rand\(\)",
    "(select sum(gross))": "not a statement|no sub-query",
    "sum(nothing)": "found nothing",
    "approx_count_distinct(account_id)": "an exact number",
    "max_by(gross, account_id)": "row order",
    "mode(gross)": "row order",
    "sum(my_udf(gross))": r"found my_udf\(\)",
    "count_if(currency rlike '(a*)*')": "exhaust Java's stack",
    "sum(gross) filter (where exists (select 1))": "no sub-query",
}


@pytest.mark.parametrize("text", ROW)
def test_row_conditions_are_written_out_with_quoted_names(text: str) -> None:
    """The engine gets the normal form, not what was typed."""
    assert parse_row_condition(text, where="check c", types=COLUMNS).sql("spark") == ROW[text]


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_are_total_and_exact(text: str) -> None:
    """Sums over nothing are 0, sums of integers are decimals, division by zero is NULL."""
    assert parse_aggregate(text, where="compare c", types=COLUMNS).sql("spark") == AGGREGATES[text]


@pytest.mark.parametrize("text", REFUSED_ROWS)
def test_what_is_not_a_row_condition_is_refused_with_the_reason(text: str) -> None:
    """A check speaks about one row, gives the same answer every time, and runs nothing."""
    with pytest.raises(UsageError, match=REFUSED_ROWS[text]) as refusal:
        parse_row_condition(text, where="check c", types=COLUMNS)
    assert refusal.value.message.startswith("check c: expression")


@pytest.mark.parametrize("text", REFUSED_AGGREGATES)
def test_what_is_not_an_aggregate_is_refused_with_the_reason(text: str) -> None:
    """A reconciliation or comparison is one number per partition."""
    with pytest.raises(UsageError, match=REFUSED_AGGREGATES[text]):
        parse_aggregate(text, where="compare c", types=COLUMNS)


def test_columns_are_not_checked_where_they_are_not_known() -> None:
    """An input's columns are known to the engine only; integers stay as they are."""
    assert parse_aggregate("sum(amount)", where="reconcile r", types=None).sql("spark") == "COALESCE(SUM(`amount`), 0)"


def test_a_value_of_one_row_has_neither_aggregate_nor_star() -> None:
    """What rows are grouped by is known from each row alone."""
    assert parse_row_value("upper(currency)", where="by", types=COLUMNS).sql("spark") == "UPPER(`currency`)"
    with pytest.raises(UsageError, match=r"a value of one row, found the aggregate sum\(\)"):
        parse_row_value("sum(gross)", where="by", types=COLUMNS)
    with pytest.raises(UsageError, match=r"found \*"):
        parse_row_value("struct(*)", where="by", types=COLUMNS)


def test_a_refusal_says_which_key_and_does_not_repeat_a_long_text() -> None:
    """The line can be found by its key, and the message stays readable."""
    with pytest.raises(UsageError) as refusal:
        parse_aggregate("x" * (MAX_CHARACTERS + 1), where="compare c", types=None, key="metric")
    assert refusal.value.fields["key"] == "metric"
    assert len(refusal.value.message) < 300


MOVING = [
    "business_date < 'today'",
    "business_date < date ' Tomorrow '",
    "cast('now' as timestamp) > business_date",
    "business_date in ('2026-01-01', 'yesterday Europe/Berlin')",
    "to_date('YESTERDAY') < business_date",
    "currency = 'epoch'",
    "business_date < case when is_open then 'today+01:00' else '2026-01-01' end",
]


@pytest.mark.parametrize("text", MOVING)
def test_text_that_spark_takes_for_the_current_time_is_refused(text: str) -> None:
    """What was measured is evidence, so it may not depend on the day it was measured."""
    with pytest.raises(UsageError, match="the same answer every time"):
        parse_row_condition(text, where="check c", types=COLUMNS)
    with pytest.raises(UsageError, match="the same answer every time"):
        parse_aggregate(f"count_if({text})", where="compare c", types=None)


@pytest.mark.parametrize(
    "text",
    [
        "business_date < concat('to', 'day')",
        "business_date < 'to' || 'day'",
        "business_date < 'to' 'day'",
        "business_date < lower(substring('xTODAY', 2))",
        "business_date < date_format(date '2026-01-01', \"'now'\")",
        "business_date < array_join(array('to', 'day'), '')",
    ],
)
def test_constant_text_is_written_out(text: str) -> None:
    """Text that is put together from constants could be made to say today where nobody sees it."""
    with pytest.raises(UsageError, match="text written out as one literal"):
        parse_row_condition(text, where="check c", types=COLUMNS)


TYPES = COLUMNS | {"at": "timestamptz", "local": "timestamp", "rate": "double", "tags": "list<string>", "raw": "binary"}
MISFITS = {
    "event_count < 'abc'": "event_count compared with a number, because the column is long; found 'abc'",
    "'abc' > EVENT_COUNT": "compared with a number",
    "event_count in (1, 'x')": "compared with a number",
    "event_count between 1 and '1.5'": "compared with a whole number of 64 bits",
    "event_count = true": "compared with a number, because the column is long; found TRUE",
    "event_count < date '2026-01-01'": "compared with a number",
    "is_open = 3": "is_open compared with true or false, because the column is boolean; found 3",
    "not (is_open <=> -1)": "compared with true or false",
    "business_date < 5": "compared with a date such as 2026-01-31, because the column is date; found 5",
    "business_date < (-5)": "compared with a date",
    "business_date < '31.01.2026'": "compared with a date such as 2026-01-31; found",
    "business_date < '20260131'": "compared with a date",
    "business_date < date '2026-02-30'": "compared with a date",
    "at >= 'soon'": "compared with a timestamptz such as",
    "local >= '2026-01-01 00:00:00Z'": "without a zone",
    "currency = 5": "currency compared with text in quotes, because the column is string; found 5",
    "currency > date '2026-01-01'": "compared with text in quotes",
    "tags = 'a'": "a part of the column, which is a list",
    "gross > 0 and (gross < 1 or gross <> 'none')": "compared with a number",
}
FITTING = [
    "event_count > 0.5 and event_count < '7' and gross >= -0.001",
    "is_open = true or is_open = 'false' or is_open is true",
    "business_date < '2026-01-31' and business_date >= date '2026-01-01'",
    "business_date < timestamp '2026-01-01 00:00:00'",
    "at < '2026-01-31 12:00:00Z' or at < '2026-01-31' or at > timestamp '2026-01-01 00:00:00 Europe/Berlin'",
    "rate = 'NaN' or rate > 1e3",
    "currency = '5' or currency is null or currency = null",
    "exists(split(currency, ','), gross -> gross = 'abc')",
    "raw = 'abc'",
]


@pytest.mark.parametrize("text", MISFITS)
def test_a_column_is_compared_with_constants_of_its_type(text: str) -> None:
    """Spark would fail on the first row, after the work is done."""
    with pytest.raises(UsageError) as refusal:
        parse_row_condition(text, where="check c", types=TYPES)
    assert MISFITS[text] in refusal.value.message
    with pytest.raises(UsageError, match="compared with"):
        parse_aggregate(f"count_if({text})", where="compare c", types=TYPES)


@pytest.mark.parametrize("text", FITTING)
def test_constants_that_become_values_of_the_column_are_fine(text: str) -> None:
    """Wider numbers, text that is a value of the type, and names of a lambda that only sound like a column."""
    parse_row_condition(text, where="check c", types=TYPES)


def test_the_lists_of_functions_agree() -> None:
    """What is allowed is not refused, and what is special is allowed."""
    assert not functions.ALLOWED & set(functions.REFUSED)
    assert functions.LAMBDAS | functions.PADDING | set(functions.PATTERNS) | functions.AGGREGATES <= functions.ALLOWED
