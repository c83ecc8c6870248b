"""Schema eras of an input, and row rules. Pure.

An era states for which partitions or file schemas it applies, and how its columns map to those that the transform sees.
Planner and engine use the same two functions: which era applies (:func:`find_matching_eras`), and where each declared
column comes from (:func:`resolve_columns`). A column without a source is a problem, never a NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.types import is_assignable, is_castable

QUARANTINE, SUPPRESS = "quarantine", "suppress"


@dataclass(frozen=True, slots=True)
class Era:
    """A span in which a source had one schema. ``first`` and ``last`` are partitions, both included."""

    name: str
    first: str | None = None
    last: str | None = None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)  # old → new
    cast: Mapping[str, str] = field(default_factory=dict)  # column (new name) → type
    default: Mapping[str, str | None] = field(default_factory=dict)  # column → literal; None is an explicit NULL
    drop: tuple[str, ...] = ()  # source columns to ignore

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
    """Rows that match the condition are removed; NULL does not match. ``sql`` is the condition's normal form."""

    name: str
    expression: str
    action: str  # quarantine | suppress
    sql: str = ""


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Limits on quarantined rows of an input, per partition and per run: ``0.1%`` or a number."""

    name: str  # the input
    warn: str | None = None
    block: str | None = None


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
