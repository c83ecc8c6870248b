from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from errata.model.partition import Grain, from_ordinal
from errata.planning.packing import LARGEST, SMALLEST_PER_CORE, compute_chunk_bytes, order_partitions, pack_chunks

MIB = 1024 * 1024
sizes = st.dictionaries(st.integers(0, 3000).map(lambda n: from_ordinal(Grain.DAY, n)), st.integers(0, 120), min_size=1)


@given(
    sizes,
    st.sampled_from(["newest", "oldest", "sequential"]),
    st.integers(1, 100),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_every_partition_is_in_exactly_one_chunk(
    found: dict[str, int], order: str, target: int, most: int, canary: int
):
    """Order is kept, nothing is cut or lost, bounds hold unless one partition alone is above them."""
    ordered = order_partitions(Grain.DAY, list(found), order)
    first = ordered[:canary]
    chunks = pack_chunks(
        ordered, lambda name: (found[name] * 2, found[name]), target, canary=first, max_partitions=most
    )
    assert tuple(name for chunk in chunks for name in chunk.partitions) == ordered
    assert ordered == tuple(sorted(found, reverse=order == "newest"))
    for chunk in chunks:
        assert chunk.bytes == sum(found[name] for name in chunk.partitions)
        assert chunk.rows == 2 * chunk.bytes
        assert len(chunk.partitions) <= most
        assert chunk.bytes <= target or len(chunk.partitions) == 1
    assert [chunk.chunk_id for chunk in chunks] == [f"c{n:03d}" for n in range(1, len(chunks) + 1)]


@given(sizes, st.integers(1, 100), st.integers(1, 9))
def test_neighbouring_chunks_could_not_have_been_one(found: dict[str, int], target: int, most: int):
    """A chunk is closed only when the next partition does not fit."""
    chunks = pack_chunks(sorted(found), lambda name: (0, found[name]), target, max_partitions=most)
    for chunk, after in pairwise(chunks):
        assert len(chunk.partitions) == most or chunk.bytes + found[after.partitions[0]] > target


@given(sizes, st.data())
def test_canary_partitions_come_first_and_stand_apart(found: dict[str, int], data: st.DataObject):
    """A declared subset makes the first chunks, which hold nothing else and are wave 0."""
    ordered = sorted(found)
    canary = data.draw(st.sets(st.sampled_from(ordered)))
    chunks = pack_chunks(ordered, lambda name: (0, found[name]), 10_000, canary=canary)
    assert [chunk.wave for chunk in chunks] == sorted(chunk.wave for chunk in chunks)
    assert [name for chunk in chunks if chunk.wave == 0 for name in chunk.partitions] == sorted(canary)
    assert [name for chunk in chunks if chunk.wave == 1 for name in chunk.partitions] == sorted(set(found) - canary)


def test_chunks_aim_at_a_wall_time_within_bounds():
    """Rate times cores times seconds; two tasks per core at least, what may be lost at most; fixed sizes stay."""
    assert compute_chunk_bytes(10 * MIB, 4, 100) == 4000 * MIB
    assert compute_chunk_bytes(1.0, 4, 100) == 4 * SMALLEST_PER_CORE
    assert compute_chunk_bytes(1e9, 1000, 600) == LARGEST
    assert compute_chunk_bytes(1e9, 1000, 600, fixed=1) == 1
