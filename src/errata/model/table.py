"""State of a target table: schema, data and delete files, commits, and schema drift since a run was planned. Pure.

A new column's field id is fixed at planning, because staged files carry it. The column may be added only while the
table would still assign exactly that id; afterwards it must exist with that id, name and type. A column is identified
by its field id: a renamed column is the same, a column dropped and added again under its name is a different one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from errata.errors import EngineError
from errata.model.manifest import ExpectedFile, NewColumn, TargetPin
from errata.model.product import LINEAGE_COLUMNS
from errata.model.types import is_assignable


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
    """All new columns; empty if an earlier publication added them; None if the schema changed in another way.

    The schema id alone is not enough: adding and dropping a column restores the old id, but has used up the field id of
    the first new column.
    """
    if schema.schema_id == target.schema_id:
        free = not target.new_columns or schema.last_column_id == target.last_column_id
        return target.new_columns if free else None
    there = target.new_columns and all(schema.field_ids.get(new.name) == new.field_id for new in target.new_columns)
    # adding any column, even a nested one or one with a dropped column's name, uses up another id
    nothing_else = there and schema.last_column_id == max(new.field_id for new in target.new_columns)
    return () if nothing_else and _has_same_columns(target.columns, schema.columns) else None


def _has_same_columns(planned: Mapping[str, str], found: Mapping[str, str]) -> bool:
    # nested types have more than one text form, and a run cannot change them
    return set(planned) == set(found) and all(
        found[name] == kind or ("<" in kind and "<" in found[name]) for name, kind in planned.items()
    )


def describe_planned_schema(target: TargetPin) -> str:
    """The schema that a run was planned on, in the format of ``TableSchema``."""
    return f"schema {target.schema_id}" + (f" (last column id {target.last_column_id})" if target.new_columns else "")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of one schema of a table."""

    field_id: int
    name: str
    default: str | None = None  # value of the column in files that lack it, as text; None is NULL


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """Planned and other columns in a later schema."""

    names: Mapping[str, str]  # planned name → current name; a dropped column keeps its name and reads as NULL
    added: Mapping[str, str | None]  # columns unknown to the plan, except lineage columns → their default
    dropped: tuple[str, ...]


def find_schema_drift(target: TargetPin, planned: Sequence[TableColumn], now: Sequence[TableColumn]) -> SchemaDrift:
    """Match planned columns by field id, or by name if the table no longer has the planned schema."""
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
"""Format version in which rows first have ``_row_id`` and ``_last_updated_sequence_number``."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file with the delete files that apply to it.

    ``partition`` None means shared: nothing proves that all its rows are in one partition. ``shared_by`` lists the
    requested partitions whose rows it may hold.
    """

    path: str
    rows: int
    bytes: int
    partition: str | None
    deletes: tuple[ExpectedFile, ...] = ()
    shared_by: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions whose rows it holds or may hold."""
        return self.shared_by if self.partition is None else (self.partition,)


FileSets = Mapping[str, tuple[ExpectedFile, ...]]
"""Partition → its live data and delete files."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Effect of one commit on one partition."""

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
    parent_id: str | None = None  # main's snapshot right before it


@dataclass(frozen=True, slots=True)
class MainSnapshot:
    """A snapshot in the ancestry of main's head, as a stream meets it."""

    snapshot_id: str
    operation: str  # append | overwrite | delete | replace
    added_files: int
    publication: str = ""  # Errata's publication or rollback that made it


@dataclass(frozen=True, slots=True)
class History:
    """Commits from main's head back to a base, newest first; incomplete if the base was not reached."""

    commits: tuple[Commit, ...]
    complete: bool
    line: tuple[str, ...] = ()  # every snapshot on the way, those that touched nothing and a reached base included


@dataclass(frozen=True, slots=True)
class NewDelete:
    """A delete file newer than a base, whether or not it applies to a live file.

    ``partition`` None: nothing proves that it concerns one partition. ``may_hit`` lists the requested partitions it may
    concern.
    """

    path: str
    content: str  # position_deletes | equality_deletes
    partition: str | None
    may_hit: tuple[str, ...] = ()
    commit: Commit | None = None  # commit that added it; None if it has expired


@dataclass(frozen=True, slots=True)
class Departure:
    """How main left a snapshot: it was set to another snapshot, or (None) recreated."""

    snapshot_id: str | None
    at_ms: int | None  # None: the log of main does not go back that far
    is_sure: bool  # False: history has expired, so main may still be at the snapshot


def is_first_snapshot(parent_id: str | None, summary: Mapping[str, str]) -> bool:
    """Whether a table begins with this snapshot: it has no parent, and added itself all that it holds.

    PyIceberg's expiry removes the parent's id from the oldest snapshot that it keeps, so a missing parent alone proves
    nothing.
    """
    if parent_id is not None:
        return False
    kinds = ("data-files", "delete-files")
    if any(f"total-{kind}" not in summary for kind in kinds):
        return False
    adds_all = all(summary.get(f"added-{kind}", "0") == summary[f"total-{kind}"] for kind in kinds)
    return adds_all and not {summary.get("deleted-data-files", "0"), summary.get("removed-delete-files", "0")} - {"0"}


def group_by_partition(files: Iterable[DataFile], partitions: Iterable[str]) -> dict[str, tuple[ExpectedFile, ...]]:
    """File sets of the given partitions, empty for a partition without files; a shared file is in several sets."""
    sets: dict[str, set[ExpectedFile]] = {partition: set() for partition in partitions}
    for file in files:
        for name in file.partitions:
            if name in sets:
                sets[name].add(ExpectedFile(file.path, file.rows, "data"))
                sets[name].update(file.deletes)
    return {name: tuple(sorted(found, key=lambda f: (f.content, f.path))) for name, found in sets.items()}


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One column of a table's schema at one time."""

    field_id: int
    name: str
    type: str  # Iceberg type text
    is_required: bool = False
    has_default: bool = False  # a value for rows in files that lack the column


def map_old_columns(then: Sequence[SchemaField], now: Sequence[SchemaField]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Current column names mapped to their old names, matched by field id; and why old rows cannot be put back."""
    old, kept = {one.field_id: one for one in then}, {one.field_id for one in now}
    problems = [
        f"column {one.name} ({one.type}) was removed since; its values cannot be put back"
        for one in then
        if one.field_id not in kept
    ]
    columns: dict[str, str] = {}
    for one in now:
        before = old.get(one.field_id)
        if before is not None:
            columns[one.name] = before.name
            if not is_assignable(before.type, one.type):
                kinds = f"was {before.type} then and is {one.type} now"
                problems.append(f"column {one.name} {kinds}; values are never cast for you")
        elif one.is_required:
            problems.append(f"column {one.name} was added since and may not be NULL")
        elif one.has_default:
            problems.append(f"column {one.name} was added since with a default value, which old rows would lose")
    return columns, tuple(problems)


def choose_attempt_snapshot(attempt: str, added: Mapping[str, Iterable[DataFile]]) -> str | None:
    """The snapshot that is an attempt's output, of those marked with it; None if there is none.

    A commit that was repeated after a lost answer leaves two snapshots with the same files; with different files
    nobody could tell which of them is the output.
    """
    contents = {frozenset(file.path for file in files) for files in added.values()}
    if len(contents) > 1:
        raise EngineError(f"attempt {attempt} left snapshots with different files; none is used", attempt=attempt)
    return next(iter(added), None)
