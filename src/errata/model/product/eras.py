"""Schema eras of an input, and row rules. Pure.

An era states for which partitions or file schemas it applies, and how its columns map to those that the transform sees.
Planner and engine use the same two functions: which era applies (:func:`find_matching_eras`), and where each declared
column comes from (:func:`resolve_columns`). A column without a source is a problem, never a NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, Key, OneOf
from errata.model.file_values import Amount, Column, Line, ScalarText, Slug, SourceType, Title
from errata.model.types import is_assignable, is_castable

QUARANTINE, SUPPRESS = "quarantine", "suppress"


@dataclass(frozen=True, slots=True)
class Era:
    """A span of partitions, or a set of files, in which a source had one schema, and how to adapt it."""

    name: Annotated[Slug, Key(needed=False)]
    first: Annotated[ScalarText | None, Key("First partition of the era.", path="from")] = None
    last: Annotated[ScalarText | None, Key("Last partition of the era, included.", path="until")] = None
    has: Annotated[tuple[Line, ...], Key("Columns that files of this era have.")] = ()
    lacks: Annotated[tuple[Line, ...], Key("Columns that files of this era do not have.")] = ()
    rename: Annotated[Mapping[Line, Column], Key("Source column: declared column.")] = field(default_factory=dict)
    cast: Annotated[
        Mapping[Column, SourceType], Key("Declared column: type. Rows whose value cannot be cast are quarantined.")
    ] = field(default_factory=dict)
    default: Annotated[Mapping[Column, ScalarText | None], Key("Values of missing columns.")] = field(
        default_factory=dict
    )
    drop: Annotated[tuple[Line, ...], Key("Source columns to ignore.")] = ()

    @property
    def is_ranged(self) -> bool:
        """Whether the era is limited by partitions, at least in part."""
        return self.first is not None or self.last is not None

    def covers(self, partition: str, columns: Iterable[str]) -> bool:
        """Whether a partition, or a file of it with these columns, belongs to this era."""
        known = set(columns)
        if self.is_ranged and not (partition[:1].isdigit() and self._includes(partition)):
            return False
        return known.issuperset(self.has) and known.isdisjoint(self.lacks)

    def _includes(self, partition: str) -> bool:
        # canonical texts of one grain sort in time order
        return (self.first is None or self.first <= partition) and (self.last is None or partition <= self.last)


@dataclass(frozen=True, slots=True)
class RowRule:
    """Rows for which the expression is true are removed before the transform sees them."""

    name: Title
    expression: Line
    action: Annotated[str, OneOf(QUARANTINE, SUPPRESS)]
    sql: Annotated[str, NOT_A_KEY] = ""  # normal form of the expression


@dataclass(frozen=True, slots=True)
class RowLimits:
    """How many rows of a partition, and of the run, may be quarantined."""

    name: Annotated[str, NOT_A_KEY]  # the input
    warn: Amount | None = None
    block: Amount | None = None


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Source of one declared column: a source column, as it is or cast, or a default."""

    column: str
    kind: str  # the declared type
    source: str | None = None
    found: str | None = None  # the source's type
    default: str | None = None
    problem: str | None = None

    @property
    def needs_cast(self) -> bool:
        """Whether values may fail to convert to the declared type."""
        return self.source is not None and self.found is not None and not is_assignable(self.found, self.kind)


def cast_columns(era: Era, columns: Mapping[str, str]) -> Era:
    """The era with a cast for every column that is no text and that it does not name."""
    missing = {
        name: kind for name, kind in columns.items() if kind != "string" and name not in (*era.cast, *era.default)
    }
    return replace(era, cast={**era.cast, **missing})


def eras_or_default(eras: Sequence[Era]) -> tuple[Era, ...]:
    """The eras, or the default era of a source that declares none."""
    return tuple(eras) or (Era("only"),)


def find_matching_eras(eras: Sequence[Era], partition: str, columns: Iterable[str]) -> tuple[Era, ...]:
    """Every era that covers a file of this partition with these columns; exactly one is expected."""
    known = tuple(columns)
    return tuple(era for era in eras_or_default(eras) if era.covers(partition, known))


def resolve_columns(
    era: Era, columns: Mapping[str, str], schema: Mapping[str, str], from_path: str | None = None
) -> tuple[ColumnSource, ...]:
    """Source of each declared column in this era; ``from_path`` is a column that files need not contain."""
    present = {name: kind for name, kind in schema.items() if name not in era.drop and name not in era.rename}
    return tuple(
        _resolve_column(era, column, kind, present, schema)
        for column, kind in columns.items()
        if column != from_path or column in present or column in era.rename.values()
    )


def _resolve_column(
    era: Era, column: str, kind: str, present: Mapping[str, str], schema: Mapping[str, str]
) -> ColumnSource:
    def wrong(problem: str) -> ColumnSource:
        return ColumnSource(column, kind, problem=problem)

    old = next((name for name, new in era.rename.items() if new == column), None)
    if old is not None and old not in schema:
        return wrong(f"{old} is not there to be renamed to {column}")
    if old is not None and column in present:
        return wrong(f"{old} is renamed to {column}, which is there as well: drop one of them")
    source = old if old is not None else column if column in present else None
    if source is None:
        if column in era.default:
            return ColumnSource(column, kind, default=era.default[column])
        return wrong(f"{column} is not there: expected a rename or an explicit default")
    if column in era.default:
        return wrong(f"{column} is there and has a default: drop the column, or the default")
    found = schema[source]
    if is_assignable(found, kind) or (column in era.cast and is_castable(found, kind)):
        return ColumnSource(column, kind, source, found)
    if column in era.cast:
        return wrong(f"{source} is {found}, which cannot be cast to {kind}")
    return wrong(f"{source} is {found}, expected {kind}: add a cast")
