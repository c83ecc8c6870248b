"""How scans of small files are cut into tasks."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from errata.engines.spark.inputs.frames import compute_open_cost

_MIB = 1024 * 1024


@pytest.mark.parametrize("partitions", [8, 45, 180, 500])
def test_many_small_partitions_are_a_few_tasks_for_every_core(partitions: int) -> None:
    """With one small file each: at least two and at most eight tasks of 16 MiB for every core."""
    tasks = partitions * compute_open_cost(partitions, 2) / (16 * _MIB)
    assert 2 <= tasks <= 16


def test_a_file_never_counts_more_than_usual_nor_next_to_nothing() -> None:
    """One partition is read as any job reads it; 43,800 are not 43,800 × 4 MiB."""
    assert compute_open_cost(1, 2) == 4 * _MIB
    assert compute_open_cost(43_800, 2) == _MIB // 4
