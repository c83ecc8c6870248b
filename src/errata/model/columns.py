"""What became of a target's schema since a run was planned, and which columns its publication still has to add. Pure.

A new column's field id is fixed when the run is planned, because staged files carry it. It may be added only while the
table would still give exactly that id; afterwards it must be there under that id, name and type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from errata.model.manifest import NewColumn, TargetPin

__all__ = ["TableSchema", "columns_to_add", "planned_schema"]


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The current schema of a table, at one metadata version."""

    schema_id: int
    last_column_id: int
    columns: Mapping[str, str]  # name → Iceberg type text
    field_ids: Mapping[str, int]

    def __str__(self) -> str:
        return f"schema {self.schema_id} (last column id {self.last_column_id})"


def columns_to_add(target: TargetPin, schema: TableSchema) -> tuple[NewColumn, ...] | None:
    """All of the new columns, or none when an earlier publication brought them; None: the schema is another one.

    The schema id alone is not enough: a column that was added and dropped again leaves the old id, and has used up the
    field id of the first new column.
    """
    if schema.schema_id == target.schema_id:
        free = not target.new_columns or schema.last_column_id == target.last_column_id
        return target.new_columns if free else None
    there = target.new_columns and all(schema.field_ids.get(new.name) == new.field_id for new in target.new_columns)
    # whoever adds a column, also one by the name of a dropped one or a nested one, uses up another id
    nothing_else = there and schema.last_column_id == max(new.field_id for new in target.new_columns)
    return () if nothing_else and _same(target.columns, schema.columns) else None


def _same(planned: Mapping[str, str], found: Mapping[str, str]) -> bool:
    # nested types are written in more than one way, and a run cannot change them
    return set(planned) == set(found) and all(
        found[name] == kind or ("<" in kind and "<" in found[name]) for name, kind in planned.items()
    )


def planned_schema(target: TargetPin) -> str:
    """The schema that a run was planned on, in the words of ``TableSchema``."""
    return f"schema {target.schema_id}" + (f" (last column id {target.last_column_id})" if target.new_columns else "")
