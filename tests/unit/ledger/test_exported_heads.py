"""A log of fifty entries, every way to falsify it by someone who can write everything in the ledger, and heads outside.

Without heads a chain that was hashed anew from the forged entry on is as good as the true one. With a head of every
tenth entry, kept elsewhere, each forgery is found and placed between two heads.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from errata.canonical import canonical_bytes, to_plain
from errata.ledger import Ledger, entry_hash
from errata.ledger.audit.chain_check import verify_chain
from errata.ledger.db.database import Database
from errata.ledger.schema.definition import audit
from errata.model.audit import GENESIS, Actor, AuditEntry, Head
from errata.views import AuditView
from unit.ledger.shell import Shell
from unit.ledger.steps import ANA, BO, plan

ENTRIES, EVERY, PEOPLE = 50, 10, 2


class Forger:
    """Replaces the log by another one, lets the checker look at it, and puts the true one back."""

    def __init__(self, conn: Connection, entries: tuple[AuditEntry, ...], ledger_id: str) -> None:
        self.conn, self.true = conn, entries
        self.heads = [Head(ledger_id, "p", one.seq, one.hash, one.at) for one in entries if one.seq % EVERY == 0]

    def check(self, entries: list[AuditEntry], *, heads: bool = True) -> AuditView:
        with self.conn.begin() as outer:
            self.conn.execute(text("DELETE FROM audit"))
            if entries:
                self.conn.execute(audit.insert(), [_row(entry) for entry in entries])
            last = entries[-1] if entries else None
            head = {"seq": last.seq if last else 0, "hash": last.hash if last else GENESIS}
            self.conn.execute(text("UPDATE audit_head SET seq = :seq, hash = :hash"), head)
            found = verify_chain(self.conn, self.heads if heads else ())
            outer.rollback()
        return found


def _row(entry: AuditEntry) -> dict[str, object]:
    fields = to_plain(entry)
    actor = fields.pop("actor")
    return fields | actor | {"single_user": int(actor["single_user"]), "body": canonical_bytes(entry.body).decode()}


def rehashed(entries: list[AuditEntry]) -> list[AuditEntry]:
    """Numbers, links and hashes as if all of it had always been so."""
    found: list[AuditEntry] = []
    for seq, entry in enumerate(entries, 1):
        begun = replace(entry, seq=seq, previous=found[-1].hash if found else GENESIS)
        found.append(replace(begun, hash=entry_hash(begun)))
    return found


@pytest.fixture(scope="module")
def forger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forger]:
    url = f"sqlite:///{tmp_path_factory.mktemp('witnessed') / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        for number in range(ENTRIES):
            ledger.audit.note(None, (ANA, BO)[number % 2], "note", {"number": number, "note": f"note {number}"})
        with closing(Shell(url)) as shell:
            shell.disarm("audit", "audit_head")
        with (
            closing(Database(url)) as database,
            database.engine.connect().execution_options(errata_write=True) as conn,
        ):
            yield Forger(conn, ledger.audit.entries(), ledger.ledger_id)


def vouched(seq: int) -> int:
    """The first entry that no head before this one vouches for."""
    return (seq - 1) // EVERY * EVERY + 1


def changes(entry: AuditEntry) -> Iterator[AuditEntry]:
    """Each field of an entry, changed alone."""
    for name in ("person", "os_user", "host"):
        changed = {name: getattr(entry.actor, name) + "x"}
        yield replace(entry, actor=replace(entry.actor, **changed))
    yield replace(entry, actor=replace(entry.actor, single_user=True))
    yield replace(entry, at="2020-01-01T00:00:00.000Z")
    yield replace(entry, action="remark")
    yield replace(entry, run_id="bf-9")
    yield replace(entry, body={**entry.body, "number": -1})


def test_the_true_log_agrees_with_its_heads(forger: Forger):
    """All is well before anything was done."""
    found = forger.check(list(forger.true))
    assert (found.ok, found.entries, found.head) == (True, ENTRIES, forger.true[-1].hash)


def test_every_changed_field_hashed_anew_is_found_by_the_heads_alone(forger: Forger):
    """Each field of each entry: the forged chain links up, and the next head denies it."""
    for seq in range(1, ENTRIES + 1):
        for changed in changes(forger.true[seq - 1]):
            forged = rehashed([*forger.true[: seq - 1], changed, *forger.true[seq:]])
            found = forger.check(forged)
            assert (found.ok, found.first_bad) == (False, vouched(seq)), (seq, changed)
            assert "it was rebuilt or forked" in (found.reason or "")


def test_without_heads_a_chain_hashed_anew_passes(forger: Forger):
    """This is why heads are kept elsewhere."""
    forged = copy.copy(list(forger.true))
    forged[0] = replace(forged[0], body={"number": -1})
    assert not forger.check(rehashed(forged)).ok
    assert forger.check(rehashed(forged), heads=False).reason is None


def test_every_removed_entry_closed_up_and_hashed_anew_is_found(forger: Forger):
    """The numbers fit, the hashes fit, and a head does not."""
    for seq in range(1, ENTRIES + 1):
        found = forger.check(rehashed([*forger.true[: seq - 1], *forger.true[seq:]]))
        assert not found.ok
        assert found.first_bad == (vouched(seq) if vouched(seq) + EVERY <= ENTRIES else ENTRIES)


def test_every_added_entry_hashed_anew_is_found(forger: Forger):
    """An entry that never was, slipped in before any other."""
    for seq in range(1, ENTRIES + 1):
        extra = replace(forger.true[0], body={"number": 99})
        found = forger.check(rehashed([*forger.true[: seq - 1], extra, *forger.true[seq - 1 :]]))
        assert (found.ok, found.first_bad) == (False, vouched(seq))


def test_every_swap_of_neighbours_hashed_anew_is_found(forger: Forger):
    """Two entries that changed places."""
    for seq in range(1, ENTRIES):
        swapped = list(forger.true)
        swapped[seq - 1], swapped[seq] = swapped[seq], swapped[seq - 1]
        found = forger.check(rehashed(swapped))
        assert (found.ok, found.first_bad) == (False, vouched(seq))


def test_every_cut_tail_is_found_with_the_head_of_the_ledger_set_back(forger: Forger):
    """However much is cut off, the first missing entry is named, down to the last one."""
    for keep in range(ENTRIES):
        found = forger.check(list(forger.true[:keep]))
        assert (found.ok, found.first_bad) == (False, keep + 1)
        if keep > PEOPLE:  # before, the rows of people give it away as well
            assert f"a head of entry {ENTRIES} was exported" in (found.reason or "")
            assert forger.check(list(forger.true[:keep]), heads=False).reason is None


def test_a_log_that_was_written_anew_from_the_start_is_found(forger: Forger):
    """Other people, other deeds, as many entries."""
    anew = [replace(one, actor=Actor("eve", "eve", "workspace"), body={}) for one in forger.true]
    found = forger.check(rehashed(anew))
    assert (found.ok, found.first_bad) == (False, 1)


def test_two_heads_of_one_entry_are_a_fork(forger: Forger):
    """Whichever of the two histories the ledger shows now."""
    other = rehashed([*forger.true[:24], replace(forger.true[24], body={}), *forger.true[25:]])
    forked = Forger(forger.conn, forger.true, "l")
    forked.heads = [*forger.heads, replace(forger.heads[2], hash=other[29].hash)]
    for entries in (list(forger.true), other):
        assert not forked.check(entries).ok


def test_heads_that_are_behind_vouch_for_what_they_cover(forger: Forger):
    """Entries after the newest head are checked by the chain alone, and say so by their number."""
    behind = Forger(forger.conn, forger.true, "l")
    behind.heads = forger.heads[:2]
    tail = rehashed([*forger.true[:30], replace(forger.true[30], body={}), *forger.true[31:]])
    assert behind.check(tail).ok
    early = rehashed([*forger.true[:12], replace(forger.true[12], body={}), *forger.true[13:]])
    assert behind.check(early).first_bad == 11


def test_when_the_audit_cannot_be_written_nothing_happens(ledger: Ledger, url: str, shell: Shell):
    """A state change whose entry is refused is rolled back as a whole, on both databases."""
    plan(ledger)
    before = ledger.audit.entries()
    if url.startswith("sqlite"):
        shell.execute("CREATE TRIGGER stuck BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'audit: read only'); END")
    else:
        shell.execute("ALTER TABLE audit ADD CONSTRAINT stuck CHECK (false) NOT VALID")
    run = ledger.runs.get("bf-1")
    for act in (
        lambda: ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "ok", BO),
        lambda: ledger.approvals.accept_warning("bf-1", "c", "w", "bo", BO),
        lambda: plan(ledger, "bf-2"),
        lambda: ledger.people.erase("ana", "r", BO),
        lambda: ledger.audit.note(None, BO, "note"),
    ):
        with pytest.raises(Exception, match=r"read only|stuck|refused|audit"):
            act()
    assert ledger.audit.entries() == before
    assert ledger.runs.list() == (run,)
    assert (ledger.approvals.list("bf-1"), ledger.approvals.accepted_warnings("bf-1")) == ((), ())
    assert set(ledger.people.names().values()) == {"ana", "ana-os"}
