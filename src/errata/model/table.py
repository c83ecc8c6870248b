"""What became of a target's schema since a run was planned, and which columns its publication still has to add. Pure.

A new column's field id is fixed when the run is planned, because staged files carry it. It may be added only while the
table would still give exactly that id; afterwards it must be there under that id, name and type. A column is its field
id: one that was renamed is the same, one that was dropped and added again under its name is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.manifest import ExpectedFile, NewColumn, TargetPin
from errata.model.product import LINEAGE_COLUMNS


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The current schema of a table, at one metadata version."""

    schema_id: int
    last_column_id: int
    columns: Mapping[str, str]  # name → Iceberg type text
    field_ids: Mapping[str, int]

    def __str__(self) -> str:
        return f"schema {self.schema_id} (last column id {self.last_column_id})"


def find_columns_to_add(target: TargetPin, schema: TableSchema) -> tuple[NewColumn, ...] | None:
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
    return () if nothing_else and _has_same_columns(target.columns, schema.columns) else None


def _has_same_columns(planned: Mapping[str, str], found: Mapping[str, str]) -> bool:
    # nested types are written in more than one way, and a run cannot change them
    return set(planned) == set(found) and all(
        found[name] == kind or ("<" in kind and "<" in found[name]) for name, kind in planned.items()
    )


def describe_planned_schema(target: TargetPin) -> str:
    """The schema that a run was planned on, in the words of ``TableSchema``."""
    return f"schema {target.schema_id}" + (f" (last column id {target.last_column_id})" if target.new_columns else "")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of one schema of a table."""

    field_id: int
    name: str
    default: str | None = None  # what files without the column read as, in text; None is NULL


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """The planned columns and the others, as a later schema has them."""

    names: Mapping[str, str]  # planned name → name of now; a dropped column keeps its own and reads as NULL
    added: Mapping[str, str | None]  # columns that the plan does not know → their default; lineage columns are none
    dropped: tuple[str, ...]


def find_schema_drift(target: TargetPin, planned: Sequence[TableColumn], now: Sequence[TableColumn]) -> SchemaDrift:
    """What became of the planned columns by field id; by name where the table no longer has the planned schema."""
    known = {column.name: column.field_id for column in planned or now if column.name in target.columns}
    brought = {new.name: new.field_id for new in target.new_columns}
    ids = {**known, **brought}
    found = {column.field_id: column.name for column in now}
    return SchemaDrift(
        names={name: found.get(ids.get(name, 0), name) for name in target.columns},
        added={
            column.name: column.default
            for column in now
            if column.field_id not in ids.values() and column.name not in LINEAGE_COLUMNS
        },
        dropped=tuple(name for name in target.columns if name not in brought and ids.get(name) not in found),
    )


ROW_LINEAGE = 3
"""The format version from which on every row has a ``_row_id`` and a ``_last_updated_sequence_number``."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file with the delete files that apply to it.

    ``partition`` None: it is shared, that is, nothing proves that all of its rows are in one partition. Of the
    partitions that were asked for, it may hold rows of ``shared_by``.
    """

    path: str
    rows: int
    bytes: int
    partition: str | None
    deletes: tuple[ExpectedFile, ...] = ()
    shared_by: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions it holds, or may hold, rows of."""
        return self.shared_by if self.partition is None else (self.partition,)


FileSets = Mapping[str, tuple[ExpectedFile, ...]]
"""Partition → the data and delete files that are live in it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What one commit did to one partition."""

    added_rows: int = 0
    removed_rows: int = 0
    added_deletes: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit on main, as far as it concerns a scope."""

    snapshot_id: str
    operation: str
    at_ms: int
    application: str
    touched: Mapping[str, Touch]
    touches_everything: bool = False
    summary: Mapping[str, str] = field(default_factory=dict)
    parent_id: str | None = None  # main right before it


@dataclass(frozen=True, slots=True)
class History:
    """The commits from main's head back to a base, newest first; incomplete when the base was not reached."""

    commits: tuple[Commit, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class NewDelete:
    """A delete file that is newer than a base, whether or not it applies to a file that is live.

    ``partition`` None: nothing proves that it is about one partition. Of those asked for, it may be about ``may_hit``.
    """

    path: str
    content: str  # position_deletes | equality_deletes
    partition: str | None
    may_hit: tuple[str, ...] = ()
    commit: Commit | None = None  # that brought it; None when it has expired


@dataclass(frozen=True, slots=True)
class Departure:
    """How main left a snapshot that it held: it was set to another one, or (None) made anew."""

    snapshot_id: str | None
    at_ms: int | None  # None: the log of main does not go back that far
    is_sure: bool  # False: history has expired, so main may still stand on it


def group_by_partition(files: Iterable[DataFile], partitions: Iterable[str]) -> dict[str, tuple[ExpectedFile, ...]]:
    """File sets of the given partitions; a partition without files has an empty set, a shared file is in several."""
    sets: dict[str, set[ExpectedFile]] = {partition: set() for partition in partitions}
    for file in files:
        for name in file.partitions:
            if name in sets:
                sets[name].add(ExpectedFile(file.path, file.rows, "data"))
                sets[name].update(file.deletes)
    return {name: tuple(sorted(found, key=lambda f: (f.content, f.path))) for name, found in sets.items()}
