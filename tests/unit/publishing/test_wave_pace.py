"""How long the waves of a run still take to compute."""

from __future__ import annotations

import pytest

from errata.ledger import ChunkRecord
from errata.model.run import ChunkState
from errata.publishing.waves import estimate_seconds_left


def chunk(n: int, state: ChunkState, wave: int, size: int = 100, seconds: float | None = None) -> ChunkRecord:
    return ChunkRecord(
        "r", f"c{n}", n, (f"2026-01-0{n}",), 0, size, state, 1, 1, None, None, None, None, seconds, None, None, wave
    )


DONE = chunk(1, ChunkState.DONE, 0, seconds=10.0)


def test_each_wave_waits_for_what_is_left_of_those_before_it() -> None:
    """Ten seconds for a hundred bytes; the canary, which is done, goes with the first wave."""
    left = [chunk(2, ChunkState.RUNNING, 1), chunk(3, ChunkState.PENDING, 2, 50), chunk(4, ChunkState.PENDING, 3)]
    assert estimate_seconds_left([DONE, *left]) == {1: 10, 2: 15, 3: 25}


def test_two_chunks_at_a_time_take_half_as_long() -> None:
    """The pace is that of the chunks that run now."""
    assert estimate_seconds_left([DONE, chunk(2, ChunkState.RUNNING, 1), chunk(3, ChunkState.RUNNING, 1)]) == {1: 10}


@pytest.mark.parametrize("others", [(), (chunk(2, ChunkState.PENDING, 1),), (chunk(2, ChunkState.REPLACED, 1),)])
def test_nothing_is_said_while_no_chunk_runs(others: tuple[ChunkRecord, ...]) -> None:
    """Nobody knows when a worker comes back."""
    assert estimate_seconds_left([DONE, *others]) == {}
