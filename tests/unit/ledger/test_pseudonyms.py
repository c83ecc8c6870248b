"""People in the ledger: pseudonyms and sealed words while they are known, nothing of them once they are erased."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from errata.canonical import canonical_bytes
from errata.errors import KeyRefused, NotFound, StateRefused, UsageError
from errata.ledger import Ledger
from errata.ledger.privacy.pseudonyms import ERASED, MAX_TEXT, is_pseudonym
from errata.ledger.schema import definition as schema
from errata.model.audit import Actor
from errata.model.run import RunState
from unit.ledger.only import sqlite_only
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ANA, BO, DAYS, TABLE, plan, publish, run_in, settle

WORDS = "I know the tariff, Quirrell told me"
WHO = Actor("quirrell-q", "quirrell-os", "workspace")


def decided(ledger: Ledger) -> None:
    """One run on which this person left their name and words wherever a person can."""
    run = plan(ledger)
    ledger.approvals.decide("bf-1", run.manifest_digest, WHO.person, "approved", WORDS, WHO, break_glass=WORDS)
    for state in (RunState.RUNNING, RunState.STAGED):
        ledger.runs.move("bf-1", state, actor=WHO)
    ledger.candidates.intend("bf-1", "d", WHO)
    ledger.candidates.record("bf-1", 1, None, "11", WHO)
    ledger.approvals.accept_warning("bf-1", "revenue", WORDS, WHO.person, WHO, "f")
    checks = [{"name": "revenue", "accepted_by": WHO.person}]
    ledger.candidates.record_verdict("bf-1", 1, True, checks, "t", WHO)  # noqa: FBT003
    ledger.facts.record("bf-1", "thresholds.1", {"person": WHO.person, "why": WORDS, "rules": {"reason": "r"}}, WHO)
    ledger.releases.record(
        "bf-1", {"candidate": 1}, candidate_n=1, person=WHO.person, kind="release", actor=WHO, note=WORDS,
        break_glass=WORDS,
    )  # fmt: skip
    publish(ledger, "bf-1")
    pub = ledger.publications.intend(
        "bf-1",
        "rollback",
        DAYS,
        table=TABLE,
        person=WHO.person,
        reason=WORDS,
        detail={},
        lease_seconds=60,
        actor=WHO,
        consumers=(),
    )
    settle(ledger, pub)
    ledger.audit.record_refusal("bf-1", WHO, "approve", f"{WHO.person} may not: {WORDS}")


def test_what_people_decided_reads_as_they_said_it(ledger: Ledger):
    """Names and words are translated on the way in and out; nobody who reads the ledger notices."""
    decided(ledger)
    (approval,) = ledger.approvals.list("bf-1")
    assert (approval.person, approval.note, approval.break_glass) == (WHO.person, WORDS, WORDS)
    (warning,) = ledger.approvals.accepted_warnings("bf-1")
    assert (warning.person, warning.why) == (WHO.person, WORDS)
    verdict = ledger.candidates.latest_verdict("bf-1")
    assert verdict is not None
    assert (verdict.person, verdict.checks[0]["accepted_by"]) == (WHO.person, WHO.person)
    assert ledger.facts.list("bf-1")["thresholds.1"] == {"person": WHO.person, "why": WORDS, "rules": {"reason": "r"}}
    assert ledger.publications.list("bf-1")[-1].reason == WORDS
    assert ledger.audit.readable_entries()[-1].actor == WHO
    assert WORDS in ledger.audit.readable_entries()[-1].body["reason"]
    assert ledger.runs.get("bf-1").planned_by == "ana"
    assert ledger.audit.verify().ok


def test_no_row_but_the_subject_s_holds_a_name_or_what_was_typed(ledger: Ledger, shell: Shell):
    """Every other table is dumped and searched."""
    decided(ledger)
    for table in schema.metadata.sorted_tables:
        if table is schema.subject:
            continue
        dump = str(shell.execute(f"SELECT * FROM {table.name}").fetchall())
        for word in (WHO.person, WHO.os_user, "ana-os", "tariff"):
            assert word not in dump, (table.name, word)


def test_an_erased_person_is_forgotten_and_the_chain_holds(ledger: Ledger):
    """Name and words are gone; hashes, decisions and pseudonym stay."""
    decided(ledger)
    before = ledger.audit.entries()
    done = ledger.people.erase(WHO.person, "asked for it", ANA)
    assert is_pseudonym(done.pseudonym)
    assert not done.already
    assert ledger.audit.verify().ok
    assert ledger.audit.entries()[:-1] == before
    (approval,) = ledger.approvals.list("bf-1")
    assert (approval.person, approval.note) == (done.pseudonym, ERASED)
    assert ledger.facts.list("bf-1")["thresholds.1"] == {
        "person": done.pseudonym,
        "why": ERASED,
        "rules": {"reason": "r"},
    }
    shown = str(ledger.audit.readable_entries())
    assert WHO.person not in shown
    assert "tariff" not in shown
    last = ledger.audit.readable_entries()[-1]
    assert (last.action, last.actor.person, last.body["reason"]) == ("person.erased", "ana", "asked for it")
    again = ledger.people.erase(done.pseudonym, "again", ANA)
    assert again.already
    assert ledger.audit.readable_entries()[-1] == last
    with pytest.raises(NotFound):
        ledger.people.erase(WHO.person, "again", ANA)


@sqlite_only
def test_no_byte_of_an_erased_person_is_left_in_the_file(ledger: Ledger, url: str):
    """Neither in used nor in unused pages, nor in the write-ahead log."""
    path = Path(url.removeprefix("sqlite:///"))

    def found(word: str) -> int:
        return sum(file.read_bytes().count(word.encode()) for file in path.parent.glob(f"{path.name}*"))

    for number in range(40):  # names move between pages as the table grows
        ledger.audit.note(None, Actor(f"{WHO.person}-{number}", "", "workspace"), "note", {"note": f"{WORDS} {number}"})
    decided(ledger)
    with closing(Shell(url)) as shell:
        (stored,) = shell.execute("SELECT secret FROM subject WHERE handle = ?", WHO.person).fetchone()
    secret = bytes(stored)[1:]
    assert found(WHO.os_user)
    for name in (WHO.person, WHO.os_user, *(f"{WHO.person}-{number}" for number in range(40))):
        assert ledger.people.erase(name, "asked for it", ANA).remains == ""
    assert [found(word) for word in (WHO.person, WHO.os_user, "tariff")] == [0, 0, 0]
    assert sum(file.read_bytes().count(secret) for file in path.parent.glob(f"{path.name}*")) == 0
    assert ledger.audit.verify().ok


@sqlite_only
def test_a_reader_that_keeps_old_pages_alive_is_told_and_erasure_can_be_repeated(ledger: Ledger, url: str):
    """Name and key are gone at once; the pages they stood in wait for the reader."""
    ledger.audit.note(None, WHO, "note", {"note": WORDS})
    reader = Shell(url)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM subject")
    ledger.close()
    done = ledger.people.erase(WHO.person, "asked for it", ANA)
    assert "erase the pseudonym again" in done.remains
    reader.execute("COMMIT")
    reader.close()
    assert ledger.people.erase(done.pseudonym, "again", ANA).remains == ""


def test_someone_whose_run_is_under_way_is_not_erased(ledger: Ledger):
    """Under another pseudonym they could approve what they asked for."""
    run_in(ledger, RunState.RUNNING)
    with pytest.raises(StateRefused, match="bf-1"):
        ledger.people.erase("ana", "asked for it", BO)
    assert ledger.audit.readable_entries()[-1].action == "refused"
    ledger.runs.move("bf-1", RunState.CANCELLED, actor=BO)
    ledger.people.erase("ana", "asked for it", BO)
    assert is_pseudonym(ledger.runs.get("bf-1").planned_by)


def test_an_erased_person_who_comes_back_is_someone_new(ledger: Ledger):
    """Nothing links the two."""
    ledger.audit.note(None, WHO, "note")
    first = ledger.people.erase(WHO.person, "asked for it", ANA).pseudonym
    ledger.audit.note(None, WHO, "note")
    (second,) = [one for one, name in ledger.people.names().items() if name == WHO.person]
    assert second != first
    assert [e.actor.person for e in ledger.audit.readable_entries() if e.action == "note"] == [first, WHO.person]


def test_the_same_words_seal_to_the_same_text_for_one_person_only(ledger: Ledger):
    """So entry and row can be compared without a key, and two people's words cannot."""
    one, two, other = (
        ledger.audit.note(None, who, "note", {"note": WORDS}).body["note"] for who in (ANA, ANA, BO)
    )  # fmt: skip
    assert one == two != other
    assert WORDS not in str((one, other))


