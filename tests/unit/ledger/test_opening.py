"""Opening a ledger: where it may lie, how it is created, brought up to date and refused."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from sqlalchemy import Connection

from compat.old import ARCHIVE
from errata.canonical import canonical_bytes
from errata.errors import NotFound, SetupError, StateRefused, UsageError
from errata.ledger import Ledger, current_owner, is_owner_dead
from errata.ledger.db import migrate
from errata.ledger.db.database import Database
from errata.ledger.db.filesystem import find_file_system, refuse_network
from errata.ledger.records import Owner
from errata.ledger.schema import definition as schema
from errata.model.run import RunState
from support.statements import watched_statements
from unit.ledger.only import sqlite_only
from unit.ledger.shell import Shell
from unit.ledger.steps import ANA, DAYS, TABLE, bring, intend, plan, run_in, settle

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:40 / /home/team rw,relatime shared:2 - nfs4 server:/team rw
23 22 0:41 / /home/team/my\\040disk rw,relatime - xfs /dev/sdb1 rw
24 21 0:42 / /data rw - ext4 /dev/sdc1 rw
25 24 0:43 / /data rw - fuse.s3fs s3fs rw
"""


def test_a_ledger_is_created_once(new_url: str, tmp_path: Path):
    """A file's directory is made, and the id stays the same ever after."""
    with Ledger.open(new_url) as first, Ledger.open(new_url, create=False) as second:
        assert first.ledger_id == second.ledger_id
        assert len(first.ledger_id) == 16
    with Ledger.open(f"sqlite:///{tmp_path}/other.db") as other:
        assert other.ledger_id != first.ledger_id


def test_a_ledger_that_is_not_there_is_not_created_unasked(new_url: str, tmp_path: Path):
    """``create=False`` leaves no file, no directory and no table."""
    for _ in range(2):
        with pytest.raises(NotFound, match="there is no ledger yet at"):
            Ledger.open(new_url, create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url, found",
    [
        ("sqlite://", "a database in memory"),
        ("sqlite:///:memory:", "a database in memory"),
        ("sqlite+aiosqlite:///ledger.db", "sqlite+aiosqlite://…"),
        ("mysql://host/db", "mysql://…"),
        ("postgresql+psycopg2://errata:secret@host/db?password=secret", "postgresql+psycopg2://…"),
        ("postgresql://errata:secret@host:port/db", "postgresql://…, which cannot be read as a URL"),
        ("no url at all", "no url at all, which cannot be read as a URL"),
    ],
)
def test_other_databases_are_refused(url: str, found: str):
    """Only a SQLite file or PostgreSQL is opened; the refusal says which URLs work and shows no password."""
    with pytest.raises(UsageError) as refused:
        Ledger.open(url)
    expected = "expected a SQLite file or a PostgreSQL database"
    assert refused.value.message == f"the ledger was not opened; {expected}, found {found}"
    assert refused.value.hint == "ledger: sqlite:///.errata/ledger.db, or postgresql+psycopg://user@host/database"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path):
    """What lies there is named and left alone."""
    path = tmp_path / "ledger.db"
    path.write_text("not a database, but long enough to be looked at" * 100)
    before = path.read_bytes()
    with pytest.raises(SetupError, match="not a database"):
        Ledger.open(f"sqlite:///{path}")
    assert path.read_bytes() == before


