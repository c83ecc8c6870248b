"""Constraints that the database enforces against every writer, as data. Pure.

Allowed state changes come from :mod:`errata.model.run` (those of candidates from this module) and seed the table
``transition``. Every change of a run must carry the newest audit entry, written for this run and naming this very
change of state, so a change without an entry cannot be committed. Rows that are evidence are never changed, removed or
replaced. A constraint states what is refused; :mod:`errata.ledger.schema.trigger_sql` turns it into SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from errata.ledger.records import CandidateState
from errata.model.run import ATTEMPT_MOVES, CHUNK_MOVES, FINAL, PUBLICATION_MOVES, RUN_MOVES

APPEND_ONLY = (
    "acceptance", "approval", "audit", "fact", "guard", "manifest", "meta", "part", "publication_detail", "released",
    "transition", "verdict", "warning_acceptance",
)  # fmt: skip
NEVER_DELETED = (
    "attempt",
    "audit_head",
    "candidate",
    "chunk",
    "frozen_scope",
    "hazard",
    "publication",
    "run",
    "subject",
)
"""Rows that may change within other constraints, but are never removed."""
REMEASURED = ("measurement",)
"""Rows that are deleted and inserted as a whole until there is a verdict, never updated."""

CANDIDATE_MOVES = {
    CandidateState.INTENDED: frozenset({CandidateState.MADE, CandidateState.ABANDONED}),
    CandidateState.MADE: frozenset({CandidateState.ABANDONED}),
    CandidateState.ABANDONED: frozenset[CandidateState](),
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """Refuse an insert, update or delete on ``table`` when ``refused_when`` is true (always, when it is empty).

    ``refused_when`` is SQL for both databases, except for three placeholders: ``$differs`` (unequal, also where one
    side is null), ``$from`` and ``$to`` (of the move in an audit ``body``).
    """

    name: str
    table: str
    on: Literal["insert", "update", "delete"]
    refused_when: str
    why: str

    @property
    def message(self) -> str:
        return f"{self.table}: {self.why}"


def iterate_transitions() -> Iterator[tuple[str, str, str]]:
    """Every allowed move as (kind, from, to)."""
    tables: dict[str, Mapping[StrEnum, frozenset[StrEnum]]] = {
        "run": dict(RUN_MOVES.items()),
        "chunk": dict(CHUNK_MOVES.items()),
        "attempt": dict(ATTEMPT_MOVES.items()),
        "publication": dict(PUBLICATION_MOVES.items()),
        "candidate": dict(CANDIDATE_MOVES.items()),
    }
    for kind, moves in tables.items():
        for state, targets in moves.items():
            yield from ((kind, state.value, target.value) for target in sorted(targets))


def build_constraints() -> tuple[Constraint, ...]:
    """All constraints; names are unique."""
    return (*_iterate_append_only(), *_iterate_fixed_columns(), *_iterate_moves(), *_TABLE_CONSTRAINTS)


def _iterate_append_only() -> Iterator[Constraint]:
    for table in (*APPEND_ONLY, *REMEASURED):
        yield Constraint(f"{table}_no_update", table, "update", "", "update refused, these rows are kept as written")
    for table in (*APPEND_ONLY, *NEVER_DELETED):
        yield Constraint(f"{table}_no_delete", table, "delete", "", "delete refused, these rows are kept as written")


_FIXED_COLUMNS = {
    "run": "run_id manifest_digest product table_name partitions planned_by reason planned_at supersedes",
    "chunk": "run_id chunk_id position partitions rows bytes wave origin",
    "attempt": "run_id chunk_id fence owner host pid process_started started_at",
    "candidate": "run_id n branch digest at",
    "publication": "pub_id run_id n kind table_name partitions person reason undo_branch release previous_run_state "
    "intended_at",
    "hazard": "pub_id table_name snapshot_id opened_at",
    "frozen_scope": "run_id table_name opened_at most_until",
    "live_write": "token table_name partitions owner started_at",
}


def _iterate_fixed_columns() -> Iterator[Constraint]:
    for table, columns in _FIXED_COLUMNS.items():
        changed = " OR ".join(f"NEW.{name} $differs OLD.{name}" for name in columns.split())
        yield Constraint(f"{table}_fixed", table, "update", changed, "these columns are fixed when the row is written")


def _iterate_moves() -> Iterator[Constraint]:
    for table in ("chunk", "attempt", "publication", "candidate"):
        unknown = f"NEW.state <> OLD.state AND {_unknown_move_sql(table)}"
        yield Constraint(f"{table}_move", table, "update", unknown, "this move is not allowed")


def _unknown_move_sql(kind: str) -> str:
    known = f"kind = '{kind}' AND from_state = OLD.state AND to_state = NEW.state"
    return f"NOT EXISTS (SELECT 1 FROM transition WHERE {known})"  # noqa: S608


_NEWEST = "SELECT 1 FROM audit WHERE seq = NEW.audit_seq AND seq = (SELECT seq FROM audit_head) AND run_id = NEW.run_id"
_ENDED = ", ".join(f"'{state.value}'" for state in sorted(FINAL))
_ITS_CHUNK = (
    "FROM chunk WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'running'"
)

_TABLE_CONSTRAINTS = (
    Constraint(
        "audit_chain",
        "audit",
        "insert",
        "NOT EXISTS (SELECT 1 FROM audit_head WHERE NEW.seq = seq + 1 AND NEW.previous = hash)",
        "the entry does not continue the chain",
    ),
    Constraint(
        "audit_head_rule",
        "audit_head",
        "update",
        "NEW.one <> 1 OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS"
        " (SELECT 1 FROM audit WHERE seq = NEW.seq AND hash = NEW.hash AND previous = OLD.hash)",
        "follows the chain, one entry at a time",
    ),
    Constraint(
        "run_start",
        "run",
        "insert",
        f"NEW.state <> 'planned' OR NOT EXISTS ({_NEWEST} AND $from IS NULL AND $to = 'planned')",
        "a run starts as planned, with its audit entry",
    ),
    # every update of a run counts as a move, also one that keeps its state
    Constraint("run_move", "run", "update", _unknown_move_sql("run"), "this move is not allowed"),
    Constraint(
        "run_audited",
        "run",
        "update",
        f"NOT EXISTS ({_NEWEST} AND seq > OLD.audit_seq AND $from = OLD.state AND $to = NEW.state)",
        "a move needs the audit entry that names it",
    ),
    Constraint(
        "approval_digest",
        "approval",
        "insert",
        "NOT EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND manifest_digest = NEW.digest)",
        "names another digest than the run",
    ),
    Constraint(
        "released_state",
        "released",
        "insert",
        "NOT EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND state IN ('validated', 'part_published')) AND ("  # noqa: S608
        "NOT EXISTS (SELECT 1 FROM verdict WHERE run_id = NEW.run_id AND candidate_n = NEW.candidate_n AND passed"
        " AND id = (SELECT MAX(id) FROM verdict WHERE run_id = NEW.run_id AND candidate_n = NEW.candidate_n)) OR EXISTS"
        f" (SELECT 1 FROM run WHERE run_id = NEW.run_id AND state IN ({_ENDED})))",
        "only a candidate that passed its gate is released, while its run has not ended",
    ),
    Constraint("released_audited", "released", "insert", f"NOT EXISTS ({_NEWEST})", "a release needs its audit entry"),
    Constraint(
        "chunk_start",
        "chunk",
        "insert",
        "NEW.state <> 'pending' OR NEW.fence <> 0",
        "a chunk starts as pending, with fence 0",
    ),
    Constraint(
        "chunk_fence",
        "chunk",
        "update",
        "NEW.fence < OLD.fence OR (NEW.state = 'running' AND NEW.fence = OLD.fence)",
        "the fence only grows, and every claim grows it",
    ),
    Constraint(
        "chunk_done",
        "chunk",
        "update",
        "OLD.state IN ('done', 'replaced') OR (NEW.state = 'done' AND NOT EXISTS (SELECT 1 FROM attempt"
        " WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'adopted'))",
        "done means one adopted attempt, for good",
    ),
    Constraint(
        "attempt_start",
        "attempt",
        "insert",
        f"NEW.state <> 'running' OR NOT EXISTS (SELECT 1 {_ITS_CHUNK})",
        "an attempt starts as running, with the fence of its chunk",
    ),
    Constraint("attempt_over", "attempt", "update", "OLD.state <> 'running'", "it is over"),
    Constraint(
        "attempt_stale",
        "attempt",
        "update",
        f"NEW.state IN ('running', 'adopted') AND NOT EXISTS (SELECT 1 {_ITS_CHUNK})",
        "its fence is stale",
    ),
    Constraint("candidate_start", "candidate", "insert", "NEW.state <> 'intended'", "intent comes first"),
    Constraint(
        "measurement_judged_delete",
        "measurement",
        "delete",
        "EXISTS (SELECT 1 FROM verdict WHERE run_id = OLD.run_id AND candidate_n = OLD.candidate_n)",
        "its candidate is judged, the numbers stay",
    ),
    Constraint(
        "measurement_judged_insert",
        "measurement",
        "insert",
        "EXISTS (SELECT 1 FROM verdict WHERE run_id = NEW.run_id AND candidate_n = NEW.candidate_n)",
        "its candidate is judged, the numbers stay",
    ),
    Constraint("publication_start", "publication", "insert", "NEW.state <> 'intended'", "intent comes first"),
    Constraint(
        "publication_settled",
        "publication",
        "update",
        "OLD.state <> 'intended' OR (NEW.state = 'committed' AND NEW.result_snapshot_id IS NULL)",
        "settled once, committed with a snapshot",
    ),
    Constraint(
        "scope_lock_held",
        "scope_lock",
        "delete",
        "EXISTS (SELECT 1 FROM publication WHERE pub_id = OLD.pub_id AND state = 'intended')",
        "its publication is open",
    ),
    Constraint(
        "scope_lock_taken",
        "scope_lock",
        "insert",
        "EXISTS (SELECT 1 FROM scope_lock WHERE table_name = NEW.table_name AND partition = NEW.partition)",
        "the partition is taken",
    ),
    Constraint(
        "scope_lock_fixed",
        "scope_lock",
        "update",
        "NEW.pub_id <> OLD.pub_id OR NEW.table_name <> OLD.table_name OR NEW.partition <> OLD.partition",
        "only the lease changes",
    ),
    Constraint(
        "acceptance_committed",
        "acceptance",
        "insert",
        "NOT EXISTS (SELECT 1 FROM publication WHERE pub_id = NEW.pub_id AND state = 'committed')",
        "its publication is not committed",
    ),
    Constraint(
        "subject_taken",
        "subject",
        "insert",
        "NEW.handle IS NULL OR NEW.secret IS NULL OR EXISTS (SELECT 1 FROM subject WHERE handle = NEW.handle)",
        "a name has one pseudonym",
    ),
    Constraint(
        "subject_erased",
        "subject",
        "update",
        "NEW.pseudonym <> OLD.pseudonym OR NEW.at <> OLD.at OR OLD.handle IS NULL OR NEW.handle IS NOT NULL OR"
        " NEW.secret IS NOT NULL OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.audit_seq AND"
        " seq = (SELECT seq FROM audit_head) AND action = 'person.erased')",
        "a person is erased as a whole, with the audit entry of it",
    ),
    Constraint(
        "frozen_scope_start",
        "frozen_scope",
        "insert",
        "NEW.granted_at IS NOT NULL OR NEW.lease_until > NEW.most_until OR"
        " EXISTS (SELECT 1 FROM frozen_scope WHERE run_id = NEW.run_id)",
        "a run has one, which is granted later",
    ),
    Constraint(
        "frozen_scope_bounded",
        "frozen_scope",
        "update",
        "NEW.lease_until > OLD.most_until",
        "a freeze does not outlast what its plan allows",
    ),
    Constraint(
        "hazard_closed", "hazard", "update", "OLD.closed_at IS NOT NULL OR NEW.closed_at IS NULL", "closed once"
    ),
)
