"""Evaluate the SQL of rules on rows in Python: the part of Spark SQL that most rules need; everything else is refused.

NULL is None, and conditions have three values as in SQL. Decimals and whole numbers stay exact.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from math import ceil
from typing import Any

import sqlglot
from sqlglot import exp

from errata.errors import UsageError
from errata.testing.row_values import Row, freeze_value

_PRECISION = 100
Evaluate = Callable[[Any], Any]


def evaluate_condition(sql: str, row: Row) -> bool:
    """Whether a row meets a condition; NULL does not."""
    return evaluate_row(sql, row) is True


def evaluate_row(sql: str, row: Row) -> Any:
    """The value of an expression for one row."""
    with localcontext(prec=_PRECISION):
        return _Evaluation(sql, [row], row).value(_parse(sql))


def evaluate_total(sql: str, rows: Sequence[Row]) -> Any:
    """The value of an aggregate expression over rows."""
    with localcontext(prec=_PRECISION):
        return _Evaluation(sql, rows, None).value(_parse(sql))


@cache
def _parse(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="spark")


class _Evaluation:
    """One expression, over one row or over all of them."""

    def __init__(self, sql: str, rows: Sequence[Row], row: Row | None) -> None:
        self._sql = sql
        self._rows = rows
        self._row = row

    def value(self, node: Any) -> Any:
        """The value of a part of the expression."""
        if isinstance(node, (exp.AggFunc, exp.Filter)) and self._row is None:
            return self._total(node, self._rows)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise self.refuse(node.key.upper())
        return handler(node, self)

    def refuse(self, what: str) -> UsageError:
        """An error for a part of SQL that is not known here."""
        return UsageError(
            f"{self._sql} was refused; tables in memory do not know {what}", hint="test this rule with Spark"
        )

    def column(self, node: exp.Column) -> Any:
        """The value of a column in the current row."""
        if self._row is None:
            raise UsageError(f"{self._sql} was refused; {node.name} is not inside an aggregate")
        if node.name not in self._row:
            raise UsageError(f"{self._sql} was refused; there is no column {node.name}: {', '.join(self._row)}")
        return self._row[node.name]

    def _of(self, row: Row, node: Any) -> Any:
        return _Evaluation(self._sql, [row], row).value(node)

    def _total(self, node: Any, rows: Sequence[Row]) -> Any:
        if isinstance(node, exp.Filter):
            wanted = [row for row in rows if self._of(row, node.expression.this) is True]
            return self._total(node.this, wanted)
        if isinstance(node, exp.CountIf):
            return sum(self._of(row, node.this) is True for row in rows)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            keys = [tuple(freeze_value(self._of(row, one)) for one in node.this.expressions) for row in rows]
            return len({key for key in keys if None not in key})
        if isinstance(node, exp.Count):
            return len(rows) if isinstance(node.this, exp.Star) else len(self._present(node.this, rows))
        if isinstance(node, exp.ApproxQuantile):
            ranks = [Decimal(one.this) for one in node.args["quantile"].expressions]
            return _find_quantiles(self._present(node.this, rows), ranks)
        fold = _FOLDS.get(type(node))
        if fold is None:
            raise self.refuse(node.key.upper())
        held = self._present(node.this, rows)
        return fold(held) if held else None

    def _present(self, node: Any, rows: Sequence[Row]) -> list[Any]:
        return [value for row in rows if (value := self._of(row, node)) is not None]


def _average(values: Sequence[Any]) -> Any:
    total = sum(values)
    if not isinstance(total, Decimal):
        return float(total) / len(values)
    scale = -int(total.as_tuple().exponent) + 4  # as Spark widens the type of an average
    return (total / len(values)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _find_quantiles(values: Sequence[Any], quantiles: Sequence[Decimal]) -> list[Any] | None:
    """The values at these ranks, as Spark counts them; exact, however many there are."""
    ordered = sorted(values)
    return [ordered[max(0, ceil(one * len(ordered)) - 1)] for one in quantiles] if ordered else None


_FOLDS: Mapping[type, Callable[[list[Any]], Any]] = {
    exp.Sum: sum,
    exp.Min: min,
    exp.Max: max,
    exp.Avg: _average,
}


def _literal(node: exp.Literal, _: _Evaluation) -> Any:
    if node.is_string:
        return node.this
    return Decimal(node.this) if "." in node.this else int(node.this)


def _strict(act: Callable[..., Any]) -> Callable[[Any, _Evaluation], Any]:
    """A function of two values that is NULL if either is."""

    def run(node: Any, at: _Evaluation) -> Any:
        left, right = at.value(node.this), at.value(node.expression)
        return None if left is None or right is None else act(*_match(left, right))

    return run


def _match(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values in a common type, as Spark compares them."""
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    if isinstance(left, date) and isinstance(right, str):
        return left, type(left).fromisoformat(right)
    if isinstance(left, str) and isinstance(right, date):
        return type(right).fromisoformat(left), right
    return left, right


def _divide(left: Any, right: Any) -> Any:
    if not isinstance(left, Decimal) and not isinstance(right, Decimal):
        return float(left) / float(right)
    return Decimal(left) / Decimal(right)


