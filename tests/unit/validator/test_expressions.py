"""What users may write in checks, and what reaches the engine."""

from __future__ import annotations

import pytest

from errata.errors import UsageError
from errata.validator.expressions import aggregate, row_condition
from unit.validator.manifests import COLUMNS

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
}


@pytest.mark.parametrize("text", ROW)
def test_row_conditions_are_written_out_with_quoted_names(text: str) -> None:
    """The engine gets the normal form, not what was typed."""
    assert row_condition(text, where="check c", types=COLUMNS).sql("spark") == ROW[text]


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_are_total_and_exact(text: str) -> None:
    """Sums over nothing are 0, sums of integers are decimals, division by zero is NULL."""
    assert aggregate(text, where="compare c", types=COLUMNS).sql("spark") == AGGREGATES[text]


@pytest.mark.parametrize("text", REFUSED_ROWS)
def test_what_is_not_a_row_condition_is_refused_with_the_reason(text: str) -> None:
    """A check speaks about one row, gives the same answer every time, and runs nothing."""
    with pytest.raises(UsageError, match=REFUSED_ROWS[text]) as refusal:
        row_condition(text, where="check c", types=COLUMNS)
    assert refusal.value.message.startswith("check c: expression")


@pytest.mark.parametrize("text", REFUSED_AGGREGATES)
def test_what_is_not_an_aggregate_is_refused_with_the_reason(text: str) -> None:
    """A reconciliation or comparison is one number per partition."""
    with pytest.raises(UsageError, match=REFUSED_AGGREGATES[text]):
        aggregate(text, where="compare c", types=COLUMNS)


def test_columns_are_not_checked_where_they_are_not_known() -> None:
    """An input's columns are known to the engine only; integers stay as they are."""
    assert aggregate("sum(amount)", where="reconcile r", types=None).sql("spark") == "COALESCE(SUM(`amount`), 0)"
