"""Which entries of the audit log are moments of lineage: a run starts or ends, a chunk, a verdict, a rollback. Pure.

OpenLineage wants one START and one end for each run. A correction that continues after it failed is therefore another
run of the same job, as the next try of a task is with schedulers; ``attempt`` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from errata.model.audit import AuditEntry
from errata.model.run import RunState

S = RunState
_GOING = frozenset({S.RUNNING, S.PAUSED, S.STAGED, S.NEEDS_ACCEPTANCE, S.VALIDATED, S.PUBLISHING, S.PART_PUBLISHED})
"""Between START and the end."""


class EventKind(StrEnum):
    """Kinds of events, as OpenLineage names them."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    ABORT = "ABORT"


class Subject(StrEnum):
    """What an event is about; each is a job of its own."""

    CORRECTION = "correction"
    CHUNK = "chunk"
    GATE = "gate"
    ROLLBACK = "rollback"


_ENDS = {
    S.PUBLISHED: EventKind.COMPLETE,
    S.SUPERSEDED: EventKind.COMPLETE,
    S.ATTESTED: EventKind.COMPLETE,
    S.DIFFERS: EventKind.COMPLETE,
    S.FAILED: EventKind.FAIL,
    S.REJECTED: EventKind.FAIL,
}
_CHUNK_ENDS = {
    "chunk.adopted": EventKind.COMPLETE,
    "chunk.failed": EventKind.FAIL,
    "chunk.quarantined": EventKind.FAIL,
}
_ROLLBACKS = {
    "rollback.intended": EventKind.START,
    "rollback.committed": EventKind.COMPLETE,
    "rollback.abandoned": EventKind.ABORT,
}
_VERDICT = "checks_digest"
"""Only entries of verdicts have this key; such an entry may also move the run."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a run that lineage tells about."""

    seq: int  # of the audit entry
    at: str
    kind: EventKind
    subject: Subject
    attempt: int  # of the correction, from 1
    state: str = ""  # the state that the run moved to
    body: Mapping[str, Any] | None = None


def find_run_event(before: str | None, after: str) -> EventKind | None:
    """The event of a run that moves from one state to another; None if it just continues.

    >>> find_run_event("approved", "running").value, find_run_event("publishing", "published").value
    ('START', 'COMPLETE')
    >>> find_run_event("approved", "cancelled") is None, find_run_event("failed", "running").value
    (True, 'START')
    """
    was_going, goes = before in _GOING, after in _GOING
    if was_going == goes:
        return None
    return EventKind.START if goes else _ENDS.get(RunState(after), EventKind.ABORT)


def has_moment(entry: AuditEntry) -> bool:
    """Whether an entry is one that lineage tells about."""
    return next(_read_entry(entry, 1), None) is not None


def is_chunk_end(entry: AuditEntry) -> bool:
    """Whether an entry is the end of a chunk; there may be thousands, so they are sent together."""
    return entry.action in _CHUNK_ENDS


def list_moments(entries: Iterable[AuditEntry], after: int, until: int) -> tuple[Moment, ...]:
    """Moments of a run from behind entry ``after`` to entry ``until``; ``entries`` are all of the run, oldest first."""
    found, attempt = list[Moment](), 0
    for entry in entries:
        if entry.seq > until:
            break
        if _find_move_event(entry) is EventKind.START:
            attempt += 1
        if entry.seq > after:
            found += _read_entry(entry, max(1, attempt))
    return tuple(found)


def _find_move_event(entry: AuditEntry) -> EventKind | None:
    move = entry.body.get("move")
    return find_run_event(move["from"], move["to"]) if isinstance(move, Mapping) else None


def _read_entry(entry: AuditEntry, attempt: int) -> Iterator[Moment]:
    kind = _find_move_event(entry)
    if entry.action in _CHUNK_ENDS:
        yield _build(entry, _CHUNK_ENDS[entry.action], Subject.CHUNK, attempt)
    if _VERDICT in entry.body:
        passed = EventKind.COMPLETE if entry.body.get("passed") else EventKind.FAIL
        yield _build(entry, passed, Subject.GATE, attempt)
    if entry.action in _ROLLBACKS:
        yield _build(entry, _ROLLBACKS[entry.action], Subject.ROLLBACK, attempt)
    if kind is not None:
        yield _build(entry, kind, Subject.CORRECTION, attempt)
    elif entry.action == "publish.committed":
        yield _build(entry, EventKind.RUNNING, Subject.CORRECTION, attempt)


def _build(entry: AuditEntry, kind: EventKind, subject: Subject, attempt: int) -> Moment:
    move = entry.body.get("move")
    state = str(move["to"]) if isinstance(move, Mapping) else ""
    return Moment(entry.seq, entry.at, kind, subject, attempt, state, entry.body)
