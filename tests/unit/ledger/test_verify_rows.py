"""Rows without an entry, entries without a row, rows that are not what their entry says: each is found and named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from errata.canonical import canonical_bytes
from errata.ledger import Ledger
from errata.ledger.audit.chain_check import verify_chain
from errata.ledger.audit.replay import TABLES
from errata.ledger.db.database import Database
from errata.ledger.privacy.pseudonyms import PersonRegistry, use_registry
from errata.ledger.schema import definition as schema
from errata.model.chunk_outcome import ChunkOutcome
from errata.model.consumer.outbox import Effect, Owed
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState
from errata.ports.measure import Measurement
from unit.ledger.shell import Shell
from unit.ledger.steps import (
    ALIVE,
    ANA,
    BO,
    DAYS,
    TABLE,
    adopt,
    cover,
    hold,
    intend,
    must_claim,
    plan,
    record_file,
    roll_back,
    run_in,
    seal_member,
    settle,
)
from unit.ledger.test_audit import Tampered


@pytest.fixture
def governed(ledger: Ledger, database: Database, shell: Shell) -> Iterator[Connection]:
    """A connection on a ledger with a row in every table, and with every trigger gone."""
    run = plan(ledger)
    ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "fine", BO, break_glass="market opens")
    ledger.runs.move("bf-1", RunState.RUNNING, actor=ANA)
    ledger.chunks.fail(
        must_claim(ledger), error_code="poison", message="x", actor=ANA,
        fate=lambda _: ChunkOutcome(ChunkState.REPLACED, pieces=(("2026-01-01",),)),
    )  # fmt: skip
    ledger.chunks.give_back(must_claim(ledger), actor=ANA)
    while attempt := ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, is_dead=lambda _: False):
        adopt(ledger, attempt)
    ledger.runs.move("bf-1", RunState.STAGED, actor=ANA)
    ledger.candidates.intend("bf-1", "d" * 64, ANA)
    ledger.candidates.record("bf-1", 1, "10", "11", ANA)
    ledger.candidates.record_measurements("bf-1", 1, [Measurement("candidate", "2026-01-01", "rows", "3")], ANA)
    ledger.approvals.accept_warning("bf-1", "revenue", "known campaign", "bo", BO, "f" * 64)
    checks = [{"name": "revenue", "level": "warn", "accepted_by": "bo"}]
    ledger.candidates.record_verdict("bf-1", 1, True, checks, "t" * 64, ANA)  # noqa: FBT003
    ledger.facts.record("bf-1", "thresholds.1", {"person": "bo", "why": "too strict"}, BO)
    ledger.guards.record("uuid", "12", ANA, "lake.t")
    ledger.releases.record("bf-1", {"candidate": 1}, candidate_n=1, person="bo", kind="release", actor=BO, note="go")
    given = hold(ledger, before_seconds=0, acknowledge=True)
    ledger.holds.acknowledge(given.hold_id, BO)
    ledger.holds.skip([hold(ledger, consumer="stream").hold_id], "urgent", BO)
    owes = [Owed(effect, "published", "bi", ("2026-01-01",), {"n": 1}) for effect in (Effect.TELL, Effect.WATERMARK)]
    settle(ledger, intend(ledger, "bf-1", ["2026-01-01", "2026-01-02"], owes=owes))
    settle(ledger, intend(ledger, "bf-1", ["2026-01-03"], owes=owes), "abandoned")
    item = ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=60)
    assert item is not None
    ledger.outbox.record_paid(item, {"status": 200}, BO, [Owed(Effect.TELL, "recovered", "bi")])
    ledger.outbox.waive(2, "switched off", BO, ready=True)
    roll_back(ledger, "bf-1", ["2026-01-01"])
    ledger.recordings.note_run("bf-1", [record_file(ledger).file_id], ANA)
    ledger.recordings.expire([record_file(ledger, content="b").file_id], "keep 30d", BO)
    plan(ledger, "bf-2")
    cover(ledger, "bf-3")
    seal_member(ledger)
    shell.disarm(*schema.metadata.tables)
    with (
        database.engine.connect().execution_options(errata_write=True) as conn,
        use_registry(PersonRegistry(conn)),
    ):
        yield conn


def test_a_ledger_that_nobody_touched_is_explained(governed: Connection):
    """All tables have rows, and log and rows agree."""
    with governed.begin():
        empty = [n for n in TABLES if not governed.execute(text(f"SELECT count(*) FROM {n}")).scalar_one()]
        assert empty == []
        assert verify_chain(governed).reason is None


COLUMNS = {
    "run": ("planned_by", "planned_at", "product", "table_name"),
    "approval": ("person", "digest", "decision", "run_id", "note", "at", "break_glass"),
    "warning_acceptance": ("person", "why", "check_name", "findings", "run_id", "at"),
    "verdict": ("thresholds_digest", "checks", "run_id", "person", "at"),
    "released": ("person", "digest", "kind", "note", "run_id", "subject", "break_glass", "at"),
    "fact": ("name", "run_id", "value", "at"),
    "guard": ("table_uuid", "snapshot_id"),
    "candidate": ("state", "digest", "branch", "snapshot_id", "detail", "at"),
    "publication": (
        "state",
        "person",
        "partitions",
        "result_snapshot_id",
        "reason",
        "release",
        "table_name",
        "intended_at",
        "settled_at",
    ),
    "publication_detail": ("part_digest", "pub_id", "at"),
    "acceptance": ("run_id", "partition", "action", "origin_pub_id", "table_name", "at"),
    "hazard": ("snapshot_id", "opened_at", "closed_at"),
    "hold": (
        "run_id",
        "wave",
        "consumer",
        "table_name",
        "partitions",
        "snapshot_id",
        "acknowledge",
        "on_timeout",
        "opened_at",
        "notice_until",
        "until",
        "state",
        "acknowledged_by",
        "acknowledged_at",
        "ended_at",
    ),
    "campaign": ("product", "planned_by", "planned_at", "valid_until", "state"),
    "campaign_approval": ("person", "decision", "digest", "note", "at"),
    "member_approval": ("product", "campaign_digest", "digest", "at"),
    "campaign_step": ("step", "outcome", "at"),
    "outbox_item": (
        "key",
        "effect",
        "event",
        "consumer",
        "table_name",
        "partitions",
        "payload",
        "state",
        "seq",
        "result",
        "at",
        "run_id",
        "pub_id",
        "waived_by",
        "waived_why",
        "waived_ready",
    ),
    "chunk": ("state", "snapshot_id"),
    "attempt": ("state", "snapshot_id"),
    "standing": ("product", "subject", "at"),
    "standing_decision": ("person", "decision", "note", "at"),
    "standing_use": ("at",),
}
OTHER = {
    "decision": "declined", "partitions": '["2026-01-09"]', "checks": "[]", "release": '{"x":1}',
    "state": "abandoned", "action": "rolled_back", "subject": '{"candidate":2}', "detail": '{"rows":{}}',
    "value": '{"person":"bo","why":"other"}', "payload": "{}", "result": '{"x":1}', "seq": "99",
}  # fmt: skip
ALLOWED = {
    ("released", "kind"): "automatic", ("standing_decision", "decision"): "revoked", ("campaign", "state"): "cancelled",
    ("campaign", "valid_until"): "1", ("campaign_step", "outcome"): "failed",
    ("outbox_item", "state"): "conditional", ("outbox_item", "waived_ready"): "1", ("hold", "wave"): "7",
    ("hold", "acknowledge"): "0", ("hold", "on_timeout"): "go", ("hold", "notice_until"): "1", ("hold", "until"): "1",
}  # fmt: skip
REFERENCES = ("run_id", "pub_id", "origin_pub_id", "part_digest")


def test_every_edit_of_a_governing_column_is_found(governed: Connection):
    """Whichever row of whichever table was edited, the log and the row no longer agree."""
    for table in COLUMNS:
        _each_edit_is_found(governed, table)


def _each_edit_is_found(governed: Connection, table: str) -> None:
    key = schema.metadata.tables[table].primary_key.columns.keys()
    with governed.begin():
        rows = governed.execute(text(f"SELECT * FROM {table}")).mappings().all()
    tried = set()
    for row in rows if governed.dialect.name == "sqlite" else rows[:1]:  # the rules are the same, a server is slower
        where = " AND ".join(f"{name} = '{row[name]}'" for name in key)
        for column in COLUMNS[table]:
            value = ALLOWED.get((table, column), OTHER.get(column, "other"))
            if column in REFERENCES:
                value = next(iter(_others(governed, table, column, row[column])), None)
            if value is None or str(row[column]) == value:
                continue
            edit = f"UPDATE {table} SET {column} = '{value}' WHERE {where}"
            try:
                with Tampered(governed, edit) as conn:
                    assert not verify_chain(conn).ok, (table, column, dict(row))
                    tried.add(column)
            except IntegrityError:  # the database itself says no
                governed.rollback()
    if governed.dialect.name == "sqlite":
        assert tried >= set(COLUMNS[table]) - set(REFERENCES)


def _others(conn: Connection, table: str, column: str, value: str) -> list[str]:
    source = {"run_id": "run", "pub_id": "publication", "origin_pub_id": "publication", "part_digest": "part"}[column]
    name = {"run_id": "run_id", "part_digest": "digest"}.get(column, "pub_id")
    with conn.begin():
        found = conn.execute(text(f"SELECT {name} FROM {source} ORDER BY 1")).scalars()
        return [one for one in found if one != value]


REMOVED = ("approval", "warning_acceptance", "released", "fact", "guard", "publication_detail", "hazard", "attempt",
           "standing_decision", "standing_use", "hold")  # fmt: skip


def test_every_row_that_is_taken_away_is_missed(governed: Connection):
    """An entry speaks of it, and it is not there."""
    for table in REMOVED:
        _each_removal_is_found(governed, table)


def _each_removal_is_found(governed: Connection, table: str) -> None:
    key = schema.metadata.tables[table].primary_key.columns.keys()
    with governed.begin():
        rows = governed.execute(text(f"SELECT * FROM {table}")).mappings().all()
    for row in rows:
        where = " AND ".join(f"{name} = '{row[name]}'" for name in key)
        with Tampered(governed, f"DELETE FROM {table} WHERE {where}") as conn:
            found = verify_chain(conn)
        assert not found.ok
        assert found.first_bad is not None
        assert "not there" in (found.reason or "")


ADDED = {
    "approval": "INSERT INTO approval (id, run_id, person, decision, digest, note, at, audit_seq)"
    " SELECT 99, run_id, 'eve', decision, digest, note, at, audit_seq FROM approval LIMIT 1",
    "verdict": "INSERT INTO verdict (id, run_id, candidate_n, passed, checks, thresholds_digest, person, at, audit_seq)"
    " SELECT 99, run_id, candidate_n, passed, checks, thresholds_digest, person, at, 1 FROM verdict LIMIT 1",
    "released": "INSERT INTO released (id, run_id, candidate_n, digest, subject, kind, person, note, break_glass, at,"
    " audit_seq) SELECT 99, run_id, candidate_n, digest, subject, kind, person, note, break_glass, at, 2 FROM released"
    " LIMIT 1",
    "attempt": "INSERT INTO attempt (run_id, chunk_id, fence, owner, host, pid, process_started, state, started_at,"
    " heartbeat_at, lease_until, audit_seq) SELECT run_id, chunk_id, 9, owner, host, pid, process_started, 'lost',"
    " started_at, heartbeat_at, lease_until, audit_seq FROM attempt LIMIT 1",
    "fact": "INSERT INTO fact (run_id, name, value, at, audit_seq)"
    " SELECT run_id, 'canary', value, at, audit_seq FROM fact LIMIT 1",
}


def test_every_row_that_was_slipped_in_is_found(governed: Connection):
    """No entry speaks of it."""
    for added in ADDED.values():
        with Tampered(governed, added) as conn:
            found = verify_chain(conn)
        assert (found.ok, found.first_bad) == (False, None)
        assert "no entry speaks of it" in (found.reason or "")


@pytest.mark.parametrize(
    "value, fits",
    [("at hunter22, 5 %", True), ("at ${PASSWORD}, 5 %", True), ("at hunter22, 50 %", False), ("5 %", False)],
)
def test_around_a_secret_that_was_taken_out_the_rest_is_compared(
    url: str, ledger: Ledger, value: str, fits: bool, shell: Shell
):
    """The entry has no secret, the row may have it; what else the row says is what the entry says."""
    run_in(ledger, RunState.STAGED)
    with Ledger.open(url, redact=lambda said: said.replace("hunter22", "${PASSWORD}")) as careful:
        careful.facts.record("bf-1", "limit", {"of": "at hunter22, 5 %"}, ANA)
        assert careful.audit.verify().ok
        shell.disarm("fact")
        shell.execute("UPDATE fact SET value = ?", canonical_bytes({"of": value}).decode())
        assert careful.audit.verify().ok is fits


def test_chunks_are_those_of_the_manifest(ledger: Ledger, shell: Shell):
    """A chunk that was added to a plan, or that computes other partitions, is not what was approved."""
    chunks = [Chunk("c0000", ("2026-01-01",), 1, 1), Chunk("c0001", ("2026-01-02",), 1, 1)]
    content = canonical_bytes({"reason": "r", "partitions": DAYS, "chunks": chunks})
    common = {"product": "p", "table": TABLE, "partitions": DAYS, "parts": {}, "actor": ANA}
    ledger.runs.record("bf-1", content, chunks=chunks, **common)
    assert ledger.audit.verify().ok
    shell.disarm("chunk")
    shell.execute("UPDATE chunk SET partitions = '[\"2026-01-09\"]' WHERE chunk_id = 'c0001'")
    assert ledger.audit.verify().reason == "chunk c0001 of bf-1 is not as its manifest has it"


@pytest.mark.parametrize(
    "column,value", [("partitions", '["2026-01-09"]'), ("reason", "another"), ("supersedes", "bf-0")]
)
def test_scope_reason_and_superseded_run_are_those_of_the_manifest(
    ledger: Ledger, shell: Shell, column: str, value: str
):
    """They stand in the row for those who list runs, and govern what may be planned and published."""
    content = canonical_bytes({"reason": "r", "partitions": DAYS, "chunks": []})
    common = {"product": "p", "table": TABLE, "partitions": DAYS, "parts": {}, "actor": ANA}
    ledger.runs.record("bf-1", content, chunks=(), **common)
    assert ledger.audit.verify().ok
    shell.disarm("run")
    shell.execute(f"UPDATE run SET {column} = ?", value)
    assert ledger.audit.verify().reason == f"run bf-1 has other {column} than its manifest"


def test_every_table_with_an_entry_has_a_rule_of_its_own_or_the_common_one(ledger: Ledger):
    """A table that is added is at least held against the entry its rows name."""
    known = {name for name, table in schema.metadata.tables.items() if "audit_seq" in table.c}
    assert {*TABLES, "approval", "subject"} <= known
