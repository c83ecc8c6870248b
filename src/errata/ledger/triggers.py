"""The rules that the database itself enforces, whoever writes to it. Pure.

Moves follow the tables of :mod:`errata.model.run`, which seed ``transition``. Every change of a run must carry the
newest audit entry, written for this run and naming this very move, so a change without an entry cannot be committed.
Rows that are evidence are never changed, removed or replaced. Triggers are code and not data: each migration drops
and recreates all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from errata.ledger.records import CandidateState
from errata.ledger.schema import metadata
from errata.model.run import ATTEMPT_MOVES, CHUNK_MOVES, PUBLICATION_MOVES, RUN_MOVES

__all__ = ["APPEND_ONLY", "CANDIDATE_MOVES", "KEPT", "REMEASURED", "sqlite_triggers", "transitions"]

APPEND_ONLY = (
    "acceptance", "approval", "audit", "fact", "guard", "manifest", "meta", "part", "publication_detail", "transition",
    "verdict", "warning_acceptance",
)  # fmt: skip
KEPT = ("attempt", "audit_head", "candidate", "chunk", "hazard", "publication", "run")
"""Changed by their own rules, never removed."""
REMEASURED = ("measurement",)
"""Removed and added as a whole until there is a verdict, never changed."""

CANDIDATE_MOVES = {
    CandidateState.INTENDED: frozenset({CandidateState.MADE, CandidateState.ABANDONED}),
    CandidateState.MADE: frozenset({CandidateState.ABANDONED}),
    CandidateState.ABANDONED: frozenset[CandidateState](),
}


def transitions() -> Iterator[tuple[str, str, str]]:
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


def sqlite_triggers() -> dict[str, str]:
    """Trigger name → its CREATE statement."""
    made: dict[str, str] = {}
    for table in (*APPEND_ONLY, *REMEASURED):
        made[f"{table}_no_update"] = _no(table, "update")
    for table in (*APPEND_ONLY, *KEPT):
        made[f"{table}_no_delete"] = _no(table, "delete")
    for table in (*APPEND_ONLY, *KEPT, *REMEASURED):
        # REPLACE deletes the old row without firing its delete trigger.
        keys = " AND ".join(f"{column.name} = NEW.{column.name}" for column in metadata.tables[table].primary_key)
        made[f"{table}_no_replace"] = _NO_REPLACE.replace("$table", table).replace("$keys", keys)
    for table, fixed in _FIXED.items():
        changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in fixed.split())
        made[f"{table}_fixed"] = _FIXED_TEXT.replace("$table", table).replace("$changed", changed)
    for table in ("chunk", "attempt", "publication", "candidate"):
        made[f"{table}_move"] = _MOVE.replace("$table", table)
    for text in filter(None, (piece.strip() for piece in _OWN_RULES.split(";;"))):
        made[text.split()[2]] = text
    return made


def _no(table: str, verb: str) -> str:
    return _NO.replace("$verb", verb).replace("$table", table)


_NO = """\
CREATE TRIGGER $table_no_$verb BEFORE $verb ON $table
BEGIN SELECT RAISE(ABORT, '$table: $verb refused, these rows are kept as written'); END"""

_NO_REPLACE = """\
CREATE TRIGGER $table_no_replace BEFORE INSERT ON $table WHEN EXISTS (SELECT 1 FROM $table WHERE $keys)
BEGIN SELECT RAISE(ABORT, '$table: the row exists, it is never replaced'); END"""

_FIXED = {
    "run": "run_id manifest_digest product table_name partitions planned_by reason planned_at",
    "chunk": "run_id chunk_id position partitions rows bytes wave origin",
    "attempt": "run_id chunk_id fence owner host pid process_started started_at",
    "candidate": "run_id n branch digest at",
    "publication": "pub_id run_id n kind table_name partitions person reason undo_branch release previous_run_state "
    "intended_at",
    "hazard": "pub_id table_name snapshot_id opened_at",
}

_FIXED_TEXT = """\
CREATE TRIGGER $table_fixed BEFORE UPDATE ON $table WHEN $changed
BEGIN SELECT RAISE(ABORT, '$table: these columns are fixed when the row is written'); END"""

_MOVE = """\
CREATE TRIGGER $table_move BEFORE UPDATE ON $table
WHEN NEW.state <> OLD.state AND NOT EXISTS (SELECT 1 FROM transition
  WHERE kind = '$table' AND from_state = OLD.state AND to_state = NEW.state)
BEGIN SELECT RAISE(ABORT, '$table: this move is not allowed'); END"""

_OWN_RULES = """
CREATE TRIGGER audit_chain BEFORE INSERT ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_head WHERE NEW.seq = seq + 1 AND NEW.previous = hash)
BEGIN SELECT RAISE(ABORT, 'audit: the entry does not continue the chain'); END
;;
CREATE TRIGGER audit_head_follows AFTER INSERT ON audit
BEGIN UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash; END
;;
CREATE TRIGGER audit_head_rule BEFORE UPDATE ON audit_head
WHEN NEW.one <> 1 OR NEW.seq <> OLD.seq + 1
  OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq AND hash = NEW.hash AND previous = OLD.hash)
BEGIN SELECT RAISE(ABORT, 'audit_head: follows the chain, one entry at a time'); END
;;
CREATE TRIGGER run_start BEFORE INSERT ON run
WHEN NEW.state <> 'planned' OR NOT EXISTS (SELECT 1 FROM audit
  WHERE seq = NEW.audit_seq AND seq = (SELECT seq FROM audit_head) AND run_id = NEW.run_id
  AND json_extract(body, '$.move.from') IS NULL AND json_extract(body, '$.move.to') = 'planned')
