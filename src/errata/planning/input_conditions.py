"""Normalize the SQL conditions of a product for sealing: row rules of inputs, and the delete condition of a merge.

Both pass the same checks as every other expression; row rules are also checked against the columns of their input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from errata.model.product import Input, Product
from errata.ports.tables import InputState


def with_row_rules(product: Product, inputs: Mapping[str, InputState]) -> Product:
    """The product with every row rule in normal form; raises ``UsageError`` for a rule that cannot run."""
    if not any(source.rows for source in product.inputs):
        return product
    # imported here because the SQL parser takes half a second to load
    from errata.gate.rules.row_rules import row_rule_sql

    def ready(source: Input) -> Input:
        types = _find_column_types(source, inputs[source.name])
        rules = (
            replace(rule, sql=row_rule_sql(rule, source.name, types, {*product.target.subjects, *source.subjects}))
            for rule in source.rows
        )
        return replace(source, rows=tuple(rules))

    return replace(product, inputs=tuple(ready(source) for source in product.inputs))


def with_delete_condition(product: Product) -> Product:
    """The product with its merge's delete condition in normal form, and the columns that the condition names."""
    merge = product.publish.merge
    if merge is None or merge.delete is None:
        return product
    from errata.gate.rules.row_rules import delete_sql

    sql, markers = delete_sql(merge.delete)
    return replace(product, publish=replace(product.publish, merge=replace(merge, sql=sql, markers=markers)))


def _find_column_types(source: Input, facts: InputState) -> Mapping[str, str] | None:
    """Columns that every row has: the declared ones, or those common to all files."""
    if not source.columns and not facts.schemas:
        return None
    known = dict(source.columns) or {
        name: kind for name, kind in facts.schemas[0].items() if all(name in schema for schema in facts.schemas)
    }
    return {source.partition: facts.column_type or "string", **known} if source.partition else known