def _and(node: Any, at: _Evaluation) -> Any:
    both = (at.value(node.this), at.value(node.expression))
    return False if False in both else None if None in both else True


def _or(node: Any, at: _Evaluation) -> Any:
    both = (at.value(node.this), at.value(node.expression))
    return True if True in both else None if None in both else False


def _not(node: Any, at: _Evaluation) -> Any:
    held = at.value(node.this)
    return None if held is None else not held


def _is_same(node: Any, at: _Evaluation) -> Any:
    return at.value(node.this) == at.value(node.expression)


def _is_among(node: Any, at: _Evaluation) -> Any:
    held, options = at.value(node.this), [at.value(one) for one in node.expressions]
    if held is None:
        return None
    found = any(one is not None and operator.eq(*_match(held, one)) for one in options)
    return True if found else None if None in options else False


def _between(node: Any, at: _Evaluation) -> Any:
    held, low, high = (at.value(one) for one in (node.this, node.args["low"], node.args["high"]))
    if None in (held, low, high):
        return None
    return operator.ge(*_match(held, low)) and operator.le(*_match(held, high))


def _case(node: Any, at: _Evaluation) -> Any:
    subject = at.value(node.this) if node.this is not None else None
    for branch in node.args["ifs"]:
        told = at.value(branch.this)
        if (told is True) if node.this is None else (told is not None and told == subject):
            return at.value(branch.args["true"])
    return at.value(node.args["default"]) if node.args.get("default") is not None else None


def _if(node: Any, at: _Evaluation) -> Any:
    chosen = node.args["true"] if at.value(node.this) is True else node.args.get("false")
    return at.value(chosen) if chosen is not None else None


def _coalesce(node: Any, at: _Evaluation) -> Any:
    values = (at.value(one) for one in (node.this, *node.expressions))
    return next((one for one in values if one is not None), None)


def _cast(node: Any, at: _Evaluation) -> Any:
    value, kind = at.value(node.this), node.to
    if value is None:
        return None
    return _cast_value(value, kind.sql("spark").upper(), at)


def _cast_value(value: Any, kind: str, at: _Evaluation) -> Any:
    if kind == "STRING":
        return to_text(value)
    if kind.startswith("DECIMAL"):
        scale = int((re.findall(r"\d+", kind) or ["10", "0"])[-1]) if "," in kind else 0
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    known: Mapping[str, Callable[[Any], Any]] = {
        "INT": int, "BIGINT": int, "DOUBLE": float, "FLOAT": float,
        "BOOLEAN": lambda one: one if isinstance(one, bool) else str(one).lower() == "true",
        "DATE": lambda one: date.fromisoformat(str(one)[:10]),
        "TIMESTAMP": lambda one: _to_instant(one).replace(tzinfo=UTC),
        "TIMESTAMP_NTZ": _to_instant,
    }  # fmt: skip
    if kind not in known:
        raise at.refuse(f"CAST to {kind}")
    return known[kind](value)


def _to_instant(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


def to_text(value: Any) -> str:
    """A value as Spark casts it to text."""
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case _:
            return str(value)


def _like(pattern: str, text: str) -> bool:
    parts = [".*" if one == "%" else "." if one == "_" else re.escape(one) for one in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _of_one(act: Callable[[Any], Any]) -> Callable[[Any, _Evaluation], Any]:
    def run(node: Any, at: _Evaluation) -> Any:
        held = at.value(node.this)
        return None if held is None else act(held)

    return run


_HANDLERS: Mapping[type, Callable[[Any, _Evaluation], Any]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _at: None,
    exp.Boolean: lambda node, _at: bool(node.this),
    exp.Column: lambda node, at: at.column(node),
    exp.Paren: lambda node, at: at.value(node.this),
    exp.Bracket: lambda node, at: (
        None if (held := at.value(node.this)) is None else held[int(node.expressions[0].this)]
    ),
    exp.Neg: _of_one(operator.neg),
    exp.Abs: _of_one(abs),
    exp.Length: _of_one(len),
    exp.Lower: _of_one(str.lower),
    exp.Upper: _of_one(str.upper),
    exp.Trim: _of_one(str.strip),
    exp.IsNan: _of_one(lambda one: one != one),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is_same,
    exp.NullSafeEQ: _is_same,
    exp.EQ: _strict(operator.eq),
    exp.NEQ: _strict(operator.ne),
    exp.GT: _strict(operator.gt),
    exp.GTE: _strict(operator.ge),
    exp.LT: _strict(operator.lt),
    exp.LTE: _strict(operator.le),
    exp.Add: _strict(operator.add),
    exp.Sub: _strict(operator.sub),
    exp.Mul: _strict(operator.mul),
    exp.Div: _strict(_divide),
    exp.Mod: _strict(operator.mod),
    exp.Like: _strict(lambda text, pattern: _like(pattern, text)),
    exp.RegexpLike: _strict(lambda text, pattern: re.search(pattern, text) is not None),
    exp.In: _is_among,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: lambda node, at: None if _is_same(node, at) else at.value(node.this),
    exp.Cast: _cast,
    exp.TryCast: _cast,  # how sqlglot reads CAST of Spark
}
