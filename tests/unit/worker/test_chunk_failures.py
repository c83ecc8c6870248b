"""What becomes of a chunk after an attempt that did not succeed."""

from __future__ import annotations

import pytest

from errata.errors import EngineError, OutOfMemory, SourceChanged, TransformFailed, WorkerDied
from errata.model.chunk_outcome import FailedAttempt
from errata.model.manifest import Chunk
from errata.model.run import ChunkState
from errata.worker.chunk_failures import backoff_seconds, error_policy, loss_policy

C = ChunkState


def loss(partitions: int = 1, *, tries: int = 1, losses: int = 0, reason: str = "engine") -> FailedAttempt:
    names = tuple(f"2026-01-{n:02d}" for n in range(1, partitions + 1))
    return FailedAttempt(Chunk("c001", names, 100, 1000), reason, tries, losses)


@pytest.mark.parametrize("error", [TransformFailed("x"), SourceChanged("x")])
def test_a_terminal_error_fails_the_chunk_at_once(error: TransformFailed) -> None:
    """Trying again will not help by itself."""
    assert error_policy(error, 5)(loss()).to is C.FAILED


def test_what_may_pass_is_tried_again_later_and_not_for_ever() -> None:
    """The pause grows, and after the cap the chunk is quarantined with a reason."""
    waits = [error_policy(EngineError("x"), 4)(loss(tries=n)) for n in (1, 2, 3)]
    assert all(fate.to is C.PENDING for fate in waits)
    assert 4 <= waits[0].wait_seconds <= 6
    assert 16 <= waits[2].wait_seconds <= 24
    last = error_policy(EngineError("x"), 4)(loss(tries=4))
    assert (last.to, "4 attempts" in last.why) == (C.QUARANTINED, True)


def test_the_pause_has_an_end() -> None:
    """Ten minutes at most, however often it failed."""
    assert backoff_seconds(40) == 600.0


def test_out_of_memory_makes_the_chunk_smaller_at_once() -> None:
    """Whole partitions in up to eight pieces; all of them and each once."""
    fate = error_policy(OutOfMemory("x"), 5)(loss(20, losses=1, reason="memory"))
    assert fate.to is C.REPLACED
    assert len(fate.pieces) == 8
    assert [name for piece in fate.pieces for name in piece] == list(loss(20).chunk.partitions)


def test_a_single_partition_that_runs_out_of_memory_again_is_quarantined() -> None:
    """There is nothing left to cut."""
    decide = error_policy(OutOfMemory("x"), 5)
    fates = [decide(loss(1, tries=n, losses=n, reason="memory")).to for n in (1, 2, 3)]
    assert fates == [C.PENDING, C.PENDING, C.QUARANTINED]


def test_a_lost_worker_costs_one_more_try_then_a_smaller_chunk_then_quarantine() -> None:
    """A machine may be reclaimed once; a chunk that does it twice is suspected."""
    decide = loss_policy(5)
    assert decide(loss(4, losses=1, reason="owner-dead")).to is C.PENDING
    assert decide(loss(4, losses=2, reason="lease-expired")).to is C.REPLACED
    assert decide(loss(1, losses=2, reason="lease-expired")).to is C.PENDING
    assert decide(loss(1, losses=3, reason="lease-expired")).to is C.QUARANTINED


def test_a_dead_jvm_counts_like_a_dead_worker() -> None:
    """As memory when its exit says so, as a lost worker else."""
    assert error_policy(WorkerDied("x"), 5)(loss(4, losses=1, reason="worker-died")).to is C.PENDING
    assert error_policy(WorkerDied("x", memory=True), 5)(loss(4, losses=1, reason="memory")).to is C.REPLACED


def test_bisecting_corners_the_poison_partition() -> None:
    """However many partitions a chunk has, a few losses leave the one that kills its worker alone."""
    poison, names = "2026-01-07", loss(28).chunk.partitions
    losses, tries, lost = 0, 0, 0
    for _ in range(20):
        losses, tries, lost = losses + 1, tries + 1, lost + 1
        fate = loss_policy(5)(FailedAttempt(Chunk("c", names, 1, 1), "owner-dead", tries, losses))
        if fate.to is C.QUARANTINED:
            break
        if fate.to is C.REPLACED:
            names = next(piece for piece in fate.pieces if poison in piece)
            tries = 0
    assert names == (poison,)
    assert lost <= 5


@pytest.mark.parametrize(
    "reason, told",
    [
        ("owner-dead", "was killed or crashed"),
        ("lease-expired", "stopped sending heartbeats"),
        (OutOfMemory.code, "ran out of memory"),
    ],
)
def test_a_quarantined_chunk_says_in_plain_words_how_its_workers_were_lost(reason: str, told: str):
    """The codes of the ledger are not in the sentence."""
    fate = loss_policy(5)(FailedAttempt(Chunk("c", ("2026-01-01",), 1, 1), reason, 3, 3))
    assert (fate.to, fate.why) == (C.QUARANTINED, f"3 workers lost while computing c: the last one {told}")
