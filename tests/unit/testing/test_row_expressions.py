"""SQL of rules on Python rows: exact numbers, three-valued conditions, and a refusal of what is not known."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from errata.errors import UsageError
from errata.testing.row_expressions import evaluate_condition, evaluate_row, evaluate_total

ROWS: list[dict[str, Any]] = [
    {"day": date(2026, 1, 1), "who": "a", "amount": Decimal("0.10"), "n": 1},
    {"day": date(2026, 1, 1), "who": "b", "amount": Decimal("0.20"), "n": None},
    {"day": date(2026, 1, 2), "who": None, "amount": None, "n": 3},
]


@pytest.mark.parametrize(
    "sql, value",
    [
        ("count(*)", 3),
        ("count(amount)", 2),
        ("count(DISTINCT day)", 2),
        ("sum(amount)", Decimal("0.30")),
        ("avg(amount)", Decimal("0.150000")),
        ("min(who)", "a"),
        ("sum(n) + 1", 5),
        ("sum(CAST(n AS DECIMAL(38, 0)))", Decimal(4)),
        ("COUNT_IF(who IS NULL OR amount > 0.15)", 2),
        ("sum(amount) FILTER (WHERE who = 'b')", Decimal("0.20")),
        ("sum(CASE WHEN who = 'a' THEN amount ELSE 0 END)", Decimal("0.10")),
    ],
)
def test_an_aggregate_gives_sparks_answer(sql: str, value: object) -> None:
    """NULL is left out of every aggregate but count(*), and decimals stay exact."""
    assert evaluate_total(sql, ROWS) == value


def test_the_sum_of_no_rows_is_null_and_their_count_is_zero() -> None:
    """As in SQL."""
    assert (evaluate_total("sum(amount)", []), evaluate_total("count(*)", [])) == (None, 0)


@pytest.mark.parametrize(
    "sql, holds",
    [
        ("who = 'a'", False),
        ("NOT who = 'a'", False),
        ("who IS NULL", True),
        ("amount > 1 OR n = 3", True),
        ("n IN (1, 2)", False),
        ("n BETWEEN 2 AND 4", True),
        ("coalesce(who, 'x') LIKE 'x%'", True),
        ("day > '2026-01-01'", True),
    ],
)
def test_a_condition_on_null_is_not_true(sql: str, holds: bool) -> None:
    """Neither a comparison with NULL nor its opposite holds."""
    assert evaluate_condition(sql, ROWS[2]) is holds


def test_what_is_not_known_is_refused_by_name() -> None:
    """No rule is ever measured wrongly because a function is missing here."""
    with pytest.raises(UsageError, match="do not know SOUNDEX"):
        evaluate_row("soundex(who)", ROWS[0])
    with pytest.raises(UsageError, match="do not know STDDEV"):
        evaluate_total("stddev(amount)", ROWS)
    with pytest.raises(UsageError, match="there is no column amout"):
        evaluate_total("sum(amout)", ROWS)
