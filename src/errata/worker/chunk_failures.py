"""Retry policy: the outcome of a chunk after a failed attempt. Pure.

Terminal errors (of the transform, of the contract, a changed source) fail the chunk at once, because retrying does not
help. Transient errors are retried with growing pauses, up to a cap. A chunk that killed its worker is retried once
unchanged and then split, to isolate the partition that causes it; that partition is quarantined and waits for a person,
while the others continue.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from errata.errors import ErrataError, OutOfMemory, WorkerDied
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.run import ChunkState
from errata.planning.repack import split_chunk
from errata.text.numbers import plural

FIRST_WAIT = 5.0
LONGEST_WAIT = 600.0
SPLIT_PIECES = 8
LOSSES_BEFORE_SPLIT = 2
"""Lost workers before a chunk is split. Out of memory splits at once."""
LOSSES_BEFORE_QUARANTINE = 3
"""Lost workers before a chunk that cannot be split is quarantined."""
_LOSSES = {
    "owner-dead": "was killed or crashed",
    "lease-expired": "stopped sending heartbeats",
    WorkerDied.code: "lost its Spark process",
    OutOfMemory.code: "ran out of memory",
}
"""What happened to a worker, by the reason in the ledger."""


def backoff_seconds(tries: int, jitter: float = 1.0) -> float:
    """5, 10, 20 … seconds, at most ten minutes; ``jitter`` keeps workers from retrying at the same moment.

    >>> [backoff_seconds(n) for n in (1, 2, 3, 12)]
    [5.0, 10.0, 20.0, 600.0]
    """
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1)) * jitter


def loss_policy(cap: int) -> Callable[[FailedAttempt], ChunkOutcome]:
    """Policy for a chunk whose worker died or stopped sending heartbeats."""

    def decide(loss: FailedAttempt) -> ChunkOutcome:
        return _split_or_quarantine(loss, cap, cut_from=LOSSES_BEFORE_SPLIT)

    return decide


def error_policy(error: ErrataError, cap: int) -> Callable[[FailedAttempt], ChunkOutcome]:
    """Policy for a chunk whose attempt ended with this error."""

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
        why = f"{_describe_loss(loss)}; {loss.chunk.chunk_id} was split"
        return ChunkOutcome(ChunkState.REPLACED, pieces=tuple(piece.partitions for piece in pieces), why=why)
    if loss.losses >= LOSSES_BEFORE_QUARANTINE or loss.tries >= cap:
        return ChunkOutcome(ChunkState.QUARANTINED, why=_describe_loss(loss))
    return ChunkOutcome(ChunkState.PENDING)


def _describe_loss(loss: FailedAttempt) -> str:
    last = "it" if loss.losses == 1 else "the last one"
    how = _LOSSES.get(loss.reason, f"ended with {loss.reason}")
    return f"{plural(loss.losses, 'worker')} lost while computing {loss.chunk.chunk_id}: {last} {how}"
