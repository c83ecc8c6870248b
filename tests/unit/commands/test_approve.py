"""Approvals: distinct people, the product's owner, today's roles, their age; and what breaking the glass replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.commands.compute.run import start_run
from errata.delivery.payment import pay
from errata.errors import ApprovalRefused, PermissionRefused, StateRefused, UsageError
from errata.failpoints import arm
from errata.model.approval import ApprovalRules
from errata.model.product import Person, Role
from errata.workspace import RunContext
from support.office import ANA, NO_TEAMS, PEOPLE, Office, office
from unit.ledger.steps import publish

Make = Callable[..., Office]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Office] = []

    def _make(*arguments: Any, **options: Any) -> Office:
        made.append(office(tmp_path, *arguments, **options))
        return made[-1]

    yield _make
    for one in made:
        one.ledger.close()


def test_one_approval_by_someone_else_is_enough_where_nothing_is_configured(make: Make):
    """As it always was: planned to approved by one person, and again changes nothing."""
    workspace = make()
    view = workspace.approve("bo")
    assert (view.state, view.already, view.quorum.told) == ("approved", False, "1 of 1 approval")
    assert workspace.approve("bo").already
    assert workspace.actions() == ["run.planned", "run.approved"]


def test_a_run_is_approved_by_the_approval_that_fills_the_quorum(make: Make):
    """Before it the run stays planned, and status and show say how many of how many."""
    workspace = make(rules=ApprovalRules(quorum=2))
    first = workspace.approve("bo")
    assert (first.state, first.quorum.told, first.quorum.may) == ("planned", "1 of 2 approvals", ("cy", "dana"))
    assert workspace.approve("bo").already, "the same person counts once"
    assert workspace.state == "planned"
    shown = workspace.client.show(workspace.run.run_id).quorum
    assert (shown.given, shown.needed, shown.met) == (1, 2, False)
    assert workspace.approve("cy").state == "approved"
    assert workspace.actions()[-2:] == ["approval.recorded", "run.approved"]
    assert workspace.ledger.audit.verify().ok


def test_a_planned_run_does_not_start_before_its_quorum(make: Make):
    """The state machine holds it, whatever the approvals say."""
    workspace = make(rules=ApprovalRules(quorum=2))
    workspace.approve("bo")
    with pytest.raises(StateRefused, match=r"^run of bf-\S+ was refused; expected state approved, found planned") as no:
        workspace.client.run(workspace.run.run_id, as_="ana")
    assert no.value.hint == f"errata approve {workspace.run.run_id} --as cy"


def test_cancelling_a_run_that_is_out_in_part_ends_the_rest(make: Make):
    """What readers have stays until someone rolls it back; the rest never goes."""
    workspace = make()
    workspace.approve("bo")
    workspace.judged()
    publish(workspace.ledger, workspace.run.run_id, workspace.run.partitions[:1])
    done = workspace.client.cancel(workspace.run.run_id, reason="no longer needed", as_="ana")
    assert (done.state, f"errata rollback {workspace.run.run_id} --reason" in done.note) == ("cancelled", True)
    states = {state.value for state in workspace.ledger.partitions.states(workspace.run.run_id).values()}
    assert states == {"accepted", "unpublished"}


def test_a_run_that_is_out_is_rolled_back_and_not_cancelled(make: Make):
    """The refusal says it in the words that people type, with the command that works."""
    workspace = make()
    workspace.approve("bo")
    workspace.judged()
    publish(workspace.ledger, workspace.run.run_id, workspace.run.partitions)
    with pytest.raises(StateRefused, match=r"^cancel of bf-\S+ was refused; .* found published") as refused:
        workspace.client.cancel(workspace.run.run_id, reason="no longer needed", as_="ana")
    assert f"errata rollback {workspace.run.run_id} --reason" in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["BO", "Bo", "bO"])
def test_another_letter_case_is_refused_with_the_right_spelling(make: Make, name: str):
    """Two spellings would be two people to a rule that counts them."""
    workspace = make(rules=ApprovalRules(quorum=2))
    workspace.approve("bo")
    with pytest.raises(PermissionRefused, match=f"{name} is not how bo is spelt") as refused:
        workspace.approve(name)
    assert refused.value.hint == "--as bo"
    assert workspace.actions()[-1] == "refused"


def test_an_alias_is_the_same_person(make: Make):
    """An alias acts under the listed name, so it neither counts twice nor gets round the requester's rule."""
    workspace = make({**NO_TEAMS, "bo": replace(NO_TEAMS["bo"], aliases=("b.olsen",))}, rules=ApprovalRules(quorum=2))
    workspace.approve("bo")
    assert workspace.approve("b.olsen").already
    assert [one.person for one in workspace.ledger.approvals.list(workspace.run.run_id)] == ["bo"]
    workspace = make({**NO_TEAMS, "cy": replace(NO_TEAMS["cy"], aliases=("c.young",))}, requester="cy", manual=False)
    with pytest.raises(ApprovalRefused, match="other than the requester, found cy"):
        workspace.approve("c.young")


