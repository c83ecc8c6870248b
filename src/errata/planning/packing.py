"""Pack whole partitions into chunks by input bytes, aiming at a wall time. Pure.

A chunk is one Spark job, one lease and one append: big enough that starting it costs little, small enough that losing
it costs little. A partition is never split; one above the target size gets its own chunk. Canary partitions come first,
in chunks of their own (wave 0), then those of each wave. Repacking during a run is in :mod:`errata.planning.repack`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from errata.model.manifest import Chunk
from errata.model.partition import Grain, sort_newest_first, sort_oldest_first
from errata.model.waves import Wave

MAX_PARTITIONS = 400
"""Partitions per chunk, however small: bounds the files one job opens and what one retry repeats."""

SMALLEST_PER_CORE = 8 * 1024 * 1024
"""Two tasks per core at Spark's smallest split (4 MiB); below this, cores wait for each other."""

LARGEST = 64 * 1024**3
"""Upper limit at any speed: what one lost chunk may cost."""

Sized = tuple[str, int, int]
"""A partition with the rows and bytes of its input."""


def order_partitions(grain: Grain, partitions: Sequence[str], order: str) -> tuple[str, ...]:
    """Partitions in the order they are computed."""
    return sort_newest_first(grain, partitions) if order == "newest" else sort_oldest_first(grain, partitions)


def compute_chunk_bytes(rate: float, cores: int, seconds: int, fixed: int | None = None) -> int:
    """Input bytes of a chunk that takes about ``seconds`` at ``rate`` bytes per core-second.

    >>> compute_chunk_bytes(8 * 1024 * 1024, 2, 120) // 1024**2, compute_chunk_bytes(1.0, 4, 120) // 1024**2
    (1920, 32)
    """
    if fixed is not None:
        return fixed
    return int(min(max(rate * cores * seconds, SMALLEST_PER_CORE * cores), LARGEST))


def fill_chunks(
    items: Iterable[Sized], most_bytes: int, most_partitions: int
) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Group neighbouring items as long as they fit; yields names, rows and bytes of each chunk."""
    names: list[str] = []
    rows = filled = 0
    for name, more_rows, more_bytes in items:
        if names and (len(names) >= most_partitions or filled + more_bytes > most_bytes):
            yield tuple(names), rows, filled
            names, rows, filled = [], 0, 0
        names.append(name)
        rows, filled = rows + more_rows, filled + more_bytes
    if names:
        yield tuple(names), rows, filled


def pack_chunks(
    ordered: Sequence[str],
    size: Callable[[str], tuple[int, int]],
    chunk_bytes: int,
    *,
    canary: Collection[str] = (),
    waves: Sequence[Wave] = (),
    max_partitions: int = MAX_PARTITIONS,
    kinds: Mapping[str, Hashable] = MappingProxyType({}),
) -> tuple[Chunk, ...]:
    """Pack partitions in the given order, canary first, then wave by wave; no chunk mixes waves.

    ``size`` returns rows and bytes of a partition; without ``waves`` the run is one wave. Partitions of different
    ``kinds`` are never in one chunk.
    """
    first = frozenset(canary)
    wave_of = {name: wave.n for wave in waves for name in wave.partitions}
    packed_together: dict[int, list[str]] = {0: [], 1: []}
    for name in ordered:
        packed_together.setdefault(0 if name in first else wave_of.get(name, 1), []).append(name)
    chunks: list[Chunk] = []
    for wave, names in sorted(packed_together.items()):
        for _, alike in groupby(names, key=kinds.get):
            sized = ((name, *size(name)) for name in alike)
            for packed, rows, filled in fill_chunks(sized, chunk_bytes, max_partitions):
                chunks.append(Chunk(f"c{len(chunks) + 1:03d}", packed, rows, filled, wave))
    return tuple(chunks)
