"""What becomes of a chunk after an attempt that did not succeed. Pure.

Terminal errors (the transform's, the contract's, a changed source) fail the chunk at once: trying again will not help.
What may pass is tried again after a growing pause, up to a cap. A chunk that took its worker with it is tried once more
as it is, then in smaller pieces, which corner the partition that does it; that one is quarantined and waits for a
person, while the others go on.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from errata.errors import ErrataError, OutOfMemory, WorkerDied
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.run import ChunkState
from errata.planning.repack import split_chunk

FIRST_WAIT = 5.0
LONGEST_WAIT = 600.0
SPLIT_PIECES = 8
LOSSES_BEFORE_SPLIT = 2
"""Lost workers from which on a chunk is cut; out of memory cuts at once."""
LOSSES_BEFORE_QUARANTINE = 3
"""Lost workers from which on a single partition is quarantined."""


def backoff_seconds(tries: int, jitter: float = 1.0) -> float:
    """5, 10, 20 … seconds, at most ten minutes; ``jitter`` keeps workers from coming back together.

    >>> [backoff_seconds(n) for n in (1, 2, 3, 12)]
    [5.0, 10.0, 20.0, 600.0]
    """
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1)) * jitter


def loss_policy(cap: int) -> Callable[[FailedAttempt], ChunkOutcome]:
    """For a chunk whose worker died or was not heard of."""

    def decide(loss: FailedAttempt) -> ChunkOutcome:
        return _split_or_quarantine(loss, cap, cut_from=LOSSES_BEFORE_SPLIT)

    return decide


def error_policy(error: ErrataError, cap: int) -> Callable[[FailedAttempt], ChunkOutcome]:
    """For a chunk whose attempt ended with this error."""

    def decide(loss: FailedAttempt) -> ChunkOutcome:
        if isinstance(error, (OutOfMemory, WorkerDied)):
            return _split_or_quarantine(
                loss, cap, cut_from=1 if loss.reason == OutOfMemory.code else LOSSES_BEFORE_SPLIT
            )
        if not error.retryable:
            return ChunkOutcome(ChunkState.FAILED)
        if loss.tries >= cap:
            return ChunkOutcome(
                ChunkState.QUARANTINED, why=f"{loss.tries} attempts in a row failed, the last by {error.code}"
            )
        return ChunkOutcome(ChunkState.PENDING, backoff_seconds(loss.tries, random.uniform(0.8, 1.2)))  # noqa: S311

    return decide


def _split_or_quarantine(loss: FailedAttempt, cap: int, cut_from: int) -> ChunkOutcome:
    if loss.losses >= cut_from and (pieces := split_chunk(loss.chunk, SPLIT_PIECES)):
        why = f"{loss.chunk.chunk_id} lost {loss.losses} worker{'s'[: loss.losses > 1]} ({loss.reason}): smaller"
        return ChunkOutcome(ChunkState.REPLACED, pieces=tuple(piece.partitions for piece in pieces), why=why)
    if loss.losses >= LOSSES_BEFORE_QUARANTINE or loss.tries >= cap:
        why = f"{loss.losses} workers were lost with it, the last by {loss.reason}"
        return ChunkOutcome(ChunkState.QUARANTINED, why=why)
    return ChunkOutcome(ChunkState.PENDING)
