"""Whatever is done to the log or around it, the checker names the first entry that is wrong or missing."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import (
    DataObject,
    booleans,
    builds,
    data,
    lists,
    none,
    permutations,
    sampled_from,
)
from sqlalchemy import Connection, Pool, event, text

from errata.canonical import canonical_bytes, sha256
from errata.errors import EngineError, ManifestTampered, StateRefused
from errata.ledger import Ledger, entry_hash
from errata.ledger.audit.chain import link_bytes
from errata.ledger.audit.chain_check import verify_chain
from errata.ledger.audit.measurement_digest import digest_measurements
from errata.ledger.db.database import Database
from errata.model.audit import GENESIS
from errata.model.run import RunState
from errata.ports.measure import Measurement
from unit.ledger.only import sqlite_only
from unit.ledger.shell import Shell
from unit.ledger.steps import ANA, BO, adopt, bring, judge, manifest_bytes, must_claim, plan, publish, roll_back, run_in

FIELDS = ("previous", "hash", "at", "person", "os_user", "host", "single_user", "action", "run_id", "body")
AGAIN = "INSERT INTO measurement SELECT 1000 + id, run_id, candidate_n, scope, partition, name, value, exact"
NUMBERS = (
    Measurement("prior", "2026-01-01", "rows", "2"),
    Measurement("candidate", "2026-01-01", "rows", "3"),
    Measurement("candidate", "2026-01-01", "mean", "0.1", exact=False),
    Measurement("candidate", None, "note", None),
)


@pytest.fixture
def log(ledger: Ledger, database: Database, shell: Shell) -> Iterator[Connection]:
    """A connection inside a transaction on a log of about twenty entries, with every trigger gone."""
    run_in(ledger, RunState.VALIDATED)
    publish(ledger, "bf-1")
    roll_back(ledger, "bf-1")
    run = plan(ledger, "bf-2")
    ledger.approvals.decide("bf-2", run.manifest_digest, "bo", "approved", "ok", BO)
    ledger.runs.move("bf-2", RunState.RUNNING, actor=ANA)
    adopt(ledger, must_claim(ledger, "bf-2"))
    with pytest.raises(StateRefused):
        ledger.runs.move("bf-2", RunState.PUBLISHED, actor=ANA)
    for word in ("one", "two", "three"):
        ledger.audit.note("bf-2", ANA, "note", {"word": word})
    shell.disarm("audit", "run", "audit_head")
    with database.engine.connect().execution_options(errata_write=True) as conn:
        yield conn


def outside(log: Connection, pragma: str) -> None:
    """Outside any transaction, where a pragma takes effect."""
    driver = log.connection.dbapi_connection
    assert driver is not None
    driver.cursor().execute(pragma)


class Tampered:
    """Undoes what was done to the log when the block ends."""

    def __init__(self, log: Connection, *statements: str) -> None:
        self.log, self.statements = log, statements

    def __enter__(self) -> Connection:
        self.outer = self.log.begin()
        for statement in self.statements:
            assert self.log.exec_driver_sql(statement).rowcount > 0, statement
        return self.log

    def __exit__(self, *_: object) -> None:
        self.outer.rollback()


def length(log: Connection) -> int:
    with log.begin():
        return int(log.execute(text("SELECT max(seq) FROM audit")).scalar_one())


def test_an_honest_log_verifies(ledger: Ledger, log: Connection):
    """The check passes, counts every entry and names the head; hashes can be recomputed from the entries alone."""
    found = ledger.audit.verify()
    entries = ledger.audit.entries()
    assert (found.ok, found.entries, found.first_bad, found.reason) == (True, len(entries), None, None)
    assert found.entries >= 18
    assert found.head == entries[-1].hash
    previous = GENESIS
    for seq, entry in enumerate(entries, 1):
        assert (entry.seq, entry.previous, entry.hash) == (seq, previous, entry_hash(entry))
        previous = entry.hash


def test_an_entry_is_hashed_as_documented(ledger: Ledger):
    """A checker written elsewhere needs SHA-256 and RFC 8785 only."""
    entry = ledger.audit.note(None, ANA, "note", {"b": 1, "a": ["x"]})
    name = {handle: pseudonym for pseudonym, handle in ledger.people.names().items()}
    told = {
        "at": entry.at,
        "actor": {"person": name["ana"], "os_user": name["ana-os"], "host": "workspace", "single_user": False},
        "action": "note",
        "run_id": None,
        "body": {"a": ["x"], "b": 1},
    }
    link = {"seq": 1, "previous": GENESIS, "run": None, "content": sha256(canonical_bytes(told))}
    assert sha256(canonical_bytes(link)) == entry.hash
    of_a_run = ledger.audit.note(plan(ledger).run_id, ANA, "note", {})
    assert json.loads(link_bytes(of_a_run))["run"] == sha256(b"bf-1")


def test_every_edit_of_every_field_is_found(log: Connection):
    """Each field of each entry, edited alone, is named by its number."""
    for seq in range(1, length(log) + 1):
        for field in FIELDS:
            value = {"single_user": "1 - single_user", "run_id": "coalesce(run_id, '') || 'x'"}.get(
                field, f"{field} || ' '"
            )
            with Tampered(log, f"UPDATE audit SET {field} = {value} WHERE seq = {seq}"):
                found = verify_chain(log)
                assert (found.ok, found.first_bad) == (False, seq), (seq, field)


def test_an_edit_that_keeps_the_meaning_is_found(log: Connection):
    """The same JSON in other bytes, and a number a driver would read as true, are not what was written."""
    with Tampered(log, "UPDATE audit SET body = '{ ' || substr(body, 2) WHERE seq = 3"):
        assert verify_chain(log).first_bad == 3
    with Tampered(log, "UPDATE audit SET body = '[]' WHERE seq = 5"):
        assert verify_chain(log).first_bad == 5


@sqlite_only
def test_an_edit_that_other_databases_would_not_take_is_found(log: Connection):
    """SQLite keeps whatever it is given once its checks are switched off."""
    outside(log, "PRAGMA ignore_check_constraints = ON")
    with Tampered(log, "UPDATE audit SET single_user = 2 WHERE seq = 3"):
        assert verify_chain(log).first_bad == 3
    with Tampered(log, "UPDATE audit SET body = x'00ff' WHERE seq = 4"):
        assert verify_chain(log).first_bad == 4


def test_every_deletion_is_found(log: Connection):
    """The first missing number is named, the last one included."""
    for seq in range(1, length(log) + 1):
        with Tampered(log, f"DELETE FROM audit WHERE seq = {seq}"):
            found = verify_chain(log)
            assert (found.ok, found.first_bad) == (False, seq)


def test_a_deletion_that_is_closed_up_is_found(log: Connection):
    """Renumbering the entries after a gap does not mend the chain."""
    for seq in range(1, length(log)):
        with Tampered(
            log, f"DELETE FROM audit WHERE seq = {seq}", f"UPDATE audit SET seq = -seq WHERE seq > {seq}",
            "UPDATE audit SET seq = -seq - 1 WHERE seq < 0",
        ):  # fmt: skip
            assert verify_chain(log).first_bad == seq


def test_every_swap_of_neighbours_is_found(log: Connection):
    """Two entries that changed places are noticed at the first of them."""
    for seq in range(1, length(log)):
        with Tampered(
            log, f"UPDATE audit SET seq = -1 WHERE seq = {seq}", f"UPDATE audit SET seq = {seq} WHERE seq = {seq + 1}",
            f"UPDATE audit SET seq = {seq + 1} WHERE seq = -1",
        ):  # fmt: skip
            assert verify_chain(log).first_bad == seq


def test_every_cut_tail_is_found(log: Connection):
    """However much is cut off, the first missing entry is named."""
    for keep in range(length(log)):
        with Tampered(log, f"DELETE FROM audit WHERE seq > {keep}"):
            assert verify_chain(log).first_bad == keep + 1


def test_a_cut_tail_is_found_by_the_rows_that_name_it(log: Connection):
    """With the head set back as well, rows that were written with a later entry give the cut away."""
    named = 0
    entries = length(log)
    unnamed = 4  # the refusal and the three notes at the end belong to no row
    for keep in range(entries - unnamed):
        head = f"(SELECT hash FROM audit WHERE seq = {keep})" if keep else f"'{GENESIS}'"
        with Tampered(
            log, f"DELETE FROM audit WHERE seq > {keep}", f"UPDATE audit_head SET seq = {keep}, hash = {head}"
        ):
            found = verify_chain(log)
            assert not found.ok
            named += found.first_bad == keep + 1
    assert named == entries - unnamed


def test_a_change_that_was_not_logged_is_named(log: Connection):
    """A state without its entry is found, and the run is named; so is another manifest, and a run that is gone."""
    with Tampered(log, "UPDATE run SET state = 'published' WHERE run_id = 'bf-2'"):
        found = verify_chain(log)
        assert (found.ok, found.first_bad) == (False, None)
        assert "bf-2 is published, but its last audited state is running" in str(found.reason)
    swap = "INSERT INTO manifest SELECT 'm', content, at FROM manifest LIMIT 1"
    with Tampered(log, swap, "UPDATE run SET manifest_digest = 'm' WHERE run_id = 'bf-2'"):
        assert "planned with" in str(verify_chain(log).reason)


def test_a_run_that_is_gone_is_named(shell: Shell, log: Connection):
    """Removing a run whole leaves the log that speaks of it."""
    if log.dialect.name == "postgresql":
        keys = "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE confrelid = 'run'::regclass"
        for table, name in shell.execute(keys).fetchall():
            shell.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    else:
        outside(log, "PRAGMA foreign_keys = OFF")
    with Tampered(log, "DELETE FROM run WHERE run_id = 'bf-2'"):
        assert "bf-2 is not there" in str(verify_chain(log).reason)


@pytest.fixture
def measured(ledger: Ledger, database: Database, shell: Shell) -> Iterator[Connection]:
    """A connection to a ledger with two measured candidates, the first judged, and no trigger on their numbers."""
    run_in(ledger, RunState.STAGED)
    for n in (1, 2):
        ledger.candidates.intend("bf-1", "d", ANA)
        ledger.candidates.record("bf-1", n, None, str(n), ANA)
    ledger.candidates.record_measurements("bf-1", 1, [Measurement("candidate", "2026-01-01", "rows", "0")], ANA)
    ledger.candidates.record_measurements("bf-1", 1, NUMBERS, ANA)
    ledger.candidates.record_measurements("bf-1", 2, NUMBERS, ANA)
    judge(ledger, passed=True)
    shell.disarm("measurement")
    with database.engine.connect().execution_options(errata_write=True) as conn:
        yield conn


def told(ledger: Ledger) -> list[int]:
    """The entries that speak of numbers."""
    return [entry.seq for entry in ledger.audit.entries() if entry.action == "candidate.measured"]


def test_the_audit_keeps_a_digest_of_the_numbers(ledger: Ledger, measured: Connection):
    """It can be recomputed elsewhere, and only the last measuring of a candidate counts."""
    _, first, second = told(ledger)
    entries = {entry.seq: entry for entry in ledger.audit.entries()}
    rows = [
        ["candidate", None, "note", None, True],
        ["candidate", "2026-01-01", "mean", "0.1", False],
        ["candidate", "2026-01-01", "rows", "3", True],
        ["prior", "2026-01-01", "rows", "2", True],
    ]
    assert entries[first].body == {"n": 1, "measurement_count": 4, "digest": sha256(canonical_bytes(rows))}
    assert entries[second].body == {"n": 2, "measurement_count": 4, "digest": sha256(canonical_bytes(rows))}
    assert ledger.audit.verify().ok


CHANGES = (
    "UPDATE measurement SET value = '4' WHERE value = '3'",
    "UPDATE measurement SET value = NULL WHERE value = '3'",
    "UPDATE measurement SET value = '' WHERE name = 'note'",
    "UPDATE measurement SET exact = NOT exact WHERE name = 'mean'",
    "UPDATE measurement SET name = 'rowz' WHERE value = '3'",
    "UPDATE measurement SET scope = 'candidate' WHERE scope = 'prior'",
    "UPDATE measurement SET partition = '2026-01-02' WHERE value = '3'",
    "UPDATE measurement SET partition = NULL WHERE value = '3'",
    "DELETE FROM measurement WHERE value = '3'",
    "DELETE FROM measurement WHERE 1 = 1",
    f"{AGAIN} FROM measurement WHERE value = '3'",
)


def test_every_change_of_a_number_is_found(ledger: Ledger, measured: Connection):
    """The entry that recorded the numbers is named, of the candidate whose numbers are other ones."""
    for n in (1, 2):
        entry = told(ledger)[n]
        for change in CHANGES:
            with Tampered(measured, f"{change} AND candidate_n = {n}"):
                found = verify_chain(measured)
                assert (found.ok, found.first_bad) == (False, entry), change
                assert f"entry {entry}: candidate {n} of bf-1 was recorded with" in str(found.reason)


@sqlite_only
def test_a_number_that_became_bytes_is_found(ledger: Ledger, measured: Connection):
    """SQLite keeps a blob in a column of texts."""
    with Tampered(measured, "UPDATE measurement SET value = x'33' WHERE value = '3' AND candidate_n = 1"):
        assert verify_chain(measured).first_bad == told(ledger)[1]


def test_the_first_entry_with_other_numbers_is_named(ledger: Ledger, measured: Connection):
    """With several candidates changed, the earliest entry comes first."""
    with Tampered(measured, "UPDATE measurement SET value = '9'"):
        assert verify_chain(measured).first_bad == told(ledger)[1]


def test_numbers_that_were_never_logged_are_named(ledger: Ledger, measured: Connection):
    """Rows of a candidate that was not measured belong to no entry."""
    ledger.candidates.intend("bf-1", "d", ANA)
    with Tampered(measured, "INSERT INTO measurement SELECT 1000, run_id, 3, 's', NULL, 'n', '1', 1 = 1 FROM run"):
        found = verify_chain(measured)
        assert (found.ok, found.first_bad) == (False, None)
        assert found.reason == "candidate 3 of bf-1 has measurements that were not logged"


@given(data())
def test_a_digest_is_of_the_numbers_and_not_of_their_order(draw: DataObject):
    """Shuffled numbers have the same digest; any other collection of numbers has another."""
    texts = sampled_from(["", "a", "b"])
    one = builds(Measurement, texts, none() | texts, texts, none() | texts, booleans())
    numbers, others = draw.draw(lists(one, max_size=4)), draw.draw(lists(one, max_size=4))
    assert digest_measurements(draw.draw(permutations(numbers))) == digest_measurements(numbers)
    assert (digest_measurements(numbers) == digest_measurements(others)) == (Counter(numbers) == Counter(others))


def test_a_tampered_manifest_stops_the_run(ledger: Ledger, shell: Shell):
    """Bytes that no longer have their digest are refused, and the refusal is on the record."""
    run = plan(ledger)
    assert ledger.runs.manifest_bytes("bf-1") == manifest_bytes("bf-1")
    shell.disarm("manifest")
    shell.execute("UPDATE manifest SET content = ?", manifest_bytes("bf-1") + b" ")
    for attempt in (
        lambda: ledger.runs.manifest_bytes("bf-1", BO),
        lambda: ledger.runs.manifest("bf-1", BO),
        lambda: ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "", BO),
    ):
        with pytest.raises(ManifestTampered) as refused:
            attempt()
        assert refused.value.exit_code == 3
        last = ledger.audit.readable_entries(limit=1)[0]
        assert (last.action, last.actor, last.run_id) == ("manifest.tampered", BO, "bf-1")
    assert ledger.runs.get("bf-1").state is RunState.PLANNED


def test_a_tampered_part_is_refused(ledger: Ledger, shell: Shell):
    """Parts are hashed again when they are read."""
    digest = ledger.parts.put(b"files")
    shell.disarm("part")
    shell.execute("UPDATE part SET content = ?", b"other files")
    with pytest.raises(ManifestTampered):
        ledger.parts.get(digest)


def test_without_an_audit_entry_nothing_happens(ledger: Ledger, shell: Shell):
    """When the log cannot be written, no state moves."""
    plan(ledger)
    broken = "CREATE TRIGGER sink_down BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'sink down'); END"
    if shell.is_postgres:
        sink = "CREATE FUNCTION sink() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''sink down''; END'"
        shell.execute(sink)
        broken = "CREATE TRIGGER sink_down BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION sink()"
    shell.execute(broken)
    for act in (
        lambda: ledger.runs.move("bf-1", RunState.APPROVED, actor=ANA),
        lambda: ledger.approvals.decide("bf-1", ledger.runs.get("bf-1").manifest_digest, "bo", "approved", "", BO),
        lambda: plan(ledger, "bf-2"),
    ):
        with pytest.raises(Exception, match="sink down"):
            act()
    shell.drop_rule("audit", "sink_down")
    assert [(run.run_id, run.state) for run in ledger.runs.list()] == [("bf-1", RunState.PLANNED)]
    assert ledger.approvals.list("bf-1") == ()


@contextmanager
def pages_at_most(pages: int) -> Iterator[None]:
    """Inside this block no connection can make its file larger than so many pages."""

    def limit(conn: Any, *_: object) -> None:
        conn.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(Pool, "checkout", limit)
    try:
        yield
    finally:
        event.remove(Pool, "checkout", limit)


@sqlite_only
def test_a_full_disk_stops_the_ledger_and_nothing_else(ledger: Ledger, shell: Shell):
    """No state moves on a full disk, the error says so, and work goes on when there is space again."""
    plan(ledger)
    bring(ledger, "bf-1", RunState.RUNNING)
    attempt = must_claim(ledger)
    (pages,) = shell.execute("PRAGMA page_count").fetchone()
    with pages_at_most(pages):
        with pytest.raises(EngineError, match="full"):
            deque((ledger.audit.note("bf-1", ANA, "filling", {"x": "y" * 5000}) for _ in range(200)), maxlen=0)
        before = ledger.audit.entries()
        with pytest.raises(EngineError, match="full") as full:
            ledger.parts.put(b"z" * 100_000)
        assert "nothing was changed" in str(full.value.state)
        assert ledger.audit.entries() == before
    ledger.close()  # a connection keeps its limit
    adopt(ledger, attempt)
    assert ledger.audit.verify().ok


def test_bodies_are_canonical_json(ledger: Ledger, shell: Shell):
    """What is stored is what is hashed, byte for byte."""
    ledger.audit.note(None, ANA, "note", {"ü": "Straße", "a": [1, None, True]})
    ((stored,),) = shell.execute("SELECT body FROM audit").fetchall()
    assert stored == '{"a":[1,null,true],"ü":"Straße"}'
    assert json.loads(stored) == ledger.audit.entries()[0].body
