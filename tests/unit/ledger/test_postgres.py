"""What only a PostgreSQL ledger has: a server, roles, and clients that freeze."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from errata.errors import EngineError, LedgerUnavailable, SetupError, UsageError
from errata.ledger import Ledger
from errata.ledger.db.database import Database, Tx
from errata.ledger.db.roles import render_roles_sql
from errata.ledger.schema.definition import metadata
from errata.ledger.schema.trigger_rules import APPEND_ONLY, NEVER_DELETED, REMEASURED
from errata.model.run import RunState
from support.postgres import PostgresServer, free_port
from unit.ledger.only import postgres_only
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ANA, actions, adopt, bring, must_claim, plan, publish, roll_back, run_in

SECRET = "s3cr3t-p4ssword"
PATIENCE = "&errata_patience=0.2"


def test_a_missing_driver_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch):
    """The driver is an extra: the error says how to get it."""
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SetupError) as missing:
        Ledger.open("postgresql://errata@127.0.0.1/ledger")
    assert missing.value.hint == 'pip install "errata[postgres]"'


def test_a_server_that_is_not_there_is_told_soon_and_without_the_password():
    """Host and database are named, the password is not, in no part of the error."""
    port = free_port()
    with pytest.raises(SetupError) as away:
        Ledger.open(f"postgresql+psycopg://errata:{SECRET}@127.0.0.1:{port}/ledger?application_name={SECRET}{PATIENCE}")
    expected = f"the ledger was not opened; expected a PostgreSQL server at 127.0.0.1:{port}/ledger, found: "
    assert away.value.message.startswith(expected)
    assert "refused" in away.value.message
    shown = f"{away.value.message} {away.value.hint} {away.value.state} {away.value.fields}"
    assert SECRET not in shown


@pytest.mark.parametrize(
    "role, database, found", [("errata", "nowhere", "nowhere"), ("nobody", "postgres", "nobody")]
)  # fmt: skip
def test_what_waiting_cannot_mend_is_told_at_once(postgres: PostgresServer, role: str, database: str, found: str):
    """A database or a role that does not exist is not waited for."""
    start = time.monotonic()
    with pytest.raises(SetupError, match=f'"{found}" does not exist'):
        Ledger.open(postgres.url(database, role=role))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("value", ["soon", "-1", "1e9"])
def test_patience_is_a_number_of_seconds(value: str):
    """A setting of Errata's own is checked like any other."""
    with pytest.raises(UsageError, match="errata_patience"):
        Ledger.open(f"postgresql://errata@127.0.0.1/ledger?errata_patience={value}")


