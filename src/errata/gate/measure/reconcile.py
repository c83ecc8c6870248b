"""Build the SQL aggregates for both sides of reconciliations, with their filters and groups. Pure.

A per-partition rule without groups is one more aggregate of the table's grouped scan. The others are grouped totals,
which the engine computes together for one table. A filter is written into every aggregate function of the expression,
so that rules with different filters share a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from errata.gate.measure.names import reconcile_measure
from errata.gate.rules.expressions import parse_aggregate, parse_row_condition, parse_row_value
from errata.model.product import Reconciliation
from errata.ports.measure import GroupedTotal

Types = Mapping[str, str] | None


def is_grouped(rule: Reconciliation) -> bool:
    """Whether the rule has groups or one total per run, rather than one number per partition."""
    return bool(rule.by) or rule.per == "run"


def build_partition_totals(rules: Iterable[Reconciliation], side: str, types: Types) -> dict[str, str]:
    """Aggregates of one side (``source`` or ``target``), by measurement, of rules with one number per partition."""
    return {reconcile_measure(rule): _build_total(rule, side, types) for rule in rules if not is_grouped(rule)}


def build_grouped_totals(rules: Iterable[Reconciliation], side: str, types: Types) -> tuple[GroupedTotal, ...]:
    """Totals of one side of the rules with groups or one total per run."""
    return tuple(_build_grouped_total(rule, side, types) for rule in rules if is_grouped(rule))


def _build_grouped_total(rule: Reconciliation, side: str, types: Types) -> GroupedTotal:
    condition = _build_condition(rule, side, types)
    keys = (
        parse_row_value(
            getattr(key, side), where=f"reconcile {rule.name}, by {key.name}, {side}", types=types, key="by"
        )
        for key in rule.by
    )
    return GroupedTotal(
        rule=rule.name,
        name=reconcile_measure(rule),
        aggregate=_build_total(rule, side, types),
        rows="COUNT(*)" if condition is None else exp.CountIf(this=condition).sql("spark"),
        keys=tuple(key.sql("spark") for key in keys),
        per_partition=rule.per != "run",
    )


def _build_total(rule: Reconciliation, side: str, types: Types) -> str:
    total = parse_aggregate(getattr(rule, side), where=f"reconcile {rule.name}, {side}", types=types, key=side)
    return add_filter(total, _build_condition(rule, side, types)).sql("spark")


def _build_condition(rule: Reconciliation, side: str, types: Types) -> exp.Expr | None:
    written = {"where": rule.where, f"{side}_where": getattr(rule, f"{side}_where")}
    found = [
        parse_row_condition(text, where=f"reconcile {rule.name}, {key}, {side}", types=types, key=key)
        for key, text in written.items()
        if text is not None
    ]
    return exp.and_(*found) if found else None


def add_filter(total: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """Restrict an aggregate expression to the rows that meet a condition."""
    if condition is None:
        return total
    holder = exp.Paren(this=total)
    for function in list(holder.find_all(exp.AggFunc)):
        outer: exp.Expr = function
        while isinstance(outer.parent, exp.WithinGroup):
            outer = outer.parent
        if isinstance(outer.parent, exp.Filter):
            where = outer.parent.expression
            where.set("this", exp.and_(where.this.copy(), condition.copy()))
        else:
            outer.replace(exp.Filter(this=outer.copy(), expression=exp.Where(this=condition.copy())))
    result: exp.Expr = holder.this
    return result
