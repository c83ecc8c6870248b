"""The database keeps its rules when someone writes to it directly, past every line of Python."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import text

from errata.canonical import sha256
from errata.ledger import CandidateState, Ledger
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Database, Tx
from errata.ledger.figures.readings import Reading, ReadingName
from errata.ledger.schema.definition import metadata
from errata.ledger.schema.trigger_rules import APPEND_ONLY, CANDIDATE_MOVES, NEVER_DELETED, REMEASURED
from errata.model.chunk_outcome import ChunkOutcome
from errata.model.consumer.outbox import Effect, Owed
from errata.model.run import (
    ATTEMPT_MOVES,
    CHUNK_MOVES,
    PUBLICATION_MOVES,
    RUN_MOVES,
    AttemptState,
    ChunkState,
    PublicationState,
    RunState,
)
from errata.ports.measure import Measurement
from unit.ledger.only import postgres_only, sqlite_only
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import (
    ALIVE,
    ANA,
    BO,
    DAYS,
    adopt,
    bring,
    cover,
    hold,
    intend,
    judge,
    manifest_bytes,
    must_claim,
    plan,
    publish,
    record_file,
    roll_back,
    run_in,
    seal_member,
)

ILLEGAL_RUN_MOVES = [(a, b) for a, b in itertools.product(RunState, RunState) if b not in RUN_MOVES[a]]


@pytest.fixture
def full(ledger: Ledger) -> Ledger:
    """A ledger with at least one row in every table."""
    run = plan(ledger, chunks=2)
    ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "", BO)
    ledger.runs.move("bf-1", RunState.RUNNING, actor=ANA)
    adopt(ledger, must_claim(ledger))
    adopt(ledger, must_claim(ledger))
    ledger.runs.move("bf-1", RunState.STAGED, actor=ANA)
    ledger.candidates.intend("bf-1", "d", ANA)
    ledger.candidates.record("bf-1", 1, None, "5", ANA)
    ledger.candidates.record_measurements("bf-1", 1, [Measurement("c", None, "rows", "1")], ANA)
    ledger.approvals.accept_warning("bf-1", "drift", "known", "bo", BO)
    judge(ledger, passed=True)
    ledger.releases.record("bf-1", {"of": "s"}, candidate_n=1, person="bo", kind="release", actor=BO)
    ledger.guards.record("u", "1", ANA)
    ledger.facts.record("bf-1", "canary", {"passed": True}, ANA)
    ledger.readings.put(Reading(ReadingName.STALE, "fin.daily_revenue", 1.0))
    ledger.freezes.begin_live_write("t", "lake.other", DAYS, ALIVE, 60)
    ledger.freezes.open_freeze("bf-1", DAYS, idle_seconds=60, most_seconds=600, actor=ANA)
    ledger.freezes.grant_freeze("bf-1", ANA)
    hold(ledger)
    record_file(ledger)
    publish(ledger, "bf-1", DAYS[:2])
    ledger.outbox.owe("bf-1", "c", [Owed(Effect.TELL, "published", "bi")], ANA)
    roll_back(ledger, "bf-1", DAYS[:1])
    intend(ledger, "bf-1", DAYS[2:])
    cover(ledger, "bf-8")
    seal_member(ledger)
    return ledger


@pytest.fixture
def raw(full: Ledger, shell: Shell) -> Shell:
    """Someone with a shell of the full ledger."""
    return shell


def test_the_full_ledger_has_rows_everywhere(raw: Shell):
    """The tests below prove something about every table."""
    for table in metadata.tables:
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0, table
    assert {*APPEND_ONLY, *NEVER_DELETED, *REMEASURED, "scope_lock", "live_write", "reading"} == set(metadata.tables)


def test_evidence_is_not_updated(raw: Shell):
    """No column of an append-only row can be changed, not even to itself."""
    for table in (*APPEND_ONLY, *REMEASURED):
        for column in metadata.tables[table].columns:
            change = f"UPDATE {table} SET {column.name} = {column.name}"
            refused(lambda sql=change: raw.execute(sql), f"{table}: update refused")


def test_rows_are_not_removed_or_replaced(raw: Shell):
    """DELETE is refused, and so is every way to put a row in the place of another one."""
    for table in (*APPEND_ONLY, *NEVER_DELETED, *REMEASURED):
        why = "the numbers stay" if table in REMEASURED else f"{table}: delete refused"
        refused(lambda table=table: raw.execute(f"DELETE FROM {table}"), why)
        key = ", ".join(column.name for column in metadata.tables[table].primary_key)
        refused(lambda table=table, key=key: raw.execute(raw.replace(table, key)), ".")
        refused(lambda table=table: raw.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1"), ".")


@sqlite_only
def test_a_row_that_exists_is_not_ignored_either(raw: Shell):
    """What SQLite would skip in silence is refused, too."""
    for table in (*APPEND_ONLY, *NEVER_DELETED, *REMEASURED):
        refused(lambda table=table: raw.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM {table} LIMIT 1"), ".")


@postgres_only
def test_no_table_is_truncated(raw: Shell):
    """TRUNCATE fires no row trigger, so it is refused as a whole."""
    for table in metadata.tables:
        refused(lambda table=table: raw.execute(f"TRUNCATE {table} CASCADE"), "truncate refused")


@postgres_only
def test_a_temporary_table_does_not_stand_in_for_the_rules(raw: Shell):
    """Whoever may make temporary tables could otherwise bring a list of moves of their own."""
    raw.execute("CREATE TEMPORARY TABLE transition AS SELECT 'chunk' AS kind, 'done' AS from_state, 'done' AS to_state")
    raw.execute("CREATE TEMPORARY TABLE audit_head AS SELECT 1 AS one, 7 AS seq, 'x' AS hash")
    raw.execute("SET search_path = pg_temp, public")
    refused(lambda: raw.execute("UPDATE candidate SET state = 'intended'"), "not allowed")
    forged = "INSERT INTO audit VALUES (8, 'x', 'y', '2026', 'eve', 'eve', 'h', 0, 'note', NULL, '{}')"
    refused(lambda: raw.execute(forged), "does not continue the chain")


def test_what_was_declared_is_fixed(raw: Shell):
    """Identity and scope of a row never change."""
    fixed = {
        "run": ("manifest_digest", "table_name", "partitions", "planned_by"),
        "chunk": ("partitions", "position"),
        "attempt": ("owner", "fence"),
        "candidate": ("branch", "digest"),
        "publication": ("partitions", "kind", "person", "release"),
        "hazard": ("snapshot_id",),
    }
    for table, columns in fixed.items():
        for column in columns:
            refused(lambda table=table, column=column: raw.execute(f"UPDATE {table} SET {column} = '9'"), f"{table}: ")


def test_a_judged_candidate_gets_no_more_numbers(raw: Shell):
    """Adding to what was judged is refused like removing from it."""
    more = "INSERT INTO measurement SELECT NULL, run_id, candidate_n, scope, partition, 'more', value, exact"
    refused(lambda: raw.execute(f"{more} FROM measurement"), "the numbers stay")


def test_numbers_without_a_verdict_are_removed_but_never_changed_or_replaced(ledger: Ledger, shell: Shell):
    """Measuring again removes the old numbers; no other way leads to different ones under the same row."""
    run_in(ledger, RunState.STAGED)
    ledger.candidates.intend("bf-1", "d", ANA)
    ledger.candidates.record_measurements("bf-1", 1, [Measurement("candidate", DAYS[0], "rows", "1")], ANA)
    refused(lambda: shell.execute("UPDATE measurement SET value = '2'"), "kept as written")
    refused(lambda: shell.execute(shell.replace("measurement", "id")), "never replaced|kept as written")
    if not shell.is_postgres:
        wrong = "INSERT INTO measurement SELECT 9, run_id, 1, 's', '', 'n', '1', 2 FROM run"
        refused(lambda: shell.execute(wrong), "CHECK")
    assert shell.execute("DELETE FROM measurement").rowcount == 1


@pytest.mark.parametrize("a", RunState)
def test_an_illegal_run_move_is_refused_even_with_an_audit_entry(ledger: Ledger, a: RunState, database: Database):
    """The transition table decides, whatever the log would say."""
    run_in(ledger, a)

    def act(tx: Tx, b: RunState) -> None:
        entry = append_entry(tx, ANA, "forged", "bf-1", {}, move=(a.value, b.value))
        tx.conn.execute(text("UPDATE run SET state = :b, audit_seq = :s"), {"b": b.value, "s": entry.seq})

    for b in (b for x, b in ILLEGAL_RUN_MOVES if x is a):
        refused(lambda b=b: database.write(lambda tx: act(tx, b)), "run: this move is not allowed")
    assert ledger.runs.get("bf-1").state is a


def test_a_run_move_needs_its_own_new_audit_entry(ledger: Ledger, database: Database):
    """No entry, an old one, another run's, another move's, or one that is not the newest: all refused."""
    run_in(ledger, RunState.APPROVED)
    plan(ledger, "bf-2")
    move = text("UPDATE run SET state = 'running', audit_seq = :s WHERE run_id = 'bf-1'")

    def forged(tx: Tx, run_id: str, pair: tuple[str, str], *, late: bool = False) -> None:
        entry = append_entry(tx, ANA, "forged", run_id, {}, move=pair)
        if late:
            append_entry(tx, ANA, "noise", None)
        tx.conn.execute(move, {"s": entry.seq})

    good = ("approved", "running")
    for seq in (0, 1, 2, 99):
        refused(lambda seq=seq: database.write(lambda tx: tx.conn.execute(move, {"s": seq})), "needs the audit entry")
    refused(lambda: database.write(lambda tx: forged(tx, "bf-2", good)), "needs the audit entry")
    refused(lambda: database.write(lambda tx: forged(tx, "bf-1", ("approved", "cancelled"))), "needs the audit entry")
    refused(lambda: database.write(lambda tx: forged(tx, "bf-1", good, late=True)), "needs the audit entry")
    assert ledger.runs.get("bf-1").state is RunState.APPROVED
    database.write(lambda tx: forged(tx, "bf-1", good))
    assert ledger.runs.get("bf-1").state is RunState.RUNNING


def test_a_run_starts_as_planned(ledger: Ledger, shell: Shell, database: Database):
    """A run cannot be put into the ledger half way, or without its entry."""
    plan(ledger)
    copy = "INSERT INTO run SELECT 'bf-9', :digest, product, table_name, partitions, planned_by, reason, planned_at,"
    sealed = {"digest": "m", "content": b"{}", "at": "2026"}
    database.write(lambda tx: tx.conn.execute(metadata.tables["manifest"].insert(), sealed))

    def act(state: str) -> None:
        def work(tx: Tx) -> None:
            seq = append_entry(tx, ANA, "forged", "bf-9", {}, move=(None, state)).seq
            rest = f" '{state}', updated_at, {seq}, supersedes, kind FROM run"
            tx.conn.execute(text(copy + rest), {"digest": "m"})

        database.write(work)

    refused(lambda: act("approved"), "starts as planned")
    direct = copy.replace(":digest", "'m'") + " 'planned', updated_at, audit_seq, supersedes, kind FROM run"
    refused(lambda: shell.execute(direct), "starts as planned")


def test_an_audit_entry_must_continue_the_chain(raw: Shell):
    """An entry with a gap or a wrong previous hash is not taken, and the head is not moved by hand."""
    insert = (
        "INSERT INTO audit SELECT {}, {}, 'h', at, person, os_user, host, 0, action, run_id, body FROM audit LIMIT 1"
    )
    seq, head = raw.execute("SELECT seq, hash FROM audit_head").fetchone()
    for number, previous in ((seq + 2, head), (seq, head), (seq + 1, "0" * 64)):
        refused(lambda n=number, p=previous: raw.execute(insert.format(n, f"'{p}'")), ".")
    refused(lambda: raw.execute("UPDATE audit_head SET seq = seq - 1"), "one entry at a time")
    refused(lambda: raw.execute("UPDATE audit_head SET seq = seq + 1"), "one entry at a time")


def _set(shell: Shell, table: str, state: str, where: str = "TRUE") -> None:
    shell.execute(f"UPDATE {table} SET state = ? WHERE {where}", state)


def chunk_in(ledger: Ledger, state: ChunkState) -> None:
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    if state is ChunkState.PENDING:
        return
    attempt = must_claim(ledger)
    if state is ChunkState.DONE:
        adopt(ledger, attempt)
    elif state is not ChunkState.RUNNING:
        pieces = (attempt.partitions,) if state is ChunkState.REPLACED else ()
        ledger.chunks.fail(
            attempt, error_code="x", message="y", actor=ANA, fate=lambda _: ChunkOutcome(state, pieces=pieces)
        )


@pytest.mark.parametrize("a", ChunkState)
def test_illegal_chunk_moves_are_refused(ledger: Ledger, a: ChunkState, shell: Shell):
    """Each pair that the model does not list; a running chunk runs again only under a higher fence."""
    chunk_in(ledger, a)
    for b in ChunkState:
        if b not in CHUNK_MOVES[a] and b is not a:
            refused(lambda b=b: _set(shell, "chunk", b.value, "chunk_id = 'c0000'"), "chunk: ")
    assert (a.value,) in shell.execute("SELECT state FROM chunk").fetchall()


@pytest.mark.parametrize("a", AttemptState)
def test_illegal_attempt_moves_are_refused(ledger: Ledger, a: AttemptState, shell: Shell):
    """An attempt that is over stays as it ended."""
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    attempt = must_claim(ledger)
    if a is AttemptState.ADOPTED:
        adopt(ledger, attempt)
    elif a is AttemptState.FAILED:
        ledger.chunks.fail(attempt, error_code="x", message="y", actor=ANA)
    elif a is AttemptState.LOST:
        ledger.chunks.give_back(attempt, actor=ANA)
    for b in AttemptState:
        if b not in ATTEMPT_MOVES[a] and b is not a:
            refused(lambda b=b: _set(shell, "attempt", b.value), "attempt: ")
    assert ledger.progress.attempts("bf-1")[0].state is a


@pytest.mark.parametrize("a", PublicationState)
def test_illegal_publication_moves_are_refused(ledger: Ledger, a: PublicationState, shell: Shell):
    """An outcome is final, and a commit without a snapshot is none."""
    run_in(ledger, RunState.VALIDATED)
    pub = intend(ledger, "bf-1", DAYS)
    if a is PublicationState.COMMITTED:
        ledger.publications.settle(pub.pub_id, "committed", snapshot_id="1", actor=BO)
    elif a is PublicationState.ABANDONED:
        ledger.publications.settle(pub.pub_id, "abandoned", actor=BO)
    for b in PublicationState:
        if b not in PUBLICATION_MOVES[a] and b is not a:
            refused(lambda b=b: _set(shell, "publication", b.value), "publication: ")
    if a is PublicationState.INTENDED:
        refused(lambda: _set(shell, "publication", "committed"), "committed with a snapshot")
    assert ledger.publications.get(pub.pub_id).state is a


@pytest.mark.parametrize("a", CandidateState)
def test_illegal_candidate_moves_are_refused(ledger: Ledger, a: CandidateState, shell: Shell):
    """A candidate is intended, made, abandoned, never the other way."""
    run_in(ledger, RunState.STAGED)
    ledger.candidates.intend("bf-1", "d", ANA)
    if a is CandidateState.MADE:
        ledger.candidates.record("bf-1", 1, None, "5", ANA)
    elif a is CandidateState.ABANDONED:
        ledger.candidates.abandon("bf-1", 1, ANA)
    for b in CandidateState:
        if b not in CANDIDATE_MOVES[a] and b is not a:
            refused(lambda b=b: _set(shell, "candidate", b.value), "candidate: ")


def test_a_fence_only_grows_and_only_its_holder_is_adopted(ledger: Ledger, shell: Shell):
    """The fence cannot shrink; a stale attempt can be neither adopted nor prolonged; one attempt is adopted."""
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    must_claim(ledger, lease=0)
    must_claim(ledger)
    refused(lambda: shell.execute("UPDATE chunk SET fence = 1"), "only grows")
    refused(lambda: shell.execute("UPDATE chunk SET state = 'running'"), "only grows")
    refused(lambda: shell.execute("UPDATE chunk SET state = 'done'"), "one adopted attempt")
    refused(lambda: shell.execute("UPDATE attempt SET lease_until = 0 WHERE fence = 1"), "it is over")
    shell.drop_rule("attempt", "attempt_over")
    shell.drop_rule("attempt", "attempt_move")
    refused(lambda: shell.execute("UPDATE attempt SET state = 'adopted' WHERE fence = 1"), "stale")
    shell.execute("UPDATE attempt SET state = 'adopted' WHERE fence = 2")
    shell.drop_rule("attempt", "attempt_stale")
    refused(lambda: shell.execute("UPDATE attempt SET state = 'adopted' WHERE fence = 1"), "(?i)unique")


def test_a_lock_stays_while_its_publication_is_open(raw: Shell):
    """Locks are freed by settling, not by hand, and not handed over."""
    refused(lambda: raw.execute("DELETE FROM scope_lock"), "is open")
    refused(lambda: raw.execute("UPDATE scope_lock SET pub_id = 'bf-1-p1'"), "only the lease")
    refused(lambda: raw.execute("INSERT INTO scope_lock SELECT * FROM scope_lock"), "is taken")


def test_acceptance_needs_a_committed_publication_and_approval_the_digest(raw: Shell):
    """Truth in a partition and a decision on a plan cannot be written past their cause."""
    accept = (
        "INSERT INTO acceptance SELECT NULL, table_name, partition, run_id, 'bf-1-p3', NULL, NULL, action, at, 1"
        " FROM acceptance LIMIT 1"
    )
    refused(lambda: raw.execute(accept), "not committed")
    approve = "INSERT INTO approval SELECT NULL, run_id, 'eve', 'approved', 'x', '', at, 1, '' FROM approval LIMIT 1"
    refused(lambda: raw.execute(approve), "another digest")


@sqlite_only
def test_a_missing_rule_is_noticed(full: Ledger, shell: Shell):
    """Dropping or weakening a trigger shows."""
    assert full.missing_triggers() == ()
    shell.execute("DROP TRIGGER run_move")
    shell.execute("DROP TRIGGER audit_no_update")
    shell.execute("CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT 1; END")
    assert full.missing_triggers() == ("audit_no_update", "run_move")


_OTHER, _CALLS = "CREATE OR REPLACE TRIGGER part_no_delete", "EXECUTE FUNCTION errata_part_no_delete()"
_WEAKER = "CREATE OR REPLACE FUNCTION errata_audit_chain() RETURNS trigger LANGUAGE plpgsql"


@postgres_only
@pytest.mark.parametrize(
    "name, change",
    [
        ("run_move", "DROP TRIGGER run_move ON run"),
        ("audit_no_update", "ALTER TABLE audit DISABLE TRIGGER audit_no_update"),
        ("audit_chain", f"{_WEAKER} SET search_path = public, pg_temp AS 'BEGIN RETURN NEW; END'"),
        ("audit_chain", "ALTER FUNCTION errata_audit_chain() RESET search_path"),
        ("part_no_delete", f"{_OTHER} BEFORE DELETE ON part FOR EACH ROW WHEN (false) {_CALLS}"),
        ("part_no_delete", f"{_OTHER} BEFORE INSERT ON part FOR EACH ROW {_CALLS}"),
    ],
)
def test_a_rule_that_was_weakened_is_noticed(ledger: Ledger, shell: Shell, name: str, change: str):
    """Dropped, disabled, another text, another search path, a condition, another moment: each shows."""
    assert ledger.missing_triggers() == ()
    shell.execute(change)
    assert ledger.missing_triggers() == (name,)


@pytest.mark.parametrize("kind", ["attest", "reconcile"])
@pytest.mark.parametrize("state", [RunState.PLANNED, RunState.STAGED, RunState.ATTESTED], ids=str)
def test_a_run_that_changes_nothing_gets_no_publication(ledger: Ledger, shell: Shell, kind: str, state: RunState):
    """Not by SQL either, in whatever state it is: the sealed plan says what the run is, not a column."""
    run_in(ledger, RunState.VALIDATED, "bf-1")
    publish(ledger, "bf-1", DAYS[:1])
    run_in(ledger, state, "bf-2", kind=kind)
    columns = [column.name for column in metadata.tables["publication"].columns]
    changed = {"pub_id": "'forged'", "run_id": "'bf-2'", "state": "'intended'"}
    copied = ", ".join(changed.get(name, name) for name in columns)
    copy = f"INSERT INTO publication ({', '.join(columns)}) SELECT {copied} FROM publication WHERE run_id = 'bf-1'"
    refused(lambda: shell.execute(copy), "publication: a run of this kind changes nothing")
    assert not ledger.publications.list("bf-2")


def test_a_run_has_the_kind_that_was_sealed(ledger: Ledger, shell: Shell):
    """It can neither be recorded with another one nor be given another one later."""
    run_in(ledger, RunState.PLANNED, "bf-1", kind="restate")
    for rule in ("run_start", "run_move", "run_audited"):  # these would refuse it first, for want of an audit entry
        shell.drop_rule("run", rule)
    refused(
        lambda: shell.execute("UPDATE run SET kind = 'attest' WHERE run_id = 'bf-1'"), "fixed when the row is written"
    )
    content = manifest_bytes("bf-2", "restate")
    shell.execute("INSERT INTO manifest (digest, content, at) VALUES (?, ?, 'now')", sha256(content), content)
    columns = [column.name for column in metadata.tables["run"].columns]
    changed = {"run_id": "'bf-2'", "manifest_digest": f"'{sha256(content)}'", "kind": "'attest'"}
    copied = ", ".join(changed.get(name, name) for name in columns)
    copy = f"INSERT INTO run ({', '.join(columns)}) SELECT {copied} FROM run WHERE run_id = 'bf-1'"
    refused(lambda: shell.execute(copy), "run: a run has the kind that its manifest says")
