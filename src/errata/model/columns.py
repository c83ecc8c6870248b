"""What became of a target's schema since a run was planned, and which columns its publication still has to add. Pure.

A new column's field id is fixed when the run is planned, because staged files carry it. It may be added only while the
table would still give exactly that id; afterwards it must be there under that id, name and type. A column is its field
id: one that was renamed is the same, one that was dropped and added again under its name is another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from errata.model.manifest import NewColumn, TargetPin
from errata.model.product import LINEAGE_COLUMNS

__all__ = ["ColumnsSince", "TableColumn", "TableSchema", "columns_since", "columns_to_add", "planned_schema"]


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


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of one schema of a table."""

    field_id: int
    name: str
    default: str | None = None  # what files without the column read as, in text; None is NULL


@dataclass(frozen=True, slots=True)
class ColumnsSince:
    """The planned columns and the others, as a later schema has them."""

    names: Mapping[str, str]  # planned name → name of now; a dropped column keeps its own and reads as NULL
    added: Mapping[str, str | None]  # columns that the plan does not know → their default; lineage columns are none
    dropped: tuple[str, ...]


def columns_since(target: TargetPin, planned: Sequence[TableColumn], now: Sequence[TableColumn]) -> ColumnsSince:
    """What became of the planned columns by field id; by name where the table no longer has the planned schema."""
    known = {column.name: column.field_id for column in planned or now if column.name in target.columns}
    brought = {new.name: new.field_id for new in target.new_columns}
    ids = {**known, **brought}
    found = {column.field_id: column.name for column in now}
    return ColumnsSince(
        names={name: found.get(ids.get(name, 0), name) for name in target.columns},
        added={
            column.name: column.default
            for column in now
            if column.field_id not in ids.values() and column.name not in LINEAGE_COLUMNS
        },
        dropped=tuple(name for name in target.columns if name not in brought and ids.get(name) not in found),
    )