@sqlite_only
def test_a_commit_survives_power_loss(database: Database):
    """Write-ahead log, full synchronisation, foreign keys on."""
    found = database.read(
        lambda conn: [
            conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    )
    assert found == ["wal", 2, 1]


def test_a_network_file_system_is_refused():
    """The file system of the nearest mount decides; a later mount on the same point hides the earlier one."""
    assert find_file_system(Path("/home/team/x/ledger.db"), MOUNTS) == "nfs4"
    assert find_file_system(Path("/home/team/my disk/ledger.db"), MOUNTS) == "xfs"
    assert find_file_system(Path("/home/teamwork/ledger.db"), MOUNTS) == "ext4"
    assert find_file_system(Path("/data/ledger.db"), MOUNTS) == "fuse.s3fs"
    refuse_network(Path("/home/teamwork"), MOUNTS)
    with pytest.raises(SetupError, match="nfs4"):
        refuse_network(Path("/home/team"), MOUNTS)


def test_an_up_to_date_ledger_opens_without_alembic(url: str):
    """Commands with a tight start-up budget do not pay for migrations, retries or another dialect."""
    other = "sqlite3" if url.startswith("postgresql") else "sqlalchemy.dialects.postgresql"
    code = (
        "import sys; from errata.ledger import Ledger; ledger = Ledger.open(sys.argv[1]); ledger.runs.list();"
        "print([m for m in ('alembic', 'tenacity', sys.argv[2]) if m in sys.modules]); ledger.close()"
    )
    done = subprocess.run([sys.executable, "-c", code, url, other], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("version, hint", [("9999", "a newer Errata"), ("0006", "before the first release")])
def test_a_ledger_of_another_schema_is_refused(shell: Shell, url: str, version: str, hint: str):
    """Neither a newer schema nor one that was never released is touched."""
    shell.execute(f"UPDATE alembic_version SET version_num = '{version}'")
    with pytest.raises(SetupError, match=version) as refused:
        Ledger.open(url)
    assert hint in refused.value.hint


def test_a_ledger_that_earlier_code_made_has_the_declared_schema(tmp_path: Path):
    """What migrations make of it and what a new ledger gets are the same, partial indexes and triggers included."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with tarfile.open(ARCHIVE) as archive:
        archive.extract(".errata/ledger.db", tmp_path, filter="data")

    def compare(conn: Connection) -> list[object]:
        options = {"include_name": lambda name, kind, _: kind != "index" or name not in schema.PARTIAL_INDEXES}
        return list(compare_metadata(MigrationContext.configure(conn, opts=options), schema.metadata))

    url = f"sqlite:///{tmp_path / '.errata/ledger.db'}"
    with Ledger.open(url, create=False) as ledger, closing(Database(url)) as database:
        assert database.read(compare) == []
        assert ledger.missing_triggers() == ()
        assert ledger.audit.verify().ok


def test_partial_indexes_are_unique_and_cover_the_declared_rows(shell: Shell):
    """One adopted attempt per chunk and one open publication per run, by the database itself."""
    sqlite = "SELECT sql FROM sqlite_master WHERE name = ? AND tbl_name = ?"
    postgres = "SELECT indexdef FROM pg_indexes WHERE indexname = ? AND tablename = ?"
    query = postgres if shell.is_postgres else sqlite
    for name, (table, _, where) in schema.PARTIAL_INDEXES.items():
        (made,) = shell.execute(query, name, table).fetchone()
        assert "UNIQUE" in made
        assert where in made.replace("::text", "")


def test_the_newest_migration_is_the_one_the_code_expects():
    """``KNOWN`` lists the migrations in order."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(migrate.build_alembic_config())
    assert [script.revision for script in scripts.walk_revisions()] == list(reversed(schema.KNOWN_VERSIONS))


def test_a_migration_says_itself_what_it_makes():
    """It uses nothing of ours: a table that is declared differently later must not change what it made before."""
    folder = files("errata.ledger.db.migrations.versions")
    scripts = [one for one in folder.iterdir() if one.name.endswith(".py")]
    assert len(scripts) == len(schema.KNOWN_VERSIONS)
    for script in scripts:
        assert "errata." not in script.read_text("utf-8"), script.name


def test_a_migration_that_dies_leaves_nothing_half_made(new_url: str):
    """All of it is one transaction: the next one finds nothing and starts over."""

    made: list[str] = []

    def die(statement: str) -> None:
        if "INTO audit_head" in statement:
            raise KeyboardInterrupt
        made.append(statement)

    with watched_statements(die), pytest.raises(KeyboardInterrupt):
        Ledger.open(new_url)
    assert any("CREATE TABLE audit_head" in statement for statement in made)
    with Ledger.open(new_url) as ledger:
        assert ledger.missing_triggers() == ()
        assert ledger.audit.verify().ok


def test_migrating_again_keeps_the_rows_and_renews_the_rules(ledger: Ledger, database: Database, url: str):
    """A migration of a ledger in use ends with all triggers and all rows in place."""
    run_in(ledger, RunState.RUNNING)
    before = ledger.audit.entries()
    dialect = database.dialect
    database.bare(dialect.drop_triggers)
    assert "run_move" in ledger.missing_triggers()
    database.bare(lambda conn: migrate.finish_migration(conn, dialect))
    with Ledger.open(url) as again:
        assert again.missing_triggers() == ()
        assert again.audit.entries() == before
        assert again.ledger_id == ledger.ledger_id
        plan(again, "bf-2")


NEWEST = (
    "DROP TABLE reading",
    "DROP INDEX ix_run_state",
    "ALTER TABLE attempt DROP COLUMN erasure_snapshot_id",
    "DROP TABLE recorded_file",
)
"""What no schema before that of recordings has."""
_NEWER = ("hold", "outbox_item", "campaign_step", "member_approval", "campaign_approval", "campaign")
NEWER_TABLES = (
    *NEWEST,
    *(f"DROP TABLE {name}" for name in (*_NEWER, "standing_use", "standing_decision", "standing")),
)
"""What an earlier schema does not have."""


def test_a_run_of_the_first_schema_goes_on_to_the_states_of_today(ledger: Ledger, database: Database, url: str):
    """Opening the ledger migrates it: its rows stay, and its own rules allow needs_acceptance from then on."""
    run_in(ledger, RunState.STAGED)
    database.bare(database.dialect.drop_triggers)
    for statement in (
        "DELETE FROM transition WHERE 'needs_acceptance' IN (from_state, to_state)",
        "DROP INDEX ix_run_supersedes",
        "ALTER TABLE run DROP COLUMN supersedes",
        "ALTER TABLE run DROP COLUMN kind",
        *NEWER_TABLES,
        "UPDATE alembic_version SET version_num = '0007'",
    ):
        database.bare(lambda conn, told=statement: conn.exec_driver_sql(told))
    with Ledger.open(url) as today:
        assert today.missing_triggers() == ()
        assert today.runs.move("bf-1", RunState.NEEDS_ACCEPTANCE, actor=ANA).state is RunState.NEEDS_ACCEPTANCE
        assert today.audit.verify().ok


def test_what_an_earlier_schema_noted_as_owed_is_owed_once(ledger: Ledger, database: Database, url: str):
    """Open notes become items with the first payment; what was paid, or did not land, owes nothing."""
    run_in(ledger, RunState.VALIDATED)
    lost = settle(ledger, intend(ledger, "bf-1", DAYS[:1]), "abandoned")
    paid = settle(ledger, intend(ledger, "bf-1", DAYS[:1]))
    owed = settle(ledger, intend(ledger, "bf-1", DAYS[1:2]))
    for pub in (lost, paid, owed):
        ledger.facts.record("bf-1", f"owed.{pub.pub_id}", {"corrections": "lake.c", "view": "lake.v"}, ANA)
    ledger.facts.record("bf-1", f"done.{paid.pub_id}", {}, ANA)
    last = intend(ledger, "bf-1", DAYS[2:3])
    ledger.facts.record("bf-1", f"owed.{last.pub_id}", {"corrections": "lake.c"}, ANA)
    database.bare(database.dialect.drop_triggers)
    for statement in (
        *NEWEST,
        "DROP TABLE hold",
        "DROP TABLE outbox_item",
        "UPDATE alembic_version SET version_num = '0013'",
    ):
        database.bare(lambda conn, told=statement: conn.exec_driver_sql(told))
    with Ledger.open(url) as today:
        assert today.outbox.list() == ()
        for _ in range(2):
            today.outbox.convert_notes(ANA)
        found = [(item.pub_id, item.effect.value, item.state.value) for item in today.outbox.list()]
        assert found == [
            (owed.pub_id, "corrections", "owed"), (owed.pub_id, "view", "owed"),
            (last.pub_id, "corrections", "conditional"),
        ]  # fmt: skip
        assert today.outbox.list()[0].partitions == tuple(DAYS[1:2])
        settle(today, last)
        assert [item.state.value for item in today.outbox.list(pub_id=last.pub_id)] == ["owed"]
        assert today.audit.verify().ok


def test_a_run_of_an_earlier_schema_gets_the_run_that_it_supersedes(ledger: Ledger, database: Database, url: str):
    """The migration reads it from the manifests, sealed or not; the audit chain verifies as before."""
    plan(ledger)
    common = {"product": "p", "table": TABLE, "partitions": DAYS, "chunks": (), "parts": {}, "actor": ANA}
    ledger.runs.record("bf-2", canonical_bytes({"reason": "again", "chunks": [], "supersedes": "bf-1"}), **common)
    database.bare(database.dialect.drop_triggers)
    for statement in (
        "DROP INDEX ix_run_supersedes",
        "ALTER TABLE run DROP COLUMN supersedes",
        "ALTER TABLE run DROP COLUMN kind",
        *NEWER_TABLES,
        "UPDATE alembic_version SET version_num = '0008'",
    ):
        database.bare(lambda conn, told=statement: conn.exec_driver_sql(told))
    with Ledger.open(url) as today:
        assert [run.run_id for run in today.runs.list_successors("bf-1")] == ["bf-2"]
        assert today.runs.get("bf-1").supersedes is None
        assert today.missing_triggers() == ()
        assert today.audit.verify().ok


def test_a_run_of_an_earlier_schema_gets_its_kind(ledger: Ledger, database: Database, url: str):
    """From its manifest, so that it may do afterwards what it might before, and no more."""
    plan(ledger, "bf-1", kind="replay")
    bring(ledger, "bf-1", RunState.STAGED)
    database.bare(database.dialect.drop_triggers)
    for statement in (
        *NEWER_TABLES,
        "ALTER TABLE run DROP COLUMN kind",
        "UPDATE alembic_version SET version_num = '0009'",
    ):
        database.bare(lambda conn, told=statement: conn.exec_driver_sql(told))
    with Ledger.open(url) as today:
        assert (today.runs.get("bf-1").kind, today.missing_triggers()) == ("replay", ())
        with pytest.raises(StateRefused, match="only a run that changes nothing"):
            today.runs.move("bf-1", RunState.ATTESTED, actor=ANA)
        assert today.runs.move("bf-1", RunState.VALIDATED, actor=ANA).state is RunState.VALIDATED


def test_a_freeze_of_an_earlier_schema_is_that_of_the_first_wave(ledger: Ledger, database: Database, url: str):
    """It goes on holding live jobs off, and ends with its run."""
    run_in(ledger, RunState.RUNNING)
    ledger.freezes.open_freeze("bf-1", DAYS, idle_seconds=600, most_seconds=3600, actor=ANA)
    database.bare(database.dialect.drop_triggers)
    for statement in (
        *NEWEST,
        "CREATE TABLE older AS SELECT * FROM frozen_scope",
        "ALTER TABLE older DROP COLUMN wave",
        "DROP TABLE frozen_scope",
        "ALTER TABLE older RENAME TO frozen_scope",
        "UPDATE alembic_version SET version_num = '0015'",
    ):
        database.bare(lambda conn, told=statement: conn.exec_driver_sql(told))
    with Ledger.open(url) as today:
        assert [(one.wave, one.partitions, one.is_open) for one in today.freezes.list("bf-1")] == [(1, DAYS, True)]
        assert [one.run_id for one in today.freezes.find_freezes(TABLE)] == ["bf-1"]
        today.runs.move("bf-1", RunState.CANCELLED, actor=ANA)
        assert today.freezes.find_freezes(TABLE) == ()
        assert (today.missing_triggers(), today.audit.verify().ok) == ((), True)


def test_the_clock_is_the_database_s(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    """Both forms come from the database and agree with each other."""
    import datetime as dt

    at = dt.datetime.fromisoformat(ledger.now())
    assert abs(at.timestamp() * 1000 - ledger.now_ms()) < 5000


def test_a_process_is_dead_only_when_that_is_certain():
    """Another host, another boot, another name space or an unknown start are left to the lease."""
    me = current_owner("me")
    assert not is_owner_dead(me)
    place, _, started = me.started.rpartition("/")
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    assert is_owner_dead(Owner("gone", me.host, gone.pid, f"{place}/1"))
    assert is_owner_dead(Owner("reused", me.host, os.getpid(), f"{place}/{int(started) - 1}"))
    assert not is_owner_dead(Owner("far", "elsewhere", gone.pid, f"{place}/1"))
    assert not is_owner_dead(Owner("rebooted", me.host, gone.pid, "other-boot/pid:[1]/1"))
    assert not is_owner_dead(Owner("unknown", me.host, gone.pid, f"{place}/?"))
    assert not is_owner_dead(Owner("plain", me.host, gone.pid, ""))


def test_a_process_that_ended_but_was_not_waited_for_is_dead():
    """Its remains in the process table compute nothing."""
    me = current_owner()
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    child.stdout.close()
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    place, _, _ = me.started.rpartition("/")
    assert is_owner_dead(Owner("zombie", me.host, child.pid, f"{place}/1"))
    child.wait()
