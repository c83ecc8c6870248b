"""Parse and normalize the expressions that users write in product files. Pure.

Expressions are parsed as Spark SQL and written out again with every identifier quoted, so that nothing the parser does
not understand reaches the engine. They may consist only of columns, literals, operators and the functions of
:mod:`errata.gate.rules.functions`; the generated text is checked against that list again. A row condition and a row
value concern one row, an aggregate all rows of a partition. All are deterministic, because measurements are evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from errata.errors import UsageError
from errata.gate.rules.constants import find_misfit, is_composed_text
from errata.gate.rules.functions import ALLOWED, LAMBDAS, PADDING, PATTERNS, REFUSED
from errata.gate.rules.literals import is_current_time, is_number
from errata.gate.rules.patterns import find_pattern_flaw

MAX_CHARACTERS = 2000
_MOST_NODES = 1000
_MOST_PADDING = 1000
_MOST_WILDCARDS = 5
_SHOWN = 120

_INTEGERS = frozenset({"int", "long"})
_BINARY = (
    exp.Add,
    exp.BitwiseAnd,
    exp.BitwiseLeftShift,
    exp.BitwiseOr,
    exp.BitwiseRightShift,
    exp.BitwiseXor,
    exp.Connector,
    exp.DPipe,
    exp.Div,
    exp.Dot,
    exp.EQ,
    exp.Escape,
    exp.GT,
    exp.GTE,
    exp.ILike,
    exp.IntDiv,
    exp.Is,
    exp.LT,
    exp.LTE,
    exp.Like,
    exp.Mod,
    exp.Mul,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.PropertyEQ,
    exp.RegexpLike,
    exp.Sub,
)
_SYNTAX = (*_BINARY, exp.Case, exp.Cast, exp.Exists, exp.If)
_ZONED = (exp.AtTimeZone, exp.FromTimeZone)
"""Nodes of from_utc_timestamp(…) and to_utc_timestamp(…), which the parser does not treat as functions."""
_PARTS = (
    *_BINARY,
    *_ZONED,
    exp.Between,
    exp.Boolean,
    exp.Bracket,
    exp.Column,
    exp.DataType,
    exp.DataTypeParam,
    exp.Distinct,
    exp.Filter,
    exp.Func,
    exp.Identifier,
    exp.In,
    exp.Interval,
    exp.IntervalSpan,
    exp.JSONPath,
    exp.JSONPathPart,
    exp.Lambda,
    exp.Literal,
    exp.Null,
    exp.Paren,
    exp.Star,
    exp.Tuple,
    exp.Unary,
    exp.Var,
    exp.Where,
)
_NOT_A_CONDITION = (*_ZONED, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Star, exp.Struct)
_KEYWORDS = (
    "all and any as between case decimal distinct div else escape filter from ilike in interval is like not or rlike"
    " then when where"
)

Types = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _ExpressionContext:
    """Text and place of an expression, for refusals; ``key`` is the key of the product file that holds it."""

    text: str
    where: str
    key: str

    def refused(self, expected: str) -> UsageError:
        """Error that the expression was refused."""
        said = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        message = f"{self.where}: expression {said!r} was refused; expected {expected}"
        return UsageError(message, expression=self.text, key=self.key)


def parse_row_condition(text: str, *, where: str, types: Types | None, key: str = "expression") -> exp.Expr:
    """Parse a condition that is true or false for a row."""
    place = _ExpressionContext(text, where, key)
    tree = _parse_row(place, "a condition on one row")
    root = tree.unnest()
    is_value = isinstance(root, _NOT_A_CONDITION) or (
        isinstance(root, exp.Column) and types is not None and _type_of(root, types) not in ("boolean", None)
    )
    if is_value:
        raise place.refused("a condition that is true or false for a row")
    return _normalize_tree(tree, place, types)


def parse_row_value(text: str, *, where: str, types: Types | None, key: str = "expression") -> exp.Expr:
    """Parse a value computed from one row, such as a grouping key."""
    place = _ExpressionContext(text, where, key)
    tree = _parse_row(place, "a value of one row")
    if tree.find(exp.Star):
        raise place.refused("a value of one row, found *")
    return _normalize_tree(tree, place, types)


def parse_aggregate(text: str, *, where: str, types: Types | None, key: str = "expression") -> exp.Expr:
    """Parse an aggregate over the rows of a partition; a sum over no rows is 0, division by 0 is NULL."""
    place = _ExpressionContext(text, where, key)
    tree = _parse(place)
    functions = list(tree.find_all(exp.AggFunc))
    if not functions:
        raise place.refused("an aggregate such as sum(amount) or count(*)")
    if any(function.find_ancestor(exp.AggFunc) for function in functions):
        raise place.refused("aggregates that are not inside one another")
    own = _lambda_names(tree)
    loose = [
        column
        for column in tree.find_all(exp.Column)
        if not column.find_ancestor(exp.AggFunc, exp.Filter) and column.parts[0].name.lower() not in own
    ]
    if loose:
        raise place.refused(f"every column inside an aggregate, found {loose[0].sql('spark')} outside")
    for function in functions:
        kind = _type_of(function.this, types) if types and isinstance(function.this, exp.Column) else None
        if isinstance(function, (exp.Sum, exp.Avg)) and kind is not None and not is_number(kind):
            raise place.refused(f"a number to add up, found {function.this.sql('spark')}, a {kind}")
    return _verify_written(_guard_totals(_normalize_tree(tree, place, types), types), place)


def _parse_row(place: _ExpressionContext, expected: str) -> exp.Expr:
    tree = _parse(place)
    if found := tree.find(exp.AggFunc, exp.Filter):
        raise place.refused(f"{expected}, found the aggregate {_find_written_name(found, place.text)}()")
    return tree


def _parse(place: _ExpressionContext) -> exp.Expr:
    if len(place.text) > MAX_CHARACTERS:
        raise place.refused(f"at most {MAX_CHARACTERS:,} characters, found {len(place.text):,}")
    try:
        trees = sqlglot.parse(place.text, read="spark")
    except (SqlglotError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise place.refused(f"one Spark SQL expression ({reason})") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):  # date_trunc() without arguments
        raise place.refused("arguments as Spark documents them") from None
    if len(trees) != 1 or trees[0] is None:
        raise place.refused("exactly one expression")
    tree = trees[0]
    if not isinstance(tree, (exp.Condition, exp.Filter, *_ZONED)) or isinstance(tree, (exp.Alias, exp.Query)):
        raise place.refused("an expression, not a statement")
    _refuse_parts(tree, place)
    return tree


def _refuse_parts(tree: exp.Expr, place: _ExpressionContext) -> None:
    nodes = list(tree.walk())
    if len(nodes) > _MOST_NODES:
        raise place.refused(f"at most {_MOST_NODES:,} parts, found {len(nodes):,}")
    for node in nodes:
        if isinstance(node, exp.Query):
            raise place.refused("no sub-query")
        if isinstance(node, exp.Window):
            raise place.refused("no window function")
        if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
            raise place.refused("no parameter")
        is_any = isinstance(node, exp.Any) and isinstance(node.parent, (exp.Like, exp.ILike))
        if not isinstance(node, _PARTS) and not is_any:
            raise place.refused(f"columns, literals, operators and functions, found {_describe_node(node)}")
        if isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
            raise place.refused("functions without a name before them, because those are user-defined")
        if isinstance(node, exp.Lambda) and _find_written_name(node.parent, place.text) not in LAMBDAS:
            raise place.refused(f"x -> … in {', '.join(sorted(LAMBDAS))} only")
        _refuse_function(node, place)
        _refuse_current_time(node, place)
        if isinstance(node, (exp.Like, exp.ILike)):
            _refuse_wildcards(node, place)


def _refuse_current_time(node: exp.Expr, place: _ExpressionContext) -> None:
    if is_composed_text(node, _find_written_name(node, place.text)):
        raise place.refused("text written out as one literal, found text that is made of constants")
    if isinstance(node, exp.Literal) and node.is_string and is_current_time(node.name):
        raise place.refused(
            f"the same answer every time, found {node.name!r}, which Spark may take for the current time"
        )


def _refuse_function(node: exp.Expr, place: _ExpressionContext) -> None:
    if not isinstance(node, exp.Func):
        return
    name = _find_written_name(node, place.text)
    if name not in ALLOWED and not isinstance(node, _SYNTAX):
        near = get_close_matches(name, ALLOWED, 1, 0.8)
        advice = f"; did you mean {near[0]}()" if near and name not in REFUSED else ""
        said = REFUSED.get(name, "a function of the list in docs/reference/checks.md")
        raise place.refused(f"{said}, found {name}(){advice}")
    at = 1 if isinstance(node, exp.RegexpLike) else PATTERNS.get(name)
    if at is not None:
        _refuse_pattern(node, at, place)
    if name in PADDING:
        length = _arguments(node)[1:2]
        if not length or not length[0].is_int or int(length[0].name) > _MOST_PADDING:
            raise place.refused(f"a length up to {_MOST_PADDING:,} as second argument of {name}()")


def _refuse_pattern(node: exp.Func, at: int, place: _ExpressionContext) -> None:
    given = _arguments(node)
    pattern = given[at] if at < len(given) else None
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise place.refused("a regular expression written out as text, because only that can be checked beforehand")
    if flaw := find_pattern_flaw(pattern.name):
        raise place.refused(f"a regular expression that is safe to run, found {pattern.name!r}: {flaw}")


def _refuse_wildcards(node: exp.Expr, place: _ExpressionContext) -> None:
    given = node.expression
    texts = list(given.find_all(exp.Literal)) if isinstance(given, (exp.Any, exp.Tuple, exp.Paren)) else [given]
    for text in texts:
        if not (isinstance(text, exp.Literal) and text.is_string):
            raise place.refused("a pattern written out as text after LIKE")
        if text.name.count("%") > _MOST_WILDCARDS:
            raise place.refused(f"at most {_MOST_WILDCARDS} times % after LIKE, found {text.name.count('%')}")


def _arguments(node: exp.Func) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Anonymous) else [v for v in node.args.values() if _is_node(v)]


def _is_node(value: object) -> bool:
    return isinstance(value, exp.Expr)


def _find_written_name(node: exp.Expr | None, text: str) -> str:
    """A function's name as the user wrote it, or as it is generated where the parser keeps no position."""
    if node is None:
        return ""
    if isinstance(node, exp.Filter):
        return _find_written_name(node.this, text)
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if "start" in node.meta:
        return text[node.meta["start"] : node.meta["end"] + 1].lower()
    written = re.match(r"[A-Za-z_]\w*", node.sql("spark")) if isinstance(node, exp.Func) else None
    return written[0].lower() if written else _describe_node(node)


