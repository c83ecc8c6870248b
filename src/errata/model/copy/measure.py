"""Checksums of rows in Python, by the same text and hash of a row as in SQL. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from typing import Any

from errata.model.copy.checksum import Checksum, DoubleSum
from errata.model.copy.row_text import hash_row, is_approximate, sum_hashes
from errata.model.copy.table import CopyTable
from errata.model.partition import name_partition


def measure_rows(copy: CopyTable, rows: Iterable[Mapping[str, Any]]) -> dict[str, Checksum]:
    """Checksums of rows, by the names of the copy's columns, for each of their partitions."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(name_partition(row[copy.partition.name], copy.grain), []).append(row)
    return {name: _measure_partition(copy, theirs) for name, theirs in sorted(found.items())}


def _measure_partition(copy: CopyTable, rows: list[Mapping[str, Any]]) -> Checksum:
    kinds = [column.type for column in copy.columns]
    sums = sum_hashes(hash_row(kinds, [row[column.name] for column in copy.columns]) for row in rows)
    doubles = []
    for column in copy.columns:
        if is_approximate(column.type):
            values = [row[column.name] for row in rows if row[column.name] is not None]
            doubles.append(DoubleSum(fsum(values), len(values)))
    return Checksum(sums.rows, sums.upper, sums.lower, tuple(doubles))
