"""Chunks and waves: no chunk has partitions of two waves, however chunks are packed, repacked or split."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from errata.model.partition import Grain, sort_newest_first
from errata.model.product import Waves
from errata.model.waves import split_into_waves, wave_of_chunk
from errata.planning.packing import pack_chunks
from errata.planning.repack import ChunkTiming, resize_chunks, split_chunk

DAYS = st.lists(
    st.integers(0, 200).map(lambda n: (date(2026, 1, 1) + timedelta(days=n)).isoformat()), unique=True, min_size=1
)


@settings(deadline=None)
@given(days=DAYS, size=st.integers(1, 30), most=st.integers(1, 500), canary=st.integers(0, 3))
def test_a_chunk_is_of_one_wave_and_the_canary_goes_with_the_first(
    days: list[str], size: int, most: int, canary: int
) -> None:
    """Every partition is computed once, in the order of its wave."""
    ordered = sort_newest_first(Grain.DAY, days)
    first = ordered[: min(canary, size)]
    waves = split_into_waves(Waves(str(size)), "newest", Grain.DAY, days, first)
    chunks = pack_chunks(ordered, lambda name: (1, hash(name) % 100), most, canary=first, waves=waves)
    assert sorted(name for chunk in chunks for name in chunk.partitions) == sorted(days)
    wave_of = {name: wave.n for wave in waves for name in wave.partitions}
    for chunk in chunks:
        assert {wave_of[name] for name in chunk.partitions} == {wave_of_chunk(chunk.wave)}
        assert (chunk.wave == 0) == (chunk.partitions[0] in first)
    assert [chunk.wave for chunk in chunks] == sorted(chunk.wave for chunk in chunks)


@settings(deadline=None)
@given(
    days=DAYS, size=st.integers(1, 30), most=st.integers(1, 500), speed=st.integers(1, 10_000), pieces=st.integers(2, 5)
)
def test_repacking_and_splitting_keep_waves_apart(
    days: list[str], size: int, most: int, speed: int, pieces: int
) -> None:
    """Whatever chunks become while the run goes, each partition stays in the wave that the plan sealed."""
    waves = split_into_waves(Waves(str(size)), "newest", Grain.DAY, days)
    wave_of = {name: wave.n for wave in waves for name in wave.partitions}
    chunks = pack_chunks(sort_newest_first(Grain.DAY, days), lambda _: (1, 1_000_000), most * 1_000_000, waves=waves)
    done = [ChunkTiming(bytes=speed * 1_000_000, seconds=10.0)]
    found = [*(resize_chunks(chunks, done, seconds=60, cores=1) or chunks)]
    found += [piece for chunk in chunks for piece in split_chunk(chunk, pieces) or ()]
    for chunk in found:
        assert {wave_of[name] for name in chunk.partitions} == {chunk.wave}
