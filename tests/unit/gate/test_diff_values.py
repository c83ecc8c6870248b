"""Totals over partitions of a diff."""

from __future__ import annotations

from errata.model.diff import ColumnChange, PartitionDiff, sum_by_column


def _part(**columns: ColumnChange) -> PartitionDiff:
    return PartitionDiff("p", 1, 1, 0, 0, 1, 0, columns=columns)


def test_totals_are_exact_and_missing_where_one_is_missing() -> None:
    """38 digits add up without rounding; a column without sums in one partition has none in total."""
    big = "9" * 36 + ".01"
    parts = [
        _part(amount=ColumnChange(1, big, "1"), name=ColumnChange(2)),
        _part(amount=ColumnChange(3, "0.02", "2"), name=ColumnChange(1), late=ColumnChange(1, "1", "2")),
    ]
    assert sum_by_column(parts) == {
        "amount": ColumnChange(4, "9" * 36 + ".03", "3"),
        "name": ColumnChange(3),
        "late": ColumnChange(1, "1", "2"),
    }
