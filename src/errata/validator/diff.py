"""What a correction changes: the values of a diff, and sums over them. Pure.

A partition is compared by the product's key where the key is unique on both sides, else row by row as a multiset, in
which a change shows as one row removed and one added. ``method`` says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

__all__ = ["ColumnChange", "Diff", "PartitionDiff", "SampleRow", "SchemaDiff", "total_by_column"]

SAME, BY_KEY, BY_ROW = "same", "key", "rows"


@dataclass(frozen=True, slots=True)
class SchemaDiff:
    """Columns with their types: only in the candidate, only in the prior output, and (before, after) if changed."""

    added: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """How many rows changed in a column; sums (decimals as text) for numeric columns of partitions compared by key."""

    changed: int
    sum_before: str | None = None
    sum_after: str | None = None


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


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One differing row: its key, and old and new values (of the changed columns only when it changed)."""

    partition: str
    change: str  # added | removed | changed
    key: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Diff:
    """Old against new, per partition, per column, with samples; ``notes`` say what limits the comparison."""

    schema: SchemaDiff
    partitions: tuple[PartitionDiff, ...]
    columns: Mapping[str, ColumnChange]
    sample: tuple[SampleRow, ...] = ()
    notes: tuple[str, ...] = ()


def total_by_column(partitions: Iterable[PartitionDiff]) -> dict[str, ColumnChange]:
    """Column changes over all partitions; a sum that is missing for one partition is missing in total."""
    totals: dict[str, ColumnChange] = {}
    for part in partitions:
        for name, change in part.columns.items():
            before = totals.get(name)
            totals[name] = (
                change
                if before is None
                else ColumnChange(
                    before.changed + change.changed,
                    _plus(before.sum_before, change.sum_before),
                    _plus(before.sum_after, change.sum_after),
                )
            )
    return totals


def _plus(a: str | None, b: str | None) -> str | None:
    if a is None or b is None:
        return None
    with localcontext(prec=100):  # the default would round sums of decimal(38) columns
        return format(Decimal(a) + Decimal(b), "f")
