"""Whole partitions packed into chunks by input bytes. Pure.

A chunk is one Spark job, one lease, one append: big enough that starting it costs little, small enough that losing it
costs little. A partition is never cut; one above the target is a chunk of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from errata.model.manifest import Chunk
from errata.model.partition import Grain, newest_first, oldest_first

__all__ = ["MAX_PARTITIONS", "in_order", "pack"]

MAX_PARTITIONS = 400
"""Per chunk, however small its bytes: bounds the files one job opens and what one retry redoes."""


def in_order(grain: Grain, partitions: Sequence[str], order: str) -> tuple[str, ...]:
    """The order in which partitions are computed."""
    return newest_first(grain, partitions) if order == "newest" else oldest_first(grain, partitions)


def pack(
    ordered: Sequence[str],
    size: Callable[[str], tuple[int, int]],
    chunk_bytes: int,
    *,
    canary: int = 0,
    max_partitions: int = MAX_PARTITIONS,
) -> tuple[Chunk, ...]:
    """Chunks in the given order; ``size`` gives rows and bytes of a partition, ``canary`` partitions stand apart."""
    chunks: list[Chunk] = []
    names: list[str] = []
    rows = filled = 0

    def close() -> None:
        nonlocal rows, filled
        if names:
            chunks.append(Chunk(f"c{len(chunks) + 1:03d}", tuple(names), rows, filled))
            names.clear()
            rows = filled = 0

    for number, name in enumerate(ordered):
        more_rows, more_bytes = size(name)
        full = len(names) >= max_partitions or filled + more_bytes > chunk_bytes
        if full or (canary and number == canary):
            close()
        names.append(name)
        rows, filled = rows + more_rows, filled + more_bytes
    close()
    return tuple(chunks)
