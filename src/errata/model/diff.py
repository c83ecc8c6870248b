"""Values of a diff, and sums over them. Pure.

A partition is compared by the product's key if the key is unique on both sides, otherwise row by row as a multiset,
where a change shows as one row removed and one added. ``method`` says which. A value that moved within its declared
tolerance is unchanged, and counted as such. Values of classified columns never get here: they are masked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

SAME, BY_KEY, BY_ROW = "same", "key", "rows"
MASK = "•••"
"""Replaces a value of a classified column; NULL stays NULL."""
QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")


@dataclass(frozen=True, slots=True)
class SchemaDiff:
    """Columns with types: only in the candidate, only in the previous output, and (before, after) if changed."""

    added: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Number of rows changed in a column; sums (decimals as text) for numeric columns of partitions compared by key.

    ``median_percent`` is the approximate median movement of the changed values, only over the whole scope.
    """

    changed: int
    sum_before: str | None = None
    sum_after: str | None = None
    within: int = 0  # rows that moved, but within the declared tolerance
    median_percent: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionDiff:
    """Row counts of one partition; ``method`` is same (checksums agree), key or rows."""

    partition: str
    before_rows: int
    after_rows: int
    added: int
    removed: int
    changed: int
    unchanged: int
    method: str = BY_KEY
    columns: Mapping[str, ColumnChange] = field(default_factory=dict)
    within: int = 0  # unchanged rows that moved within a tolerance

    @property
    def touched(self) -> int:
        """Rows that differ."""
        return self.added + self.removed + self.changed

    @property
    def on_both_sides(self) -> int:
        """Rows that exist before and after."""
        return self.changed + self.unchanged

    @property
    def rows(self) -> int:
        """All rows, each once."""
        return self.touched + self.unchanged


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One differing row: its key, and old and new values (only of the changed columns for a changed row)."""

    partition: str
    change: str  # added | removed | changed
    key: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangePattern:
    """Number of rows in which exactly these columns changed."""

    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value and the number of rows that hold it."""

    value: Any
    rows: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Distribution of a column's values on one side; statistics that do not apply to the column are None or empty."""

    rows: int
    nulls: int
    minimum: Any = None
    maximum: Any = None
    mean: str | None = None
    quantiles: Mapping[str, Any] = field(default_factory=dict)
    distinct: int | None = None
    top: tuple[TopValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """A column before and after, over the partitions that differ; ``kind`` is number, time, text or other.

    ``exact`` is false if there are too many distinct values to count each; ``top`` is then empty.
    """

    kind: str
    before: Profile
    after: Profile
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Diff:
    """Old against new, per partition and per column, with samples; ``notes`` state the limits of the comparison."""

    schema: SchemaDiff
    partitions: tuple[PartitionDiff, ...]
    columns: Mapping[str, ColumnChange]
    sample: tuple[SampleRow, ...] = ()
    notes: tuple[str, ...] = ()
    together: tuple[ChangePattern, ...] = ()
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    masked: tuple[str, ...] = ()
    tolerance: Mapping[str, str] = field(default_factory=dict)


KINDS_OF_CHANGE = ("removed", "added", "changed")
"""In the order in which a sample shows them: a row that is gone is the easiest to overlook."""


def order_sample(rows: Sequence[SampleRow], wanted: int) -> tuple[SampleRow, ...]:
    """The first row of each kind, then the others in their order; a smaller sample is the beginning of a larger one.

    >>> rows = [SampleRow("d", kind, {"k": n}, {}, {}) for n, kind in enumerate(["changed", "changed", "removed"])]
    >>> [row.key["k"] for row in order_sample(rows, 2)]
    [2, 0]
    """
    first = [next((n for n, row in enumerate(rows) if row.change == kind), None) for kind in KINDS_OF_CHANGE]
    lead = [n for n in first if n is not None]
    return tuple(rows[n] for n in [*lead, *(n for n in range(len(rows)) if n not in lead)][:wanted])


def mask_row(row: Mapping[str, Any], classified: Iterable[str]) -> dict[str, Any]:
    """The row with classified values masked."""
    hidden = set(classified)
    return {name: MASK if name in hidden and value is not None else value for name, value in row.items()}


def mask_pair(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, classified: Iterable[str]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """A row before and after with classified values masked; a masked value that changed is marked as changed."""
    hidden = tuple(classified)
    old, new = (None if row is None else mask_row(row, hidden) for row in (before, after))
    if before and after and new is not None:
        for name in hidden:
            if new.get(name) is not None and before.get(name) != after[name]:
                new[name] = f"{MASK} (changed)"
    return old, new


def sum_by_column(partitions: Iterable[PartitionDiff]) -> dict[str, ColumnChange]:
    """Column changes summed over all partitions; a sum missing in one partition is missing in the total."""
    totals: dict[str, ColumnChange] = {}
    for part in partitions:
        for name, change in part.columns.items():
            before = totals.get(name)
            totals[name] = (
                change
                if before is None
                else ColumnChange(
                    before.changed + change.changed,
                    _add_decimals(before.sum_before, change.sum_before),
                    _add_decimals(before.sum_after, change.sum_after),
                    before.within + change.within,
                )
            )
    return totals


def _add_decimals(a: str | None, b: str | None) -> str | None:
    if a is None or b is None:
        return None
    with localcontext(prec=100):  # the default precision would round sums of decimal(38) columns
        return format(Decimal(a) + Decimal(b), "f")


@dataclass(frozen=True, slots=True)
class Movement:
    """A metric of one partition before and after (decimals as text); a change from zero has no percentage."""

    partition: str
    before: str | None
    after: str | None
    change: str | None = None
    percent: str | None = None


@dataclass(frozen=True, slots=True)
class MetricMoves:
    """A metric over the partitions: old against new (``kind`` compare, column), source against output (reconcile)."""

    name: str
    kind: str  # compare | reconcile | column
    before_means: str = "before"
    after_means: str = "after"
    partitions: tuple[Movement, ...] = ()
    before: str | None = None  # totals, only for sums and counts
    after: str | None = None
    largest: tuple[str, ...] = ()  # partitions with the largest movement in percent
    smallest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutsideScope:
    """Partitions outside a scope, and those among them whose live files differ between the two snapshots."""

    partitions: int
    differing: tuple[str, ...] = ()
