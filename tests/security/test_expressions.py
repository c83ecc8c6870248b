"""Filters and rules are a small language: whatever is written is refused, or comes out as the same small language."""

from __future__ import annotations

import random

import pytest
import sqlglot
from sqlglot import exp

from errata.errors import UsageError
from errata.gate.rules.expressions import parse_aggregate, parse_row_condition, parse_row_value
from errata.gate.rules.row_rules import row_rule_sql
from errata.model.product.eras import RowRule
from security.corpus import CORPUS, label
from unit.gate.manifests import COLUMNS

PIECES = (
    "gross", "currency", "is_open", "business_date", "`gross`", "`a``b`", "1", "0.5", "'x'", "'it\\'s'", "''", "null",
    "true", "+", "-", "*", "/", "%", "=", "<", "<=>", "!=", "and", "or", "not", "(", ")", ",", ".", ";", "--", "/*",
    "*/", "in", "between", "like", "rlike", "is", "case", "when", "then", "else", "end", "cast(", "as string)", "sum(",
    "count(", "upper(", "reflect(", "java_method(", "select", "from", "union", "drop table", "insert into", "set",
    "lambda", "->", "::", "[", "]", "{", "}", "$", "?", ":p", "@", "#", "\\", "\n", "\t", "\x00", "\u202e", "é",
    "'", '"',
    "`", "over (", "partition by", "exists(", "struct(", "interval 1 day", "date '2026-01-01'", "x'41'", "0x41", "1e3",
)  # fmt: skip

ALLOWED_ROOTS = (exp.Expression,)
FORBIDDEN = (exp.Query, exp.DDL, exp.DML, exp.Command, exp.Window, exp.Parameter, exp.Placeholder, exp.Table)


def _judge(text: str) -> bool:
    """Whether the text was taken; what was taken prints to itself and holds nothing that is not in the language."""
    taken = False
    for parse in (parse_row_condition, parse_row_value, parse_aggregate):
        try:
            printed = parse(text, where="check c", types=COLUMNS).sql("spark")
        except UsageError:
            continue
        taken = True
        tree = sqlglot.parse_one(printed, dialect="spark")
        assert not tree.find(*FORBIDDEN), (text, printed)
        assert len(sqlglot.parse(printed, dialect="spark")) == 1
        assert all(name.quoted for name in tree.find_all(exp.Identifier) if isinstance(name.parent, exp.Column)), (
            printed
        )
        if parse is not parse_aggregate:  # an aggregate is made total, and totals are not wrapped twice
            assert parse(printed, where="check c", types=COLUMNS).sql("spark") == printed
    return taken


def _words(seed: int) -> str:
    source = random.Random(seed)  # noqa: S311
    return " ".join(source.choice(PIECES) for _ in range(source.randint(1, 9)))


def test_any_arrangement_of_words_is_refused_or_understood():
    """400 inputs: parse, print and parse again agree, and nothing outside the language gets through."""
    assert sum(_judge(_words(seed)) for seed in range(400)) > 2


@pytest.mark.slow
def test_ten_thousand_arrangements_of_words():
    """The same with ten times as many, other seeds."""
    assert sum(_judge(_words(seed)) for seed in range(400, 10_400)) > 50


@pytest.mark.parametrize("payload", CORPUS, ids=label)
def test_no_payload_is_more_than_an_expression(payload: str):
    """Whole, as a string inside an expression, and as a name in backticks."""
    _judge(payload)
    _judge(f"currency = '{payload}'")
    _judge(f"`{payload}` is null")
    try:
        row_rule_sql(RowRule("r", payload, "quarantine"), "raw", COLUMNS)
    except UsageError:
        pass


@pytest.mark.parametrize("payload", [p for p in CORPUS if not any("\ud800" <= c <= "\udfff" for c in p)], ids=label)
def test_a_value_in_a_rule_stays_one_literal(payload: str):
    """Valid values, missing values and patterns reach the engine as literals, whatever is in them."""
    printed = exp.column("currency", quoted=True).isin(exp.Literal.string(payload)).sql("spark")
    tree = sqlglot.parse_one(printed, dialect="spark")
    (literal,) = tree.find_all(exp.Literal)
    assert literal.this == payload
    assert isinstance(tree, exp.In)
