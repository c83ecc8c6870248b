"""Row rules in the form the engine runs: checked like every expression, and unable to fail on a bad value. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from errata.model.eras import RowRule
from errata.validator.expressions import row_condition

__all__ = ["row_rule_sql"]


def row_rule_sql(rule: RowRule, source: str, types: Mapping[str, str] | None) -> str:
    """The condition as Spark SQL. A cast or a division that cannot be done gives NULL, which takes no row out."""
    tree = row_condition(rule.expression, where=f"inputs.{source}.rows, {rule.name}", types=types)
    return tree.transform(_tried).sql("spark")


def _tried(node: exp.Expr) -> exp.Expr:
    # rules look at rows before anyone vouched for them, and in ANSI mode one bad value would fail the chunk
    if type(node) is exp.Cast:
        return exp.TryCast(this=node.this, to=node.to)
    if isinstance(node, exp.Div):
        return exp.Anonymous(this="TRY_DIVIDE", expressions=[node.left, node.right])
    return node