def test_typed_text_is_bounded(ledger: Ledger):
    """Whatever reaches the ledger, an entry keeps a bounded piece of it."""
    entry = ledger.audit.record_refusal(None, ANA, "approve", "x" * 100_000)
    assert len(ledger.people.readable(entry).body["reason"]) == MAX_TEXT
    assert len(entry.body["reason"]) < 2 * MAX_TEXT


def test_codes_that_programs_write_stay_readable(ledger: Ledger):
    """Reasons that no person typed are not sealed, so that a dump still tells why a chunk was lost."""
    run_in(ledger, RunState.RUNNING)
    entry = ledger.audit.note("bf-1", ANA, "attempt.lost", {"chunk": "c0000", "fence": 0, "reason": "lease-expired"})
    assert entry.body["reason"] == "lease-expired"


@pytest.mark.parametrize("name", ["subject-0123456789abcdef0123"])
def test_nobody_acts_under_a_pseudonym(ledger: Ledger, name: str):
    """It would pass for someone else once that person is erased."""
    with pytest.raises(UsageError, match="pseudonym"):
        ledger.audit.note(None, Actor(name, "", ""), "note")


def test_a_plan_names_its_requester_by_the_pseudonym_they_then_have(ledger: Ledger):
    """Sealed bytes cannot be changed, so they name nobody."""
    alias = ledger.people.alias("ana")
    assert is_pseudonym(alias)
    assert ledger.people.alias("ana") == alias
    assert ledger.people.name(alias) == "ana"
    content = canonical_bytes({"reason": "r", "requested_by": alias})
    common = {"product": "p", "table": TABLE, "partitions": DAYS, "chunks": [], "parts": {}, "actor": ANA}
    ledger.runs.record("bf-1", content, **common)
    assert ledger.people.names()[alias] == "ana"
    assert ledger.people.alias("ana") == alias


