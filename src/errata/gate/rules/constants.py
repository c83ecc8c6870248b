"""Check constants in expressions: what a column is compared with, and text composed of constants. Pure.

Spark casts text that is compared with a column to the column's type, and fails on the first row when it cannot. It also
reads constant text such as ``today`` as the current time, even if the text is composed of parts; so constant text must
be written out as one literal, where it can be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from errata.gate.rules.functions import ROW_FUNCTIONS
from errata.gate.rules.literals import find_comparison_flaw

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TEXT_FUNCTIONS = (
    ROW_FUNCTIONS["text"]
    | ROW_FUNCTIONS["regular expressions"]
    | ROW_FUNCTIONS["JSON"]
    | {"aggregate", "array_join", "conv", "date_format", "from_unixtime", "reduce"}
)
_MOMENTS = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp",
}


def is_composed_text(node: exp.Expr, name: str) -> bool:
    """Whether a node composes text from constants alone; ``name`` is the node's function name."""
    is_text = isinstance(node, exp.DPipe) or (isinstance(node, exp.Func) and name in _TEXT_FUNCTIONS)
    return is_text and node.find(exp.Column, exp.Identifier, exp.Star) is None


def find_misfit(node: exp.Expr, types: Mapping[str, str]) -> str | None:
    """Describe a comparison of a column with a constant of another type, if any; ``types`` has lower-case names."""
    for one, other in _iterate_comparisons(node):
        column, constant = one.unnest(), other.unnest()
        if not isinstance(column, exp.Column) or len(column.parts) > 1:
            continue
        kind, found = types.get(column.name.lower()), _parse_constant(constant)
        if kind is None or found is None:
            continue
        if flaw := find_comparison_flaw(*found, kind):
            return f"{column.name} compared with {flaw}; found {constant.sql('spark')}"
    return None


def _iterate_comparisons(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, _COMPARISONS):
        yield node.left, node.right
        yield node.right, node.left
    elif isinstance(node, exp.Between):
        yield from ((node.this, node.args[key]) for key in ("low", "high"))
    elif isinstance(node, exp.In):
        yield from ((node.this, one) for one in node.expressions)


def _parse_constant(node: exp.Expr) -> tuple[str, str] | None:
    """A constant's text and its form (text, number, boolean, date or timestamp); None if it is not a constant."""
    if isinstance(node, exp.Literal):
        return node.name, "text" if node.is_string else "number"
    if isinstance(node, exp.Neg):
        inner = _parse_constant(node.this.unnest())
        return (f"-{inner[0]}", "number") if inner and inner[1] == "number" else None
    if isinstance(node, exp.Boolean):
        return str(node.this).lower(), "boolean"
    is_written = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string
    form = _MOMENTS.get(node.args["to"].this) if is_written else None
    return (node.this.name, form) if form else None
