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
from errata.model.consumer.hold import HOLD_MOVES
from errata.model.consumer.outbox import ITEM_MOVES
from errata.model.kind import CHECKING_KINDS
from errata.model.recording.recorded_file import FILE_MOVES
from errata.model.run import ATTEMPT_MOVES, CHUNK_MOVES, FINAL, PUBLICATION_MOVES, RUN_MOVES

APPEND_ONLY = (
    "acceptance", "approval", "audit", "campaign_approval", "campaign_step", "fact", "guard", "manifest",
    "member_approval", "meta", "part", "publication_detail", "released", "standing", "standing_decision",
    "standing_use", "transition", "verdict", "warning_acceptance",
)  # fmt: skip
NEVER_DELETED = (
    "attempt",
    "audit_head",
    "campaign",
    "candidate",
    "chunk",
    "frozen_scope",
    "hazard",
    "outbox_item",
    "hold",
    "publication",
    "recorded_file",
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

    ``refused_when`` is SQL for both databases, except for five placeholders: ``$differs`` (unequal, also where one
    side is null), ``$from`` and ``$to`` (of the move in an audit ``body``), and ``$kind`` and ``$campaign`` (of the
    run, in the sealed ``content`` of a manifest).
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
        "outbox_item": dict(ITEM_MOVES.items()),
        "hold": dict(HOLD_MOVES.items()),
        "recorded_file": dict(FILE_MOVES.items()),
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
    "run": "run_id manifest_digest product table_name partitions planned_by reason planned_at supersedes kind",
    "chunk": "run_id chunk_id position partitions rows bytes wave origin",
    "attempt": "run_id chunk_id fence owner host pid process_started started_at",
    "candidate": "run_id n branch digest at",
    "publication": "pub_id run_id n kind table_name partitions person reason undo_branch release previous_run_state "
    "intended_at",
    "hazard": "pub_id table_name snapshot_id opened_at",
    "hold": "hold_id run_id n wave consumer table_name partitions snapshot_id acknowledge on_timeout opened_at "
    "notice_until until",
    "frozen_scope": "run_id wave table_name opened_at most_until",
    "live_write": "token table_name partitions owner started_at",
    "campaign": "campaign_id digest product planned_by reason planned_at valid_until supersedes",
    "recorded_file": "file_id source format name path bytes sha256 identity rows bad_rows range_start range_end "
    "columns fingerprint produced_at seen_at attempt manifest_id twin supersedes place content content_bytes "
    "content_sha256",
    "outbox_item": "item_id key queue effect event consumer run_id pub_id table_name partitions payload at",
}


def _iterate_fixed_columns() -> Iterator[Constraint]:
    for table, columns in _FIXED_COLUMNS.items():
        changed = " OR ".join(f"NEW.{name} $differs OLD.{name}" for name in columns.split())
        yield Constraint(f"{table}_fixed", table, "update", changed, "these columns are fixed when the row is written")


def _iterate_moves() -> Iterator[Constraint]:
    for table in ("chunk", "attempt", "publication", "candidate", "outbox_item", "hold"):
        unknown = f"NEW.state <> OLD.state AND {_unknown_move_sql(table)}"
        yield Constraint(f"{table}_move", table, "update", unknown, "this move is not allowed")


def _unknown_move_sql(kind: str, column: str = "state") -> str:
    known = f"kind = '{kind}' AND from_state = OLD.{column} AND to_state = NEW.{column}"
    return f"NOT EXISTS (SELECT 1 FROM transition WHERE {known})"  # noqa: S608


_NEWEST = "SELECT 1 FROM audit WHERE seq = NEW.audit_seq AND seq = (SELECT seq FROM audit_head) AND run_id = NEW.run_id"
_NEWEST_OF_ALL = "SELECT 1 FROM audit WHERE seq = NEW.audit_seq AND seq = (SELECT seq FROM audit_head)"
_ENDED = ", ".join(f"'{state.value}'" for state in sorted(FINAL))
_ITS_CHUNK = (
    "FROM chunk WHERE run_id = NEW.run_id AND chunk_id = NEW.chunk_id AND fence = NEW.fence AND state = 'running'"
)