BEGIN SELECT RAISE(ABORT, 'run: a run starts as planned, with its audit entry'); END
;;
CREATE TRIGGER run_move BEFORE UPDATE ON run
WHEN NOT EXISTS (SELECT 1 FROM transition
  WHERE kind = 'run' AND from_state = OLD.state AND to_state = NEW.state)
BEGIN SELECT RAISE(ABORT, 'run: this move is not allowed'); END
;;
CREATE TRIGGER run_audited BEFORE UPDATE ON run
WHEN NOT EXISTS (SELECT 1 FROM audit
  WHERE seq = NEW.audit_seq AND seq > OLD.audit_seq AND seq = (SELECT seq FROM audit_head) AND run_id = NEW.run_id
  AND json_extract(body, '$.move.from') = OLD.state AND json_extract(body, '$.move.to') = NEW.state)
BEGIN SELECT RAISE(ABORT, 'run: a move needs the audit entry that names it'); END
;;
CREATE TRIGGER approval_digest BEFORE INSERT ON approval
WHEN NOT EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND manifest_digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'approval: names another digest than the run'); END
;;
CREATE TRIGGER chunk_start BEFORE INSERT ON chunk WHEN NEW.state <> 'pending' OR NEW.fence <> 0
BEGIN SELECT RAISE(ABORT, 'chunk: a chunk starts as pending, with fence 0'); END
;;
CREATE TRIGGER chunk_fence BEFORE UPDATE ON chunk
WHEN NEW.fence < OLD.fence OR (NEW.state = 'running' AND NEW.fence = OLD.fence)
BEGIN SELECT RAISE(ABORT, 'chunk: the fence only grows, and every claim grows it'); END
;;
CREATE TRIGGER chunk_done BEFORE UPDATE ON chunk
WHEN OLD.state = 'done' OR (NEW.state = 'done' AND NOT EXISTS (SELECT 1 FROM attempt
  WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'adopted'))
BEGIN SELECT RAISE(ABORT, 'chunk: done means one adopted attempt, for good'); END
;;
CREATE TRIGGER attempt_start BEFORE INSERT ON attempt
WHEN NEW.state <> 'running' OR NOT EXISTS (SELECT 1 FROM chunk
  WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'running')
BEGIN SELECT RAISE(ABORT, 'attempt: an attempt starts as running, with the fence of its chunk'); END
;;
CREATE TRIGGER attempt_over BEFORE UPDATE ON attempt WHEN OLD.state <> 'running'
BEGIN SELECT RAISE(ABORT, 'attempt: it is over'); END
;;
CREATE TRIGGER attempt_stale BEFORE UPDATE ON attempt
WHEN NEW.state IN ('running', 'adopted') AND NOT EXISTS (SELECT 1 FROM chunk
  WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'running')
BEGIN SELECT RAISE(ABORT, 'attempt: its fence is stale'); END
;;
CREATE TRIGGER candidate_start BEFORE INSERT ON candidate WHEN NEW.state <> 'intended'
BEGIN SELECT RAISE(ABORT, 'candidate: intent comes first'); END
;;
CREATE TRIGGER measurement_judged_delete BEFORE DELETE ON measurement
WHEN EXISTS (SELECT 1 FROM verdict WHERE run_id = OLD.run_id AND candidate_n = OLD.candidate_n)
BEGIN SELECT RAISE(ABORT, 'measurement: its candidate is judged, the numbers stay'); END
;;
CREATE TRIGGER measurement_judged_insert BEFORE INSERT ON measurement
WHEN EXISTS (SELECT 1 FROM verdict WHERE run_id = NEW.run_id AND candidate_n = NEW.candidate_n)
BEGIN SELECT RAISE(ABORT, 'measurement: its candidate is judged, the numbers stay'); END
;;
CREATE TRIGGER publication_start BEFORE INSERT ON publication WHEN NEW.state <> 'intended'
BEGIN SELECT RAISE(ABORT, 'publication: intent comes first'); END
;;
CREATE TRIGGER publication_settled BEFORE UPDATE ON publication
WHEN OLD.state <> 'intended' OR (NEW.state = 'committed' AND NEW.result_snapshot_id IS NULL)
BEGIN SELECT RAISE(ABORT, 'publication: settled once, committed with a snapshot'); END
;;
CREATE TRIGGER scope_lock_held BEFORE DELETE ON scope_lock
WHEN EXISTS (SELECT 1 FROM publication WHERE pub_id = OLD.pub_id AND state = 'intended')
BEGIN SELECT RAISE(ABORT, 'scope_lock: its publication is open'); END
;;
CREATE TRIGGER scope_lock_taken BEFORE INSERT ON scope_lock
WHEN EXISTS (SELECT 1 FROM scope_lock WHERE table_name = NEW.table_name AND partition = NEW.partition)
BEGIN SELECT RAISE(ABORT, 'scope_lock: the partition is taken'); END
;;
CREATE TRIGGER scope_lock_fixed BEFORE UPDATE ON scope_lock
WHEN NEW.pub_id <> OLD.pub_id OR NEW.table_name <> OLD.table_name OR NEW.partition <> OLD.partition
BEGIN SELECT RAISE(ABORT, 'scope_lock: only the lease changes'); END
;;
CREATE TRIGGER acceptance_committed BEFORE INSERT ON acceptance
WHEN NOT EXISTS (SELECT 1 FROM publication WHERE pub_id = NEW.pub_id AND state = 'committed')
BEGIN SELECT RAISE(ABORT, 'acceptance: its publication is not committed'); END
;;
CREATE TRIGGER hazard_closed BEFORE UPDATE ON hazard WHEN OLD.closed_at IS NOT NULL OR NEW.closed_at IS NULL
BEGIN SELECT RAISE(ABORT, 'hazard: closed once'); END
"""