@postgres_only
def test_the_user_s_own_settings_win(url: str):
    """Timeouts and names come from the URL where it has them, and from Errata where it has not."""
    with closing(Database(f"{url}?application_name=nightly&options=-c lock_timeout=7s")) as database:
        names = ("application_name", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        found = database.read(lambda conn: [conn.exec_driver_sql(f"SHOW {name}").scalar() for name in names])
    assert found == ["nightly", "7s", "1min", "30s"]


@postgres_only
def test_the_database_is_named_with_its_version(ledger: Ledger, postgres: PostgresServer):
    """For `errata doctor`: product, version and place."""
    said = ledger.database()
    assert said.startswith("PostgreSQL 1")
    assert said.partition(" at ")[2].startswith(f"127.0.0.1:{postgres.port}/ledger_")


@postgres_only
def test_the_time_of_a_write_is_the_time_when_its_turn_came(database: Database, url: str):
    """A lease begins when the writer got the lock, not when it began to wait for it."""
    from concurrent.futures import ThreadPoolExecutor

    with closing(Database(url)) as other, ThreadPoolExecutor(1) as pool:

        def hold(tx: Tx) -> int:
            waiting.append(pool.submit(other.write, lambda waited: waited.now_ms))
            time.sleep(1.0)
            return tx.now_ms

        waiting: list[object] = []
        began = database.write(hold)
        assert waiting[0].result() - began >= 950  # type: ignore[attr-defined]


@postgres_only
def test_a_client_that_freezes_does_not_hold_the_queue(url: str):
    """The server throws it out; the others go on; and when it thaws its transaction is run again, once."""
    impatient = f"{url}?options=-c idle_in_transaction_session_timeout=300ms"
    with closing(Database(impatient)) as frozen, Ledger.open(url) as other:
        tries: list[int] = []

        def freeze(tx: Tx) -> int:
            tries.append(tx.head_seq)
            if len(tries) == 1:
                time.sleep(0.6)
                other.audit.note(None, ANA, "meanwhile")
            tx.conn.exec_driver_sql("SELECT 1")
            return tx.head_seq

        assert frozen.write(freeze) == 1
        assert tries == [0, 1]
        assert actions(other) == ["meanwhile"]


@postgres_only
def test_an_application_role_works_but_cannot_lift_the_rules(url: str, postgres: PostgresServer):
    """With the printed roles a worker does everything but own tables: no trigger goes, no evidence changes."""
    name = url.rpartition("/")[2]
    role, owner = f"app_{name}", f"owner_{name}"
    try:
        for _ in range(2):  # running it again changes nothing
            postgres.execute(render_roles_sql(owner, role), database=name)
        mine = postgres.url(name, role=role)
        with Ledger.open(mine) as ledger:
            run_in(ledger, RunState.VALIDATED)
            publish(ledger, "bf-1")
            plan(ledger, "bf-2", chunks=1)
            bring(ledger, "bf-2", RunState.RUNNING)
            adopt(ledger, must_claim(ledger, "bf-2"))
            ledger.runs.move("bf-2", RunState.STAGED, actor=ANA)
            ledger.candidates.intend("bf-2", "d", ANA)
            ledger.candidates.record_measurements("bf-2", 1, [], ANA)
            ledger.chunks.reclaim("bf-2", actor=ANA, reason="cancelled")
            ledger.runs.move("bf-2", RunState.CANCELLED, actor=ANA)
            roll_back(ledger, "bf-1")
            erased = ledger.people.erase("bo", "asked for it", ANA)
            assert "owner runs VACUUM" in erased.remains
            assert "bo" not in ledger.people.names().values()
            assert ledger.audit.verify().ok
            assert ledger.missing_triggers() == ()
            assert not ledger.owns_tables()
        with Ledger.open(postgres.url(name, role=owner)) as owned:
            assert owned.owns_tables()
        shell = Shell(mine)
        for statement in (
            "ALTER TABLE audit DISABLE TRIGGER USER", "DROP TRIGGER audit_no_update ON audit", "TRUNCATE audit",
            "DROP TABLE audit", "SET session_replication_role = replica", "UPDATE audit SET person = 'eve'",
            *(f"DELETE FROM {table}" for table in (*APPEND_ONLY, *NEVER_DELETED)),
            *(f"UPDATE {table} SET {_column(table)} = {_column(table)}" for table in APPEND_ONLY),
            *(f"TRUNCATE {table} CASCADE" for table in (*APPEND_ONLY, *NEVER_DELETED, *REMEASURED)),
            "ALTER TABLE audit DISABLE TRIGGER ALL", "ALTER TABLE audit OWNER TO CURRENT_USER",
            "DROP TABLE audit CASCADE", "UPDATE subject SET pseudonym = 'subject-0'",
            "INSERT INTO transition VALUES ('run', 'planned', 'published')",
            "CREATE TABLE mine (x int)", "CREATE TRIGGER eve BEFORE INSERT ON audit EXECUTE FUNCTION errata_run_move()",
            "DROP FUNCTION errata_run_move() CASCADE", "DROP SCHEMA public CASCADE",
            "CREATE OR REPLACE FUNCTION errata_run_move() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        ):  # fmt: skip
            with pytest.raises(Exception, match=r"permission denied|must be owner"):
                shell.execute(statement)
        for table in REMEASURED:
            shell.execute(f"DELETE FROM {table}")
        refused(
            lambda: shell.execute("UPDATE run SET state = 'published' WHERE run_id = 'bf-2'"), "audit entry|allowed"
        )
        refused(lambda: shell.execute("UPDATE audit_head SET seq = 0"), "follows the chain")
        refused(lambda: shell.execute("UPDATE subject SET handle = NULL, secret = NULL"), "erased as a whole")
        shell.close()
    finally:
        postgres.execute(f"REASSIGN OWNED BY {owner} TO CURRENT_USER", database=name)
        for one in (role, owner):
            postgres.execute(f"DROP OWNED BY {one}", database=name)
            postgres.execute(f"DROP ROLE {one}")


def _column(table: str) -> str:
    return next(iter(metadata.tables[table].columns)).name


@pytest.mark.parametrize("bad", ["errata-app", "A", 'x"; DROP TABLE audit; --', "", "x" * 64, "app; --"])
def test_roles_have_plain_names(bad: str):
    """The names go into SQL as they are, so nothing but a plain name is taken."""
    with pytest.raises(UsageError):
        render_roles_sql(app=bad)
    with pytest.raises(UsageError):
        render_roles_sql(schema=bad)


def test_a_role_that_may_not_create_tables_is_told_who_does(postgres: PostgresServer, empty_database: str):
    """Creating and migrating is the owner's; the error says so."""
    name = empty_database.rpartition("/")[2]
    role = f"app_{name}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    try:
        with pytest.raises(SetupError, match="role with the ledger's rights") as denied:
            Ledger.open(postgres.url(name, role=role))
        assert "postgresql-ledger.md" in str(denied.value.hint)
    finally:
        postgres.execute(f"DROP ROLE {role}")


def test_null_characters_do_not_stop_the_ledger(ledger: Ledger):
    """PostgreSQL cannot keep them, so no ledger does: they show as what they are, unreadable. All else is kept."""
    said = {"why": "a\x00b", "path": "C:\\u0000", "both": "\\\x00"}
    run_in(ledger, RunState.RUNNING)
    ledger.runs.move("bf-1", RunState.CANCELLED, actor=ANA, body=said)
    kept = ledger.audit.readable_entries()[-1].body
    assert (kept["why"], kept["path"], kept["both"]) == ("a\ufffdb", "C:\\u0000", "\\\ufffd")
    assert ledger.audit.verify().ok


@postgres_only
def test_a_statement_that_runs_too_long_is_ended(url: str):
    """A statement has a limit; the error is told and nothing is changed."""
    with closing(Database(f"{url}?options=-c statement_timeout=200ms")) as database:
        database.read(database.clock)  # it is open; an error while opening would be another one
        with pytest.raises(EngineError, match="statement timeout"):
            database.write(lambda tx: tx.conn.exec_driver_sql("SELECT pg_sleep(5)"))


@postgres_only
def test_a_wrong_query_is_not_waited_for(ledger: Ledger):
    """A worker waits for a ledger that is unavailable; a query that is wrong will be wrong tomorrow."""
    with pytest.raises(EngineError, match="syntax error") as wrong:
        ledger.scalar("SELEKT 1")
    assert not isinstance(wrong.value, LedgerUnavailable)


def test_no_text_of_an_error_shows_the_url():
    """The dialect's place has neither user nor password."""
    database = Database(f"postgresql://eve:{SECRET}@host.example:5433/ledger?sslmode=require")
    assert database.place == "host.example:5433/ledger"
    database.close()
