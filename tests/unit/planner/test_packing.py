from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from errata.model.partition import Grain, from_ordinal
from errata.planner.packing import in_order, pack

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
    ordered = in_order(Grain.DAY, list(found), order)
    chunks = pack(ordered, lambda name: (found[name] * 2, found[name]), target, canary=canary, max_partitions=most)
    assert tuple(name for chunk in chunks for name in chunk.partitions) == ordered
    assert ordered == tuple(sorted(found, reverse=order == "newest"))
    for chunk in chunks:
        assert chunk.bytes == sum(found[name] for name in chunk.partitions)
        assert chunk.rows == 2 * chunk.bytes
        assert len(chunk.partitions) <= most
        assert chunk.bytes <= target or len([name for name in chunk.partitions if found[name]]) == 1
    assert [chunk.chunk_id for chunk in chunks] == [f"c{n:03d}" for n in range(1, len(chunks) + 1)]


@given(sizes, st.integers(1, 100), st.integers(1, 9))
def test_neighbouring_chunks_could_not_have_been_one(found: dict[str, int], target: int, most: int):
    """A chunk is closed only when the next partition does not fit."""
    chunks = pack(sorted(found), lambda name: (0, found[name]), target, max_partitions=most)
    for chunk, after in pairwise(chunks):
        assert len(chunk.partitions) == most or chunk.bytes + found[after.partitions[0]] > target


@given(sizes, st.integers(1, 5))
def test_canary_partitions_stand_apart(found: dict[str, int], canary: int):
    """No chunk holds both canary partitions and others."""
    ordered = sorted(found)
    first = set(ordered[:canary])
    for chunk in pack(ordered, lambda name: (0, found[name]), 10_000, canary=canary):
        assert first.issuperset(chunk.partitions) or first.isdisjoint(chunk.partitions)