def test_a_plan_that_names_another_pseudonym_is_refused(ledger: Ledger, url: str):
    """Two processes may propose two for a new person; one of them is recorded first."""
    content = canonical_bytes({"reason": "r", "requested_by": ledger.people.alias("ana")})
    with Ledger.open(url) as other:
        other.audit.note(None, ANA, "note")
    common = {"product": "p", "table": TABLE, "partitions": DAYS, "chunks": [], "parts": {}, "actor": ANA}
    with pytest.raises(StateRefused, match="another pseudonym"):
        ledger.runs.record("bf-1", content, **common)
    assert ledger.runs.list() == ()


def test_the_database_erases_as_a_whole_and_with_an_entry_only(ledger: Ledger, shell: Shell):
    """Whoever has a shell cannot take a name and leave the key, change a name, or forget somebody silently."""
    ledger.audit.note(None, WHO, "note")
    for statement in (
        "UPDATE subject SET handle = 'eve'",
        "UPDATE subject SET secret = NULL",
        "UPDATE subject SET handle = NULL, secret = NULL",
        "UPDATE subject SET pseudonym = 'x'",
    ):
        refused(lambda statement=statement: shell.execute(statement), "erased as a whole")
    refused(lambda: shell.execute("DELETE FROM subject"), "delete refused")
    taken = (
        "INSERT INTO subject (pseudonym, handle, secret, at, audit_seq) SELECT 'x', handle, secret, at, 1 FROM subject"
    )
    refused(lambda: shell.execute(taken), "one pseudonym")


class TestWrapped:
    """With ``evidence.subject_key`` a copy of the ledger alone reads nothing that people typed."""

    KEY = bytes(range(64))

    def test_keys_are_of_no_use_without_the_project_s(self, url: str):
        """Names and decisions are there; the words need the key."""
        with Ledger.open(url, wrapping=lambda: self.KEY) as ledger:
            ledger.audit.note(None, WHO, "note", {"note": WORDS})
            assert ledger.audit.readable_entries()[-1].body["note"] == WORDS
        with Ledger.open(url) as without:
            (entry,) = without.audit.readable_entries()
            assert entry.actor == WHO
            assert "evidence.subject_key" in entry.body["note"]
            assert without.audit.verify().ok
            with pytest.raises(KeyRefused):
                without.audit.note(None, WHO, "note", {"note": "more"})
            without.audit.note(None, WHO, "note", {"other": "more"})
        with Ledger.open(url, wrapping=lambda: self.KEY[::-1]) as wrong:
            assert "cannot be read" in wrong.audit.readable_entries()[0].body["note"]

    def test_a_key_that_is_given_later_serves_new_people(self, url: str):
        """Those before keep theirs as they are."""
        with Ledger.open(url) as before:
            before.audit.note(None, ANA, "note", {"note": "first"})
        with Ledger.open(url, wrapping=lambda: self.KEY) as after:
            after.audit.note(None, BO, "note", {"note": "second"})
            assert [entry.body["note"] for entry in after.audit.readable_entries()] == ["first", "second"]


def test_as_stored_shows_what_is_hashed(ledger: Ledger):
    """Evidence is made of it: rows, manifest and audit name the same pseudonyms and sealed words."""
    decided(ledger)
    with ledger.people.as_stored():
        (approval,) = ledger.approvals.list("bf-1")
        planned = ledger.runs.get("bf-1").planned_by
        fact = ledger.facts.list("bf-1")["thresholds.1"]
    entry = next(one for one in ledger.audit.entries("bf-1") if one.action == "run.approved")
    assert (approval.person, approval.note) == (entry.body["person"], entry.body["note"])
    assert is_pseudonym(planned)
    told = next(one for one in ledger.audit.entries("bf-1") if one.action == "fact.thresholds.1")
    assert json.loads(canonical_bytes(fact)) == dict(told.body)
    assert replace(approval, note="") != approval


def test_an_account_that_nobody_else_used_is_named_when_its_person_is_erased(ledger: Ledger):
    """It is a name of its own, and often says who it was; one that others share says nothing about one of them."""
    decided(ledger)
    ledger.audit.note(None, Actor(WHO.person, "shared", "workspace"), "noted")
    ledger.audit.note(None, Actor("ana", "shared", "workspace"), "noted")
    done = ledger.people.erase(WHO.person, "asked for it", ANA)
    assert done.accounts == (WHO.os_user,)
    assert ledger.people.erase(WHO.os_user, "asked for it", ANA).accounts == ()
