"""Row rules of a product, made ready to be sealed: each expression is checked against the columns it will meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from errata.model.product import Input, Product
from errata.planner.ports import InputFacts

__all__ = ["with_row_rules"]


def with_row_rules(product: Product, inputs: Mapping[str, InputFacts]) -> Product:
    """The product with the normal form of every row rule; raises ``UsageError`` for one that cannot be run."""
    if not any(source.rows for source in product.inputs):
        return product
    # the SQL parser takes half a second to import
    from errata.validator.row_rules import row_rule_sql

    def ready(source: Input) -> Input:
        types = _types(source, inputs[source.name])
        rules = (replace(rule, sql=row_rule_sql(rule, source.name, types)) for rule in source.rows)
        return replace(source, rows=tuple(rules))

    return replace(product, inputs=tuple(ready(source) for source in product.inputs))


def _types(source: Input, facts: InputFacts) -> Mapping[str, str] | None:
    """The columns that every row has: the declared ones, or those that all files have."""
    if not source.columns and not facts.schemas:
        return None
    known = dict(source.columns) or {
        name: kind for name, kind in facts.schemas[0].items() if all(name in schema for schema in facts.schemas)
    }
    return {source.partition: facts.column_type or "string", **known} if source.partition else known
