"""Chunks packed anew from what was measured, and chunks cut because they killed a worker."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from errata.model.manifest import Chunk, InputPin
from errata.planning.packing import LARGEST, SMALLEST_PER_CORE
from errata.planning.repack import GROWTH, ChunkTiming, resize_chunks, split_chunk
from errata.worker.repack_waiting import can_repack

MIB = 1024 * 1024


def waiting(shape: list[tuple[int, int]], wave: int = 1) -> list[Chunk]:
    """Chunks of so many partitions and bytes, with partitions numbered through."""
    numbers = count()
    return [
        Chunk(f"c{n:03d}", tuple(f"p{next(numbers):05d}" for _ in range(parts)), size // 10, size, wave)
        for n, (parts, size) in enumerate(shape)
    ]


def names(chunks: tuple[Chunk, ...] | list[Chunk]) -> list[str]:
    return [name for chunk in chunks for name in chunk.partitions]


shapes = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 4000 * MIB)), min_size=1, max_size=20)
measured = st.lists(st.builds(ChunkTiming, st.integers(1, 4000 * MIB), st.floats(0.1, 5000)), min_size=1, max_size=8)


@given(shapes, measured, st.integers(10, 600), st.integers(1, 64))
def test_packing_anew_loses_cuts_and_reorders_nothing(
    shape: list[tuple[int, int]], done: list[ChunkTiming], seconds: int, cores: int
):
    """Every partition exactly once, in order; rows and bytes add up; nothing above the bound but a partition alone."""
    pending = waiting(shape)
    found = resize_chunks(pending, done, seconds=seconds, cores=cores, max_partitions=40)
    if found is None:
        return
    assert names(found) == names(pending)
    assert sum(chunk.bytes for chunk in found) == sum(chunk.bytes for chunk in pending)
    assert sum(chunk.rows for chunk in found) == sum(chunk.rows for chunk in pending)
    fastest = max(chunk.bytes / chunk.seconds for chunk in done)
    most = min(max(fastest * seconds, SMALLEST_PER_CORE * cores), LARGEST)
    for chunk in found:
        assert len(chunk.partitions) <= 40
        assert chunk.bytes <= most or len(chunk.partitions) == 1


@given(shapes, measured, st.integers(10, 600))
def test_packing_twice_from_the_same_measurements_changes_nothing_more(
    shape: list[tuple[int, int]], done: list[ChunkTiming], seconds: int
):
    """Workers that come to the same conclusion one after the other do not pack for ever."""
    once = resize_chunks(waiting(shape), done, seconds=seconds, cores=2)
    assert once is None or resize_chunks(once, done, seconds=seconds, cores=2) is None


def test_sizes_near_the_target_are_left_alone():
    """Within a factor of two there is nothing to gain."""
    pending = waiting([(10, 1000 * MIB)] * 4)
    for seconds in (70, 120, 230):
        assert resize_chunks(pending, [ChunkTiming(1000 * MIB, seconds)], seconds=120, cores=2) is None


def test_slow_chunks_become_smaller_and_quick_ones_larger():
    """What the first chunks took decides; a leap is bounded, because small chunks say little about large ones."""
    pending = waiting([(10, 1000 * MIB)] * 8)
    smaller = resize_chunks(pending, [ChunkTiming(1000 * MIB, 600)], seconds=120, cores=2)
    assert smaller is not None
    assert {len(chunk.partitions) for chunk in smaller} == {2}
    larger = resize_chunks(pending, [ChunkTiming(1000 * MIB, 30)], seconds=120, cores=2)
    assert larger is not None
    assert [len(chunk.partitions) for chunk in larger] == [40, 40]
    leap = resize_chunks(waiting([(1, MIB)] * 100), [ChunkTiming(10 * MIB, 0.01)], seconds=120, cores=2)
    assert leap is not None
    assert max(chunk.bytes for chunk in leap) <= 10 * MIB * GROWTH


def test_waves_are_never_mixed():
    """The canary is judged alone, so nothing joins it."""
    canary = [Chunk("c001", ("a", "b"), 0, 10 * MIB, 0)]
    found = resize_chunks([*canary, *waiting([(5, 10 * MIB)] * 9)], [ChunkTiming(100 * MIB, 12)], seconds=120, cores=2)
    assert found is not None
    assert [chunk.partitions for chunk in found if chunk.wave == 0] == [("a", "b")]


def test_nothing_is_concluded_from_nothing():
    """No measured chunk, no known size, nothing waiting: all stays."""
    assert resize_chunks(waiting([(3, 900 * MIB)]), [], seconds=120, cores=2) is None
    assert resize_chunks(waiting([(3, 0)]), [ChunkTiming(10, 10.0)], seconds=120, cores=2) is None
    assert resize_chunks([], [ChunkTiming(10, 10.0)], seconds=120, cores=2) is None


def test_new_chunks_get_their_ids_from_the_caller():
    """Ids belong to whoever keeps the chunks."""
    numbers = count(7)
    found = resize_chunks(
        waiting([(4, 4000 * MIB)]),
        [ChunkTiming(1000 * MIB, 600)],
        seconds=120,
        cores=2,
        next_id=lambda: f"c{next(numbers):03d}",
    )
    assert found is not None
    assert [chunk.chunk_id for chunk in found] == ["c007", "c008", "c009", "c010"]


@given(st.integers(1, 50), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(2, 8))
def test_a_split_chunk_is_the_same_work_in_smaller_pieces(parts: int, rows: int, size: int, pieces: int):
    """Whole partitions in order, nothing lost, nearly equal pieces; a single partition cannot be cut."""
    chunk = Chunk("c001", tuple(f"p{n:03d}" for n in range(parts)), rows, size, 0)
    found = split_chunk(chunk, pieces)
    if parts == 1:
        assert found is None
        return
    assert found is not None
    assert names(found) == list(chunk.partitions)
    assert (sum(c.rows for c in found), sum(c.bytes for c in found)) == (rows, size)
    assert {c.wave for c in found} == {0}
    lengths = [len(c.partitions) for c in found]
    assert len(found) == min(pieces, parts)
    assert max(lengths) - min(lengths) <= 1


def test_chunks_that_read_a_change_log_are_not_repacked():
    """Every chunk reads the whole log, so that more chunks would read it more often."""
    files = InputPin("raw", "files", "raw/*", "day", "date", 0, 0, ("2026-01-01",), {}, 0, 0, 0)
    assert can_repack([files])
    assert not can_repack([files, replace(files, own=True)])
    assert not can_repack([files, replace(files, transactions_of="orders")])
