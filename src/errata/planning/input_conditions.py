"""Conditions of a product, made ready to be sealed: row rules of inputs, and what takes rows out in a merge.

Each is checked like every expression, row rules also against the columns they will meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from errata.model.product import Input, Product
from errata.ports.tables import InputState


def with_row_rules(product: Product, inputs: Mapping[str, InputState]) -> Product:
    """The product with the normal form of every row rule; raises ``UsageError`` for one that cannot be run."""
    if not any(source.rows for source in product.inputs):
        return product
    # the SQL parser takes half a second to import
    from errata.gate.rules.row_rules import row_rule_sql

    def ready(source: Input) -> Input:
        types = _find_column_types(source, inputs[source.name])
        rules = (
            replace(rule, sql=row_rule_sql(rule, source.name, types, product.target.subjects)) for rule in source.rows
        )
        return replace(source, rows=tuple(rules))

    return replace(product, inputs=tuple(ready(source) for source in product.inputs))


def with_delete_condition(product: Product) -> Product:
    """The product with the normal form of what marks a row of a merge as deleted, and the columns that it names."""
    merge = product.publish.merge
    if merge is None or merge.delete is None:
        return product
    from errata.gate.rules.row_rules import delete_sql

    sql, markers = delete_sql(merge.delete)
    return replace(product, publish=replace(product.publish, merge=replace(merge, sql=sql, markers=markers)))


def _find_column_types(source: Input, facts: InputState) -> Mapping[str, str] | None:
    """The columns that every row has: the declared ones, or those that all files have."""
    if not source.columns and not facts.schemas:
        return None
    known = dict(source.columns) or {
        name: kind for name, kind in facts.schemas[0].items() if all(name in schema for schema in facts.schemas)
    }
    return {source.partition: facts.column_type or "string", **known} if source.partition else known
