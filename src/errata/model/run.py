"""States of runs, chunks, attempts and publications, and the transitions the ledger allows. Pure.

The ledger's triggers are built from the same table, so direct writes to the database obey it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """State of a run."""

    PLANNED = "planned"
    APPROVED = "approved"
    DECLINED = "declined"
    RUNNING = "running"
    PAUSED = "paused"
    STAGED = "staged"
    REJECTED = "rejected"
    NEEDS_ACCEPTANCE = "needs_acceptance"
    VALIDATED = "validated"
    PUBLISHING = "publishing"
    PART_PUBLISHED = "part_published"
    PUBLISHED = "published"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTESTED = "attested"
    DIFFERS = "differs"


S = RunState
_STOP = frozenset({S.CANCELLED, S.EXPIRED})
JUDGED = frozenset({S.VALIDATED, S.REJECTED, S.NEEDS_ACCEPTANCE})
"""States that a verdict leads to."""
ANSWERED = frozenset({S.ATTESTED, S.DIFFERS})
"""How a run ends that changes nothing: main is as it should be, or it is not."""

RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    # straight to running: only a run that changes nothing, which the ledger's triggers make sure of
    S.PLANNED: frozenset({S.APPROVED, S.DECLINED, S.RUNNING}) | _STOP,
    S.APPROVED: frozenset({S.RUNNING}) | _STOP,
    # a canary that fails rejects the run before the rest is computed; waves may be judged and out before the last chunk
    S.RUNNING: frozenset({S.PAUSED, S.STAGED, S.FAILED, S.PUBLISHING, S.PART_PUBLISHED}) | JUDGED | _STOP,
    S.PAUSED: frozenset({S.RUNNING, S.STAGED, S.PART_PUBLISHED}) | JUDGED | _STOP,
    S.FAILED: frozenset({S.RUNNING}) | _STOP,
    # back to running: partitions that live jobs wrote meanwhile are recomputed
    S.STAGED: JUDGED | ANSWERED | {S.RUNNING} | _STOP,
    # back to running: someone was erased whose rows were used
    S.REJECTED: JUDGED | {S.RUNNING} | _STOP,
    S.NEEDS_ACCEPTANCE: JUDGED | {S.RUNNING} | _STOP,
    S.VALIDATED: frozenset({S.PUBLISHING, S.REJECTED, S.NEEDS_ACCEPTANCE, S.RUNNING}) | _STOP,
    # another wave may be judged, or computed again, while one is published
    S.PUBLISHING: frozenset({S.PUBLISHED, S.PART_PUBLISHED, S.STAGED, S.RUNNING}) | JUDGED,
    # a wave that is rolled back leaves the run as far as its next wave is; cancel ends the waves that are not out
    S.PART_PUBLISHED: JUDGED | {S.PUBLISHING, S.RUNNING, S.STAGED, S.ROLLED_BACK, S.SUPERSEDED} | _STOP,
    S.PUBLISHED: frozenset({S.ROLLED_BACK, S.SUPERSEDED}),
    # a later run was rolled back, so what this run published is current again
    S.SUPERSEDED: frozenset({S.PUBLISHED, S.PART_PUBLISHED, S.ROLLED_BACK}),
    S.ROLLED_BACK: frozenset(),
    S.DECLINED: frozenset(),
    # waves that were out before stay, and can still be rolled back or superseded
    S.CANCELLED: frozenset({S.ROLLED_BACK, S.SUPERSEDED}),
    S.EXPIRED: frozenset({S.ROLLED_BACK, S.SUPERSEDED}),
    S.ATTESTED: frozenset(),
    S.DIFFERS: frozenset(),
}

FINAL = frozenset({S.DECLINED, S.CANCELLED, S.EXPIRED, S.ROLLED_BACK, S.SUPERSEDED, S.PUBLISHED}) | ANSWERED
"""The run has ended and no longer reserves its partitions."""

ACTIVE = frozenset(RunState) - FINAL

WITHOUT_RESULT = frozenset({S.DECLINED, S.CANCELLED, S.EXPIRED})
"""The run was given up; what it was to supersede is as if it had not been planned."""

FREEZE_END_STATES = FINAL | {S.REJECTED, S.NEEDS_ACCEPTANCE}
"""States in which a freeze ends and live jobs may write again: a person decides, and may take days."""


def find_judged_state(checks: Iterable[Mapping[str, Any]], *, passed: bool, changes_table: bool = True) -> RunState:
    """The state that a verdict leads to: a block rejects, a warning that nobody accepted waits for a person.

    A run that changes nothing is over with its verdict, and differs at the first finding, warnings included.
    """
    if not changes_table:
        return S.ATTESTED if passed else S.DIFFERS
    if passed:
        return S.VALIDATED
    levels = {check.get("level") for check in checks}
    return S.NEEDS_ACCEPTANCE if "warn" in levels and "block" not in levels else S.REJECTED


def is_clean(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the gate found nothing: no warning, accepted or not."""
    return all(check.get("level") == "ok" for check in checks)


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


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The chunks of a run by state."""

    total: int = 0
    done: int = 0
    running: int = 0
    failed: int = 0
    quarantined: int = 0
    pending: int = 0