_CHECKING = f"IN ({', '.join(repr(name) for name in CHECKING_KINDS)})"
_RUN_CHECKS = f"COALESCE(NEW.kind, '') {_CHECKING}"

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
    # the kind decides what the run may do, so it is the sealed one and never changes
    Constraint(
        "run_kind",
        "run",
        "insert",
        "NEW.kind $differs (SELECT $kind FROM manifest WHERE digest = NEW.manifest_digest)",
        "a run has the kind that its manifest says",
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
        "run_unapproved",
        "run",
        "update",
        f"OLD.state = 'planned' AND NEW.state = 'running' AND NOT ({_RUN_CHECKS})",
        "a run that may change its table starts with an approval",
    ),
    Constraint(
        "run_checks_only",
        "run",
        "update",
        # every way to a publication begins with one of these moves
        "OLD.state IN ('running', 'staged') AND NEW.state IN ('validated', 'needs_acceptance', 'rejected')"
        f" AND {_RUN_CHECKS}",
        "a run of this kind changes nothing, so it is never released or published",
    ),
    Constraint(
        "run_answers",
        "run",
        "update",
        f"OLD.state = 'staged' AND NEW.state IN ('attested', 'differs') AND NOT ({_RUN_CHECKS})",
        "only a run that changes nothing ends with its verdict",
    ),
    Constraint(
        "approval_digest",
        "approval",
        "insert",
        "NOT EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND manifest_digest = NEW.digest)",
        "names another digest than the run",
    ),
    Constraint(
        "standing_use_run",
        "standing_use",
        "insert",
        "NOT EXISTS (SELECT 1 FROM run JOIN standing ON standing.product = run.product"
        " WHERE run.run_id = NEW.run_id AND run.state = 'planned' AND standing.digest = NEW.digest"
        " AND NEW.product = run.product)",
        "a use belongs to a run of the product that was planned in the same transaction",
    ),
    Constraint(
        "approval_of_member",
        "approval",
        "insert",
        "EXISTS (SELECT 1 FROM member_approval WHERE run_id = NEW.run_id)",
        "a member of a campaign is approved with its campaign",
    ),
    Constraint(
        "run_of_campaign",
        "run",
        "update",
        "OLD.state = 'planned' AND NEW.state = 'approved'"
        " AND (SELECT $campaign FROM manifest WHERE digest = NEW.manifest_digest) IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM member_approval WHERE run_id = NEW.run_id AND digest = NEW.manifest_digest)",
        "a member of a campaign is approved with its campaign",
    ),
    Constraint("campaign_start", "campaign", "insert", "NEW.state <> 'open'", "a campaign starts as open"),
    Constraint(
        "campaign_over",
        "campaign",
        "update",
        "OLD.state <> 'open' OR NEW.state = 'open' OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.audit_seq AND"
        " seq = (SELECT seq FROM audit_head) AND run_id = NEW.campaign_id)",
        "it is ended once, with the audit entry of it",
    ),
    Constraint(
        "campaign_approval_digest",
        "campaign_approval",
        "insert",
        "NOT EXISTS (SELECT 1 FROM campaign WHERE campaign_id = NEW.campaign_id AND digest = NEW.digest)",
        "names another digest than the campaign",
    ),
    Constraint(
        "member_approval_digest",
        "member_approval",
        "insert",
        "NOT EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND manifest_digest = NEW.digest AND"
        " product = NEW.product) OR (SELECT $campaign FROM manifest WHERE digest = NEW.digest) $differs"
        " NEW.campaign_digest",
        "names another digest or product than the run",
    ),
    Constraint(
        "member_approval_campaign",
        "member_approval",
        "insert",
        "NOT EXISTS (SELECT 1 FROM campaign WHERE campaign_id = NEW.campaign_id AND digest = NEW.campaign_digest AND"
        " state = 'open')",
        "only an open campaign of this digest approves its members",
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
        "publication_of_check",
        "publication",
        "insert",
        f"EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND kind {_CHECKING})",  # noqa: S608
        "a run of this kind changes nothing, so it is never published",
    ),
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
        " EXISTS (SELECT 1 FROM frozen_scope WHERE run_id = NEW.run_id AND wave = NEW.wave)",
        "a wave has one, which is granted later",
    ),
    Constraint(
        "frozen_scope_bounded",
        "frozen_scope",
        "update",
        "NEW.lease_until > OLD.most_until",
        "a freeze does not outlast what its plan allows",
    ),
    Constraint(
        "outbox_item_start",
        "outbox_item",
        "insert",
        "NEW.fence <> 0 OR NEW.attempts <> 0 OR NEW.state NOT IN ('conditional', 'owed')"
        " OR (NEW.state = 'conditional') <> (NEW.seq IS NULL)"
        f" OR NOT EXISTS ({_NEWEST})",
        "an item starts as conditional or owed, with its audit entry",
    ),
    Constraint(
        "outbox_item_condition",
        "outbox_item",
        "insert",
        "NEW.state = 'conditional' AND NOT EXISTS"
        " (SELECT 1 FROM publication WHERE pub_id = NEW.pub_id AND state = 'intended')",
        "conditional means that its publication is open",
    ),
    Constraint(
        "outbox_item_settled",
        "outbox_item",
        "update",
        "OLD.state = 'conditional' AND NEW.state <> OLD.state AND NOT EXISTS (SELECT 1 FROM publication"
        " WHERE pub_id = NEW.pub_id AND state = CASE NEW.state WHEN 'owed' THEN 'committed' ELSE 'abandoned' END)",
        "it is owed if its publication landed, and void if not",
    ),
    Constraint(
        "outbox_item_audited",
        "outbox_item",
        "update",
        f"NEW.state <> OLD.state AND NOT EXISTS ({_NEWEST} AND seq > OLD.audit_seq)",
        "a move needs its audit entry",
    ),
    Constraint("outbox_item_over", "outbox_item", "update", "OLD.state IN ('void', 'paid', 'waived')", "it is over"),
    Constraint(
        "outbox_item_fence",
        "outbox_item",
        "update",
        "NEW.fence < OLD.fence OR (NEW.owner IS NOT NULL AND NEW.owner $differs OLD.owner AND NEW.fence = OLD.fence)",
        "the fence only grows, and every claim grows it",
    ),
    Constraint(
        "outbox_item_seq",
        "outbox_item",
        "update",
        "(OLD.seq IS NOT NULL AND NEW.seq $differs OLD.seq) OR (NEW.state = 'owed' AND NEW.seq IS NULL)",
        "its place in the order is fixed when it becomes owed",
    ),
    Constraint(
        "hold_start",
        "hold",
        "insert",
        "NEW.state <> 'open' OR NEW.acknowledged_by IS NOT NULL OR NEW.acknowledged_at IS NOT NULL"
        f" OR NEW.skipped_by IS NOT NULL OR NEW.ended_at IS NOT NULL OR NOT EXISTS ({_NEWEST})",
        "a hold starts as open, with its audit entry",
    ),
    Constraint(
        "hold_taken",
        "hold",
        "insert",
        "NEW.consumer <> '' AND EXISTS (SELECT 1 FROM hold WHERE consumer = NEW.consumer"
        " AND state IN ('open', 'acknowledged'))",
        "a consumer has one hold at a time",
    ),
    Constraint(
        "hold_audited",
        "hold",
        "update",
        f"NOT EXISTS ({_NEWEST} AND seq > OLD.audit_seq)",
        "a change needs its audit entry",
    ),
    Constraint(
        "hold_acknowledged",
        "hold",
        "update",
        "(OLD.acknowledged_by IS NOT NULL AND NEW.acknowledged_by $differs OLD.acknowledged_by)"
        " OR (NEW.state = 'acknowledged' AND NEW.acknowledged_by IS NULL)"
        " OR (NEW.acknowledged_by IS NOT NULL AND OLD.acknowledged_by IS NULL AND NEW.state <> 'acknowledged')",
        "acknowledged once, by someone",
    ),
    Constraint(
        "recorded_file_start",
        "recorded_file",
        "insert",
        "NEW.status NOT IN ('accepted', 'rejected') OR NEW.first_run IS NOT NULL OR NEW.expired_at IS NOT NULL"
        f" OR NOT EXISTS ({_NEWEST_OF_ALL})",
        "a file starts as accepted or rejected, with its audit entry",
    ),
    Constraint(
        "recorded_file_move",
        "recorded_file",
        "update",
        f"NEW.status <> OLD.status AND {_unknown_move_sql('recorded_file', 'status')}",
        "this move is not allowed",
    ),
    Constraint(
        "recorded_file_audited",
        "recorded_file",
        "update",
        f"NOT EXISTS ({_NEWEST_OF_ALL} AND seq > OLD.audit_seq)"
        " OR (OLD.first_run IS NOT NULL AND NEW.first_run $differs OLD.first_run)",
        "a change needs its audit entry",
    ),
    Constraint(
        "hazard_closed", "hazard", "update", "OLD.closed_at IS NOT NULL OR NEW.closed_at IS NULL", "closed once"
    ),
)
