"""Compile row rules to SQL: checked like every expression, and unable to fail on a bad value. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from errata.errors import UsageError
from errata.gate.rules.expressions import parse_row_condition
from errata.model.product.eras import RowRule

_SAME = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_WRAPPERS = (exp.Paren, exp.Cast, exp.Lower, exp.Upper, exp.Trim)


def row_rule_sql(rule: RowRule, source: str, types: Mapping[str, str] | None, subjects: Collection[str] = ()) -> str:
    """The condition as Spark SQL. A failed cast or division gives NULL, which removes no row."""
    condition = parse_row_condition(rule.expression, where=f"inputs.{source}.rows, {rule.name}", types=types)
    _refuse_ids(condition, f"inputs.{source}.rows, {rule.name}", {name.lower() for name in subjects})
    holder = exp.Paren(this=condition)
    # rules see raw, unchecked rows, and in ANSI mode one bad value would fail the chunk
    for cast in list(holder.find_all(exp.Cast)):
        cast.replace(exp.TryCast(this=cast.this, to=cast.args["to"], safe=True))
    for division in list(holder.find_all(exp.Div)):
        division.replace(exp.Anonymous(this="TRY_DIVIDE", expressions=[division.left, division.right]))
    text: str = holder.this.sql("spark")
    return text


def _refuse_ids(condition: exp.Expr, where: str, subjects: Collection[str]) -> None:
    """Refuse ids of data subjects in a rule, because the manifest, and the ids with it, is kept for good."""
    for comparison in condition.find_all(*_SAME):
        sides = [_unwrap_side(side) for side in comparison.iter_expressions()]
        names = {side.name.lower() for side in sides if isinstance(side, exp.Column)}
        if names & set(subjects) and any(isinstance(side, exp.Literal) and side.name for side in sides):
            # the expression is not quoted: messages are logged
            raise UsageError(
                f"{where}: a comparison of {', '.join(sorted(names & set(subjects)))} with constants was refused; "
                "expected no ids of subjects in rules, because the manifest keeps them",
                state="nothing was planned",
                hint="inputs.NAME.subjects leaves erased subjects out: see docs/guides/keep-erased-subjects-out.md",
                key="expression",
            )


def _unwrap_side(side: exp.Expr) -> exp.Expr:
    while isinstance(side, _WRAPPERS):
        side = side.this
    return side


def delete_sql(text: str) -> tuple[str, tuple[str, ...]]:
    """Delete condition of a merge as Spark SQL, and the columns it uses."""
    condition = parse_row_condition(text, where="publish.merge.delete", types=None, key="delete")
    names = dict.fromkeys(column.parts[0].name for column in condition.find_all(exp.Column))
    return condition.sql("spark"), tuple(names)
