"""Expressions that users write in product files: what they may say, and their normal form. Pure.

They are parsed as Spark SQL and written out again with every identifier quoted, so nothing that is not understood
reaches the engine. A row condition speaks about one row; an aggregate about all rows of a partition. Both must give
the same answer every time, because what was measured is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from errata.errors import UsageError

__all__ = ["aggregate", "column_expression", "row_condition"]

_UNREPEATABLE = frozenset(
    (
        "curdate",
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_timezone",
        "current_user",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "rand",
        "randn",
        "random",
        "randstr",
        "reflect",
        "session_user",
        "shuffle",
        "spark_partition_id",
        "try_reflect",
        "uniform",
        "user",
        "uuid",
    )
)
_ORDER_DEPENDENT = (exp.AnyValue, exp.ArrayAgg, exp.First, exp.FirstValue, exp.GroupConcat, exp.Last, exp.LastValue)
_NOT_A_CONDITION = (exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Star, exp.Struct)
_INTEGERS = frozenset({"int", "long"})

Types = Mapping[str, str]


def row_condition(text: str, *, where: str, types: Types | None) -> exp.Expr:
    """The condition of an ``expression`` check: true for the rows to be counted."""
    tree = _parse(text, where)
    if found := tree.find(exp.AggFunc):
        raise _refused(text, where, f"a condition on one row, found the aggregate {found.sql_name().lower()}()")
    root = tree.unnest()
    is_value = isinstance(root, _NOT_A_CONDITION) or (
        isinstance(root, exp.Column) and types is not None and _type_of(root, types) != "boolean"
    )
    if is_value:
        raise _refused(text, where, "a condition that is true or false for a row")
    return _normal(tree, text, where, types)


def aggregate(text: str, *, where: str, types: Types | None) -> exp.Expr:
    """An aggregate over the rows of a partition; sums over nothing are 0, division by 0 is NULL."""
    tree = _parse(text, where)
    functions = list(tree.find_all(exp.AggFunc))
    if not functions:
        raise _refused(text, where, "an aggregate such as sum(amount) or count(*)")
    for function in functions:
        if isinstance(function, _ORDER_DEPENDENT):
            name = function.sql_name().lower()
            raise _refused(text, where, f"an aggregate that does not depend on row order, found {name}()")
        if function.find_ancestor(exp.AggFunc):
            raise _refused(text, where, "aggregates that are not inside one another")
    loose = [column for column in tree.find_all(exp.Column) if not column.find_ancestor(exp.AggFunc, exp.Filter)]
    if loose and not all(isinstance(column.this, exp.Star) for column in loose):
        raise _refused(text, where, f"every column inside an aggregate, found {loose[0].sql('spark')} outside")
    return _total(_normal(tree, text, where, types), types)


def _parse(text: str, where: str) -> exp.Expr:
    try:
        trees = sqlglot.parse(text, read="spark")
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise _refused(text, where, f"one Spark SQL expression ({reason})") from None
    if len(trees) != 1 or trees[0] is None:
        raise _refused(text, where, "exactly one expression")
    tree = trees[0]
    if not isinstance(tree, (exp.Condition, exp.Filter)) or isinstance(tree, (exp.Alias, exp.Query)):
        raise _refused(text, where, "an expression, not a statement")
    if tree.find(exp.Query):
        raise _refused(text, where, "no sub-query")
    if tree.find(exp.Window):
        raise _refused(text, where, "no window function")
    if tree.find(exp.Placeholder, exp.Parameter, exp.Command, exp.DDL, exp.DML):
        raise _refused(text, where, "no parameter and no statement")
    for function in tree.find_all(exp.Func):
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
        if name in _UNREPEATABLE:
            raise _refused(text, where, f"an expression that gives the same answer every time, found {name}()")
    return tree


def _normal(tree: exp.Expr, text: str, where: str, types: Types | None) -> exp.Expr:
    own = {name.name.lower() for scope in tree.find_all(exp.Lambda) for name in scope.expressions}
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or column.parts[0].name.lower() in own:
            continue
        if types is not None and _type_of(column, types) is None:
            name = column.parts[0].name
            near = get_close_matches(name, list(types), 1)
            advice = f"; did you mean {near[0]}" if near else ""
            raise _refused(text, where, f"a column of the table, found {name}{advice}")
    for node in tree.walk():
        node.comments = None
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)  # noqa: FBT003 - sqlglot's own way
    return tree


def _type_of(column: exp.Column, types: Types) -> str | None:
    name = column.parts[0].name.lower()
    return next((kind for known, kind in types.items() if known.lower() == name), None)


def _total(tree: exp.Expr, types: Types | None) -> exp.Expr:
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


def _refused(text: str, where: str, expected: str) -> UsageError:
    return UsageError(f"{where}: expression {text!r} was refused; expected {expected}", expression=text)


def column_expression(text: str, *, where: str, types: Types | None) -> exp.Expr:
    """A value of one row, such as a column to group by."""
    tree = _parse(text, where)
    if found := tree.find(exp.AggFunc):
        raise _refused(text, where, f"a value of one row, found the aggregate {found.sql_name().lower()}()")
    if tree.find(exp.Star):
        raise _refused(text, where, "one column or an expression of columns, found *")
    return _normal(tree, text, where, types)
