"""Which chunks a proof of determinism computes twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from errata.model.manifest import Chunk
from errata.worker.determinism import choose_samples


@given(st.integers(1, 60), st.integers(1, 80))
def test_samples_are_spread_over_the_run(total: int, count: int) -> None:
    """As many as asked for, each once, in order; the first and the last among them from two on."""
    chunks = [Chunk(f"c{n:03d}", (f"p{n}",), 1, 1) for n in range(total)]
    chosen = choose_samples(chunks, count)
    assert len(chosen) == min(total, count)
    assert list(chosen) == sorted(set(chosen), key=lambda chunk: chunk.chunk_id)
    if count > 1 and total > 1:
        assert (chosen[0], chosen[-1]) == (chunks[0], chunks[-1])
