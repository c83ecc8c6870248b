"""Repack the chunks of a running run: by the timings of finished chunks, or because a chunk killed its worker. Pure.

Partitions stay whole and in order, and no chunk mixes waves or snapshots of an input. The manifest does not store the
sizes of single partitions, so those within a chunk count as equal; packing made this nearly true, because large
partitions have their own chunk. Not for runs with a fixed chunk size or runs that read their own output.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from types import MappingProxyType

from errata.model.manifest import Chunk
from errata.planning.packing import LARGEST, MAX_PARTITIONS, SMALLEST_PER_CORE, Sized, fill_chunks

NEAR = 2.0
"""A median size within this factor of the target is left alone: repacking would cost more than it gains."""

GROWTH = 8.0
"""Largest growth in one step: small chunks are a poor guide to large ones."""

WORTH = 1.5
"""Least factor by which the number of chunks must change."""

RECENT = 5


@dataclass(frozen=True, slots=True)
class ChunkTiming:
    """Duration of a finished chunk, from claim to adoption."""

    bytes: int  # of input, as planned
    seconds: float
    rows: int = 0  # of input, as planned; 0: unknown
    partitions: int = 1
    started: float = 0.0  # seconds on any clock, to see which chunks ran in parallel


def resize_chunks(
    pending: Sequence[Chunk],
    done: Sequence[ChunkTiming],
    *,
    seconds: int,
    cores: int,
    next_id: Callable[[], str] = str,
    max_partitions: int = MAX_PARTITIONS,
    kinds: Mapping[str, Hashable] = MappingProxyType({}),
) -> tuple[Chunk, ...] | None:
    """The repacked pending chunks, or None to leave them; ``done`` is newest last, ``seconds`` the target per chunk.

    Partitions of different ``kinds`` stay in chunks of their own.
    """
    known = [chunk for chunk in done if chunk.bytes > 0 and chunk.seconds > 0][-RECENT:]
    if not known or not pending:
        return None
    rate = median(chunk.bytes / chunk.seconds for chunk in known)
    usual = median(chunk.bytes for chunk in known)
    target = int(min(max(rate * seconds, SMALLEST_PER_CORE * cores), usual * GROWTH, LARGEST))
    sizes = [chunk.bytes for chunk in pending if chunk.bytes > 0]
    if not sizes or target / NEAR <= median(sizes) <= target * NEAR:
        return None
    packed = tuple(
        Chunk(next_id(), names, rows, filled, wave)
        for (wave, _), chunks in groupby(pending, key=lambda chunk: (chunk.wave, kinds.get(chunk.partitions[0])))
        for names, rows, filled in fill_chunks(_spread_evenly(chunks), target, max_partitions)
    )
    # large partitions may leave chunks as they were, and workers that reach the same result must not repack for ever
    few, many = sorted((len(packed), len(pending)))
    return packed if many >= few * WORTH else None


def split_chunk(chunk: Chunk, pieces: int, next_id: Callable[[], str] = str) -> tuple[Chunk, ...] | None:
    """Split a chunk into ``pieces`` (or as many as it has partitions); None if it has only one partition."""
    sized = list(_spread_evenly([chunk]))
    pieces = min(pieces, len(sized))
    if pieces < 2:
        return None
    edges = [len(sized) * n // pieces for n in range(pieces + 1)]
    return tuple(
        replace(
            chunk,
            chunk_id=next_id(),
            partitions=tuple(name for name, _, _ in sized[a:b]),
            rows=sum(rows for _, rows, _ in sized[a:b]),
            bytes=sum(size for _, _, size in sized[a:b]),
        )
        for a, b in pairwise(edges)
    )


def _spread_evenly(chunks: Iterator[Chunk] | Sequence[Chunk]) -> Iterator[Sized]:
    """Partitions with equal shares of their chunk; the shares add up to the chunk's totals."""
    for chunk in chunks:
        count = len(chunk.partitions)
        for n, name in enumerate(chunk.partitions):
            rows = chunk.rows * (n + 1) // count - chunk.rows * n // count
            size = chunk.bytes * (n + 1) // count - chunk.bytes * n // count
            yield name, rows, size
