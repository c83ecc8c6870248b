"""Approvals that must be enough, and releases: both databases, and many people at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from errata.errors import ApprovalRefused, ErrataError, StateRefused
from errata.ledger import ApprovalRecord, Ledger
from errata.model.approval import ApprovalRules, QuorumStatus, Voters, count_approvals
from errata.model.audit import Actor
from errata.model.run import RunState
from support.ids import numbered
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import BO, DAYS, actions, intend, judge, plan, run_in, settle

CROWD = 50
FORGED = (
    "INSERT INTO released (run_id, candidate_n, digest, subject, kind, person, note, break_glass, at, audit_seq)"
    " SELECT run_id, candidate_n, digest, subject, kind, 'eve', note, break_glass, at, audit_seq - 1 FROM released"
)


def judge_of(quorum: int, people: int = CROWD, team: frozenset[str] = frozenset()) -> Any:
    """A rule over people p0, p1, …"""
    voters = Voters(frozenset(f"p{n}" for n in range(people)), owner="owners" if team else "", team=team)

    def count(given: tuple[ApprovalRecord, ...], at: str) -> QuorumStatus:
        now = datetime.fromisoformat(at)
        digest = given[0].digest if given else ""
        return count_approvals(ApprovalRules(quorum), voters, given, digest=digest, requester="ana", now=now)

    return count


def approve(ledger: Ledger, digest: str, person: str, rule: Any, **options: Any) -> Any:
    return ledger.approvals.decide(
        "bf-1", digest, person, "approved", "", Actor(person, "u", "h"), judge=rule, **options
    )


def validated(ledger: Ledger) -> None:
    """A run with a candidate that passed."""
    run_in(ledger, RunState.STAGED)
    ledger.candidates.intend("bf-1", "c" * 64, BO)
    ledger.candidates.record("bf-1", 1, None, "901", BO)
    judge(ledger, passed=True)


def release(ledger: Ledger, person: str = "bo", *, subject: str = "s", **options: Any) -> Any:
    actor = Actor(person, "u", "h")
    return ledger.releases.record(
        "bf-1", {"of": subject}, candidate_n=1, person=person, kind="release", actor=actor, **options
    )


def crowd(act: Callable[[int], Any]) -> list[Any]:
    """Fifty at the same moment; what each of them got."""
    start = threading.Barrier(CROWD)

    def one(n: int) -> Any:
        start.wait(60)
        try:
            return act(n)
        except ErrataError as error:
            return error.code

    with ThreadPoolExecutor(CROWD) as pool:
        return list(pool.map(one, range(CROWD)))


def test_the_approval_that_makes_them_enough_moves_the_run(ledger: Ledger):
    """Before it the run stays planned; each approval is a row and an entry."""
    run, rule = plan(ledger), judge_of(3)
    for n in range(2):
        assert approve(ledger, run.manifest_digest, f"p{n}", rule)[0].state is RunState.PLANNED
    assert approve(ledger, run.manifest_digest, "p1", rule) == (ledger.runs.get("bf-1"), True)
    assert approve(ledger, run.manifest_digest, "p2", rule)[0].state is RunState.APPROVED
    assert actions(ledger) == ["run.planned", "approval.recorded", "approval.recorded", "run.approved"]
    assert [one.person for one in ledger.approvals.list("bf-1")] == ["p0", "p1", "p2"]
    assert ledger.audit.verify().ok


def test_the_last_seat_is_the_owner_s(ledger: Ledger):
    """An approval that would leave no seat for the owning team is refused and audited, and is no row."""
    run, rule = plan(ledger), judge_of(1, team=frozenset({"p7"}))
    with pytest.raises(ApprovalRefused, match="someone of owners"):
        approve(ledger, run.manifest_digest, "p0", rule)
    assert ledger.approvals.list("bf-1") == ()
    assert actions(ledger)[-1] == "refused"
    assert approve(ledger, run.manifest_digest, "p7", rule)[0].state is RunState.APPROVED


def test_fifty_approvers_at_once_move_the_run_once(ledger: Ledger):
    """Exactly so many approvals as the quorum has seats; the others find the run approved."""
    run, rule = plan(ledger), judge_of(5)
    found = crowd(lambda n: approve(ledger, run.manifest_digest, f"p{n}", rule)[0].state.value)
    assert sorted(found) == sorted(["planned"] * 4 + ["approved"] + ["state"] * (CROWD - 5))
    assert len(ledger.approvals.list("bf-1")) == 5
    assert actions(ledger).count("run.approved") == 1
    assert ledger.audit.verify().ok


def test_one_person_fifty_times_at_once_is_one_approval(ledger: Ledger):
    """Double clicks and second tokens do not fill a quorum."""
    run, rule = plan(ledger), judge_of(2)
    found = crowd(lambda _: approve(ledger, run.manifest_digest, "p1", rule))
    assert sorted(already for _, already in found) == [False] + [True] * (CROWD - 1)
    assert (len(ledger.approvals.list("bf-1")), ledger.runs.get("bf-1").state) == (1, RunState.PLANNED)


def test_fifty_approvers_and_a_no_end_in_one_decision(ledger: Ledger):
    """Whoever comes first decides: approved by a full quorum or declined, never both."""
    run, rule = plan(ledger), judge_of(2)

    def act(n: int) -> str:
        if n == 25:
            said = ledger.approvals.decide("bf-1", run.manifest_digest, "p25", "declined", "no", Actor("p25", "u", "h"))
            return str(said[0].state.value)
        return str(approve(ledger, run.manifest_digest, f"p{n}", rule)[0].state.value)

    found = crowd(act)
    state = ledger.runs.get("bf-1").state
    assert state in (RunState.APPROVED, RunState.DECLINED)
    assert found.count(state.value) == 1
    assert ledger.audit.verify().ok


def test_breaking_the_glass_is_an_entry_of_its_own(ledger: Ledger):
    """In the transaction of the decision that it makes possible."""
    run = plan(ledger)

    def rule(given: tuple[ApprovalRecord, ...], at: str) -> QuorumStatus:
        voters = Voters(breakers=frozenset({"dana"}))
        now = datetime.fromisoformat(at)
        return count_approvals(ApprovalRules(9), voters, given, digest=run.manifest_digest, requester="ana", now=now)

    moved, _ = approve(ledger, run.manifest_digest, "dana", rule, break_glass="market opens")
    assert moved.state is RunState.APPROVED
    assert actions(ledger) == ["run.planned", "break_glass.approve", "run.approved"]
    (row,) = ledger.approvals.list("bf-1")
    assert (row.break_glass, row.audit_seq) == ("market opens", 3)
    assert approve(ledger, run.manifest_digest, "dana", rule, break_glass="market opens")[1]


def test_a_release_is_kept_with_its_audit_entry(ledger: Ledger):
    """The same by the same person changes nothing; another subject or person is another release."""
    validated(ledger)
    first, already = release(ledger, note="fine")
    assert (first.person, first.kind, first.note, already) == ("bo", "release", "fine", False)
    assert release(ledger) == (first, True)
    second, _ = release(ledger, subject="other")
    third, _ = release(ledger, "cy", subject="other")
    assert ledger.releases.list("bf-1") == (first, second, third)
    assert first.audit_seq == next(e.seq for e in ledger.audit.entries("bf-1") if e.action == "run.released")
    assert ledger.audit.verify().ok


@pytest.mark.parametrize("state", [state for state in RunState if state not in ("validated", "part_published")])
def test_only_a_validated_run_is_released(ledger: Ledger, state: RunState):
    """Every other state refuses, audited, and leaves no row."""
    run_in(ledger, state)
    with pytest.raises(StateRefused, match=f"found {state.value}"):
        release(ledger)
    assert ledger.releases.list("bf-1") == ()
    assert actions(ledger)[-1] == "refused"


def test_fifty_releases_of_the_same_are_one(ledger: Ledger):
    """One person, one subject, one row."""
    validated(ledger)
    found = crowd(lambda _: release(ledger))
    assert len({record.release_id for record, _ in found}) == 1
    assert len(ledger.releases.list("bf-1")) == 1


def test_fifty_publishers_under_one_release_publish_once(ledger: Ledger):
    """One intent wins; everyone else is refused by state or by the lock, on the record."""
    validated(ledger)
    record, _ = release(ledger)
    told = {"release": record.release_id, "verdict": ledger.audit.entries("bf-1")[-2].seq}

    def act(_: int) -> str:
        pub = intend(ledger, "bf-1", DAYS, release=told)
        settle(ledger, pub)
        return numbered(pub.pub_id)

    found = crowd(act)
    assert found.count("bf-1-p1") == 1
    assert set(found) <= {"bf-1-p1", "state", "scope-locked"}
    assert actions(ledger).count("publish.committed") == 1
    assert ledger.audit.verify().ok


def test_a_publication_under_an_overtaken_release_is_refused(ledger: Ledger):
    """Looked at in the transaction of the intent, so nothing comes between."""
    validated(ledger)
    seen = ledger.candidates.latest_verdict("bf-1")
    assert seen is not None
    judge(ledger, thresholds="u" * 64, passed=True)
    with pytest.raises(ApprovalRefused, match=f"released over the verdict of entry {seen.audit_seq}"):
        intend(ledger, "bf-1", DAYS, release={"verdict": seen.audit_seq})
    assert ledger.publications.list("bf-1") == ()
    assert ledger.runs.get("bf-1").state is RunState.VALIDATED


def test_a_publication_names_a_release_of_its_own_run(ledger: Ledger):
    """Another run's release, or none at all, lets nothing out."""
    validated(ledger)
    record, _ = release(ledger)
    run_in(ledger, RunState.VALIDATED, "bf-2", ("2026-02-01",))
    for name, days, release_id in (("bf-2", ("2026-02-01",), record.release_id), ("bf-1", DAYS, 99)):
        with pytest.raises(ApprovalRefused, match=f"expected release {release_id} of this run, found none"):
            intend(ledger, name, days, release={"release": release_id})


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE released SET person = 'eve'",
        "DELETE FROM released",
        FORGED,
    ],
    ids=["update", "delete", "without an entry"],
)
def test_someone_with_a_shell_cannot_forge_a_release(ledger: Ledger, shell: Shell, statement: str):
    """The database refuses a changed, a removed and an unlogged release."""
    validated(ledger)
    release(ledger)
    before = ledger.releases.list("bf-1")
    refused(lambda: shell.execute(statement), "released: ")
    assert ledger.releases.list("bf-1") == before


def test_a_person_s_release_is_not_the_one_that_a_clean_gate_gave_for_them(ledger: Ledger):
    """Whoever started an automatic publication did not look; once the product wants a person, their word is a row."""
    validated(ledger)
    options = {"candidate_n": 1, "person": "bo", "actor": Actor("bo", "u", "h")}
    by_itself, _ = ledger.releases.record("bf-1", {"of": "s"}, kind="automatic", **options)
    assert ledger.releases.record("bf-1", {"of": "s"}, kind="automatic", **options) == (by_itself, True)
    decided, already = release(ledger, "bo")
    assert (already, decided.kind) == (False, "release")
    assert ledger.releases.record("bf-1", {"of": "s"}, kind="publish", **options) == (decided, True)
