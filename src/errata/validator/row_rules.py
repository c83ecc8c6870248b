"""Row rules in the form the engine runs: checked like every expression, and unable to fail on a bad value. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from errata.model.eras import RowRule
from errata.validator.expressions import row_condition

__all__ = ["delete_sql", "row_rule_sql"]


def row_rule_sql(rule: RowRule, source: str, types: Mapping[str, str] | None) -> str:
    """The condition as Spark SQL. A cast or a division that cannot be done gives NULL, which takes no row out."""
    condition = row_condition(rule.expression, where=f"inputs.{source}.rows, {rule.name}", types=types)
    holder = exp.Paren(this=condition)
    # rules look at rows before anyone vouched for them, and in ANSI mode one bad value would fail the chunk
    for cast in list(holder.find_all(exp.Cast)):
        cast.replace(exp.TryCast(this=cast.this, to=cast.args["to"], safe=True))
    for division in list(holder.find_all(exp.Div)):
        division.replace(exp.Anonymous(this="TRY_DIVIDE", expressions=[division.left, division.right]))
    text: str = holder.this.sql("spark")
    return text


def delete_sql(text: str) -> tuple[str, tuple[str, ...]]:
    """The condition under which a row of a merge takes its key out, as Spark SQL, and the columns it speaks about."""
    condition = row_condition(text, where="publish.merge.delete", types=None, key="delete")
    names = dict.fromkeys(column.parts[0].name for column in condition.find_all(exp.Column))
    return condition.sql("spark"), tuple(names)