def _describe_node(node: exp.Expr) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()


def _lambda_names(tree: exp.Expr) -> set[str]:
    return {name.name.lower() for scope in tree.find_all(exp.Lambda) for name in scope.expressions}


def _normalize_tree(tree: exp.Expr, place: _ExpressionContext, types: Types | None) -> exp.Expr:
    own = _lambda_names(tree)
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or column.parts[0].name.lower() in own:
            continue
        if types is not None and _type_of(column, types) is None:
            name = column.parts[0].name
            near = get_close_matches(name, list(types), 1)
            advice = f"; did you mean {near[0]}" if near else ""
            raise place.refused(f"a column of the table, found {name}{advice}")
    known = {name.lower(): kind for name, kind in (types or {}).items() if name.lower() not in own}
    for node in tree.walk():
        node.comments = None
        if flaw := find_misfit(node, known):
            raise place.refused(flaw)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)  # noqa: FBT003 - sqlglot's own way
    return _verify_written(tree, place)


def _verify_written(tree: exp.Expr, place: _ExpressionContext) -> exp.Expr:
    """Return the tree if its generated SQL calls only allowed functions; refuse it otherwise."""
    try:
        text = tree.sql("spark", unsupported_level=ErrorLevel.RAISE)
        tokens = sqlglot.tokenize(text, read="spark")
    except (SqlglotError, RecursionError, KeyError, TypeError, AttributeError):
        raise place.refused("arguments as Spark documents them") from None
    known = ALLOWED | set(_KEYWORDS.split())
    for token, following in pairwise(tokens):
        name = token.text.lower()
        is_call = following.text == "(" and text[token.start] not in "`'\"" and re.fullmatch(r"[a-z_]\w*", name)
        if is_call and name not in known:
            raise place.refused(f"a function of the list in docs/reference/checks.md, found {name}()")
    return tree


def _type_of(column: exp.Column, types: Types) -> str | None:
    name = column.parts[0].name.lower()
    return next((kind for known, kind in types.items() if known.lower() == name), None)


def _guard_totals(tree: exp.Expr, types: Types | None) -> exp.Expr:
    holder = exp.Paren(this=tree)
    for division in list(tree.find_all(exp.Div)):
        division.replace(exp.Anonymous(this="TRY_DIVIDE", expressions=[division.left, division.right]))
    for total in list(holder.find_all(exp.Sum)):
        inner = total.this
        if isinstance(inner, exp.Column) and types is not None and _type_of(inner, types) in _INTEGERS:
            total.set("this", exp.cast(inner.copy(), "DECIMAL(38, 0)"))
        outer = total.parent if isinstance(total.parent, exp.Filter) else total
        outer.replace(exp.Coalesce(this=outer.copy(), expressions=[exp.Literal.number(0)]))
    result: exp.Expr = holder.this
    return result
