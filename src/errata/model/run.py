"""States of runs, chunks, attempts and publications, and the transitions the ledger allows. Pure.

The ledger's triggers are built from the same table, so direct writes to the database obey it too.
"""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """State of a run."""

    PLANNED = "planned"
    APPROVED = "approved"
    DECLINED = "declined"
    RUNNING = "running"
    PAUSED = "paused"
    STAGED = "staged"
    REJECTED = "rejected"
    VALIDATED = "validated"
    PUBLISHING = "publishing"
    PART_PUBLISHED = "part_published"
    PUBLISHED = "published"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


S = RunState
_STOP = frozenset({S.CANCELLED, S.EXPIRED})

RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    S.PLANNED: frozenset({S.APPROVED, S.DECLINED}) | _STOP,
    S.APPROVED: frozenset({S.RUNNING}) | _STOP,
    # a canary that fails rejects the run before the rest is computed
    S.RUNNING: frozenset({S.PAUSED, S.STAGED, S.FAILED, S.REJECTED}) | _STOP,
    S.PAUSED: frozenset({S.RUNNING}) | _STOP,
    S.FAILED: frozenset({S.RUNNING}) | _STOP,
    # back to running: partitions that live jobs wrote meanwhile are recomputed
    S.STAGED: frozenset({S.VALIDATED, S.REJECTED, S.RUNNING}) | _STOP,
    S.REJECTED: frozenset({S.VALIDATED, S.REJECTED}) | _STOP,
    S.VALIDATED: frozenset({S.PUBLISHING, S.REJECTED, S.RUNNING}) | _STOP,
    S.PUBLISHING: frozenset({S.PUBLISHED, S.PART_PUBLISHED, S.VALIDATED}),
    S.PART_PUBLISHED: frozenset({S.PUBLISHING, S.ROLLED_BACK, S.SUPERSEDED}),
    S.PUBLISHED: frozenset({S.ROLLED_BACK, S.SUPERSEDED}),
    # a later run was rolled back, so what this run published is current again
    S.SUPERSEDED: frozenset({S.PUBLISHED, S.PART_PUBLISHED, S.ROLLED_BACK}),
    S.ROLLED_BACK: frozenset(),
    S.DECLINED: frozenset(),
    S.CANCELLED: frozenset(),
    S.EXPIRED: frozenset(),
}

FINAL = frozenset({S.DECLINED, S.CANCELLED, S.EXPIRED, S.ROLLED_BACK, S.SUPERSEDED, S.PUBLISHED})
"""The run has ended and no longer reserves its partitions."""

ACTIVE = frozenset(RunState) - FINAL

FREEZE_END_STATES = FINAL | {S.REJECTED}
"""States in which a freeze ends and live jobs may write again."""


class ChunkState(StrEnum):
    """State of a chunk; a running chunk has exactly one attempt whose fence is the chunk's."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    QUARANTINED = "quarantined"
    REPLACED = "replaced"  # other chunks took over its partitions


C = ChunkState
CHUNK_MOVES: dict[ChunkState, frozenset[ChunkState]] = {
    C.PENDING: frozenset({C.RUNNING, C.REPLACED}),
    C.RUNNING: frozenset({C.RUNNING, C.DONE, C.FAILED, C.PENDING, C.QUARANTINED, C.REPLACED}),
    C.FAILED: frozenset({C.PENDING, C.RUNNING, C.QUARANTINED}),
    C.QUARANTINED: frozenset({C.PENDING}),
    C.DONE: frozenset(),
    C.REPLACED: frozenset(),
}


class AttemptState(StrEnum):
    """State of an attempt."""

    RUNNING = "running"
    ADOPTED = "adopted"
    FAILED = "failed"
    LOST = "lost"


A = AttemptState
ATTEMPT_MOVES: dict[AttemptState, frozenset[AttemptState]] = {
    A.RUNNING: frozenset({A.ADOPTED, A.FAILED, A.LOST}),
    A.ADOPTED: frozenset(),
    A.FAILED: frozenset(),
    A.LOST: frozenset(),
}


class PublicationState(StrEnum):
    """State of a publication or rollback; recovery settles ``intended`` by looking at the table."""

    INTENDED = "intended"
    COMMITTED = "committed"
    ABANDONED = "abandoned"


P = PublicationState
PUBLICATION_MOVES: dict[PublicationState, frozenset[PublicationState]] = {
    P.INTENDED: frozenset({P.COMMITTED, P.ABANDONED}),
    P.COMMITTED: frozenset(),
    P.ABANDONED: frozenset(),
}