def test_a_requester_under_an_alias_is_known_as_the_same_person(make: Make):
    """A run that was asked for under a name that became an alias is not approved by its owner."""
    workspace = make({**NO_TEAMS, "cy": replace(NO_TEAMS["cy"], aliases=("c.young",))}, requester="C.Young")
    with pytest.raises(ApprovalRefused, match="other than the requester"):
        workspace.approve("cy")


def test_a_service_account_never_approves_declines_or_accepts(make: Make):
    """Neither by the role it has nor by one that a file wrongly gives it."""
    workspace = make()
    with pytest.raises(PermissionRefused, match="expected the role approver, airflow has operator, publisher"):
        workspace.approve("airflow")
    workspace.staff(airflow=Person("airflow", (Role.APPROVER,), service=True))
    for act in (
        lambda: workspace.approve("airflow"),
        lambda: workspace.client.decline(workspace.run.run_id, note="no", as_="airflow"),
        lambda: workspace.client.validate(workspace.run.run_id, accept={"moved": "fine"}, as_="airflow"),
    ):
        with pytest.raises(PermissionRefused, match="expected a person, airflow is a service account"):
            act()


def test_one_approval_comes_from_the_team_that_owns_the_product(make: Make):
    """The last seat is kept for it; the refusal names who may."""
    workspace = make(PEOPLE)
    with pytest.raises(ApprovalRefused, match=r"someone of finance-data, which owns fin.daily_revenue \(dana\)") as no:
        workspace.approve("bo")
    assert no.value.hint == "ask dana"
    assert workspace.state == "planned"
    assert workspace.ledger.approvals.list(workspace.run.run_id) == ()
    assert workspace.approve("dana").state == "approved"


def test_with_a_larger_quorum_others_take_the_other_seats(make: Make):
    """bo's approval counts; cy's would leave no seat for the owner."""
    workspace = make(PEOPLE, rules=ApprovalRules(quorum=2))
    first = workspace.approve("bo").quorum
    assert (first.told, first.may) == ("1 of 2 approvals, one of finance-data is missing", ("dana",))
    with pytest.raises(ApprovalRefused, match="found bo, cy"):
        workspace.approve("cy")
    assert workspace.approve("dana").state == "approved"


@pytest.mark.parametrize(
    "change", [{"rules": ApprovalRules(owner=False)}, {"people": NO_TEAMS}], ids=["owner: false", "no such team"]
)
def test_the_owner_is_asked_only_where_the_project_says_so(make: Make, change: dict[str, Any]):
    """Without the rule, or without anyone in that team, any other approver will do."""
    workspace = make(**({"people": PEOPLE} | change))
    assert workspace.approve("bo").state == "approved"


def test_an_approval_grows_old(make: Make):
    """At the start of a run it no longer counts; the refusal says what to do, and that mends it."""
    workspace = make(rules=ApprovalRules(valid="7d"))
    workspace.approve("bo")
    with workspace.later(days=8):
        run = workspace.ledger.runs.get(workspace.run.run_id)
        with pytest.raises(ApprovalRefused, match=r"0 of 1 approval; that of bo is of .* and counts for 7d") as refused:
            start_run(RunContext(workspace.workspace, ANA, run, workspace.manifest))
        assert refused.value.hint == f"approve again, by bo or cy or dana: errata approve {run.run_id}"
        shown = workspace.client.show(run.run_id).quorum
        assert not shown.met
        assert list(shown.void) == ["bo"]
        again = workspace.approve("bo")
        assert (again.state, again.already, again.quorum.met) == ("approved", False, True)
        assert (
            start_run(
                RunContext(workspace.workspace, ANA, workspace.ledger.runs.get(run.run_id), workspace.manifest)
            ).state.value
            == "running"
        )
    assert workspace.actions()[-2:] == ["approval.recorded", "run.running"]


def test_an_approver_who_lost_the_role_no_longer_counts(make: Make):
    """Roles are those of the project file of today, at run start as at publication."""
    workspace = make()
    workspace.approve("bo")
    workspace.staff(bo=Person("bo", (Role.PUBLISHER,)))
    with pytest.raises(ApprovalRefused, match="that of bo needs the role approver, now gone"):
        start_run(
            RunContext(workspace.workspace, ANA, workspace.ledger.runs.get(workspace.run.run_id), workspace.manifest)
        )
    assert workspace.approve("cy").quorum.people == ("cy",)


def test_while_approvals_stand_no_more_are_taken(make: Make):
    """An approved run is approved; one more is refused as a move that the state machine does not know."""
    workspace = make()
    workspace.approve("bo")
    with pytest.raises(StateRefused):
        workspace.approve("cy")


class TestBreakGlass:
    """One person decides alone, with a reason, and everyone hears of it."""

    def test_it_stands_for_the_second_person_and_the_quorum(self, make: Make):
        """Even for the requester and an owner's seat; it is an entry of its own, and rings the alarm."""
        people = {**PEOPLE, "dana": replace(PEOPLE["dana"], teams=())}
        workspace = make({**people, "bo": replace(PEOPLE["bo"], teams=("finance-data",))}, requester="dana",
                    rules=ApprovalRules(quorum=3))  # fmt: skip
        view = workspace.approve("dana", break_glass="market opens in 10 min")
        assert view.state == "approved"
        assert (view.break_glass.person, view.break_glass.why) == ("dana", "market opens in 10 min")
        assert (view.break_glass.deed, view.break_glass.alarm) == ("approve", "rung")
        assert workspace.actions() == [
            "run.planned", "break_glass.approve", "run.approved", "outbox.owed", "outbox.paid",
        ]  # fmt: skip
        (heard,) = workspace.bell.heard
        assert heard.items() >= {"person": "dana", "why": "market opens in 10 min", "deed": "approve"}.items()
        assert any("BREAK-GLASS: dana" in line for line in workspace.said)
        status = workspace.client.show(workspace.run.run_id)
        assert status.break_glass.why == "market opens in 10 min"
        assert status.quorum.told == "break-glass approval by dana"

    def test_it_needs_the_role_and_a_reason(self, make: Make):
        """An approver without the role is refused and audited; without a why nothing happens."""
        workspace = make()
        with pytest.raises(PermissionRefused, match="expected the role break_glass"):
            workspace.approve("bo", break_glass="now")
        with pytest.raises(UsageError, match="why it cannot wait"):
            workspace.approve("dana", break_glass="  ")
        assert workspace.state == "planned"
        assert workspace.bell.heard == []

    def test_it_does_not_stand_for_the_digest(self, make: Make):
        """What was read is what is signed, in a hurry too."""
        workspace = make()
        with pytest.raises(ApprovalRefused, match=r"^approve of \S+ was refused; 0{64} is not the digest of its plan"):
            workspace.client.approve(workspace.run.run_id, digest="0" * 64, break_glass="now", as_="dana")
        assert workspace.bell.heard == []

    def test_it_no_longer_counts_when_the_role_is_gone(self, make: Make):
        """Today's roles, here too."""
        workspace = make()
        workspace.approve("dana", break_glass="now")
        workspace.staff(dana=None)
        with pytest.raises(ApprovalRefused, match="needs the role break_glass, now gone"):
            start_run(
                RunContext(
                    workspace.workspace, ANA, workspace.ledger.runs.get(workspace.run.run_id), workspace.manifest
                )
            )

    def test_an_alarm_that_does_not_work_is_seen_and_undoes_nothing(self, make: Make):
        """The decision stands; the failure is told and shown, and the alarm stays owed until it was sent."""
        workspace = make()
        workspace.bell.broken = "the alarm command ended with 1"
        view = workspace.approve("dana", break_glass="now")
        assert (view.state, view.break_glass.alarm) == ("approved", "failed: the alarm command ended with 1")
        assert any("the alarm did not work" in line for line in workspace.said)
        workspace.bell.broken = ""
        with workspace.later(seconds=5):
            pay(workspace.workspace, ANA)
        assert len(workspace.bell.heard) == 1
        assert workspace.client.show(workspace.run.run_id).break_glass.alarm == "rung"

    def test_without_an_alarm_it_says_so(self, make: Make):
        """Nobody may believe that someone was told."""
        workspace = make()
        workspace.bell.is_there = False
        assert workspace.approve("dana", break_glass="now").break_glass.alarm == "failed: none is configured"

    def test_an_alarm_that_a_crash_cut_off_is_made_up_for(self, make: Make):
        """The decision is on record and nobody was told: the next command of the run rings."""
        workspace = make()

        def die() -> None:
            raise KeyboardInterrupt

        with arm("alarm.before_ring", die), pytest.raises(KeyboardInterrupt):
            workspace.approve("dana", break_glass="now")
        assert (workspace.state, workspace.bell.heard) == ("approved", [])
        assert workspace.client.show(workspace.run.run_id).break_glass.alarm == "not rung yet"
        start_run(
            RunContext(workspace.workspace, ANA, workspace.ledger.runs.get(workspace.run.run_id), workspace.manifest)
        )
        assert len(workspace.bell.heard) == 1
        workspace.approve("dana", break_glass="now")
        assert len(workspace.bell.heard) == 1


def test_single_user_mode_is_said_and_needs_one_approval(make: Make):
    """One person may do everything, and every answer and record says so."""
    workspace = make(single_user=True)
    view = workspace.approve("ana")
    assert (view.state, view.single_user) == ("approved", True)
    assert all(entry.actor.single_user for entry in workspace.ledger.audit.entries())


@pytest.mark.parametrize(
    "options, deed", [({"accept": {"moved": "it was"}}, "--accept"), ({"thresholds": "too tight"}, "--thresholds")]
)
def test_an_operator_validates_and_takes_no_warning_on_herself(make: Make, options: dict[str, Any], deed: str):
    """The refusal is of the decision and not of validating, which she may."""
    workspace = make()
    with pytest.raises(PermissionRefused, match=f"^validate {deed} was refused; expected the role approver"):
        workspace.client.validate(workspace.run.run_id, as_="ana", **options)
