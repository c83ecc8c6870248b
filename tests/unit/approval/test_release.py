"""Release: a person's decision over candidate, verdict and accepted warnings, and what a publication needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.approval.authorization import Authorization, authorize_publication
from errata.approval.release import name_releaser
from errata.cli.render.approval import render_released
from errata.delivery.alarms import raise_alarm
from errata.errors import ApprovalRefused, PermissionRefused, StateRefused
from errata.model.approval import ApprovalRules
from errata.model.audit import Actor
from errata.model.product import Person, Role
from errata.model.run import RunState
from errata.model.table import DataFile
from errata.workspace import RunContext
from support.office import ANA, OK, WARNED, Office, office
from unit.ledger.steps import intend, settle

Make = Callable[..., Office]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Office] = []

    def _make(*arguments: Any, **options: Any) -> Office:
        workspace = office(tmp_path, *arguments, **options)
        made.append(workspace)
        return workspace

    yield _make
    for one in made:
        one.ledger.close()


@pytest.fixture
def ready(make: Make) -> Office:
    """An approved run whose gate passed and found nothing."""
    workspace = make()
    workspace.approve("bo")
    workspace.judged(OK)
    return workspace


def signed(workspace: Office, person: str = "bo", **options: Any) -> Any:
    return workspace.client.release(workspace.run.run_id, digest=digest(workspace), as_=person, **options)


def digest(workspace: Office) -> str:
    found = workspace.client.show(workspace.run.run_id).release_digest
    assert found is not None
    return found


def warranted(workspace: Office, person: str, **options: Any) -> Authorization:
    single = workspace.workspace.project.single_user
    run = workspace.ledger.runs.get(workspace.run.run_id)
    return authorize_publication(
        RunContext(workspace.workspace, Actor(person, "u", "h", single), run, workspace.manifest), **options
    )


class TestRelease:
    """``errata release``."""

    def test_without_a_digest_it_shows_what_would_be_signed_and_refuses(self, ready: Office):
        """Exit 3 and the view; nothing is recorded."""
        with pytest.raises(ApprovalRefused) as refused:
            ready.client.release(ready.run.run_id, as_="bo")
        view = refused.value.fields["release"]
        assert refused.value.exit_code == 3
        assert view.release_digest not in (refused.value.hint or "")
        assert view.release_digest == digest(ready)
        assert (view.checks, view.accepted, view.partitions) == ({"ok": 1}, (), ready.run.partitions)
        assert ready.ledger.releases.list(ready.run.run_id) == ()

    def test_a_person_signs_the_digest_that_was_shown(self, ready: Office):
        """The row holds what was signed; the same again changes nothing."""
        view = signed(ready, note="checked with the bank")
        assert (view.already, view.release.person, view.release.valid) == (False, "bo", True)
        assert signed(ready).already
        (row,) = ready.ledger.releases.list(ready.run.run_id)
        assert (row.digest, row.kind, row.note) == (digest(ready), "release", "checked with the bank")
        assert ready.actions().count("run.released") == 1
        assert ready.ledger.audit.verify().ok

    def test_another_digest_is_refused(self, ready: Office):
        """What was read is what is signed; the refusal does not give the right digest away."""
        with pytest.raises(ApprovalRefused, match=f"{'0' * 64} is not the digest") as refused:
            ready.client.release(ready.run.run_id, digest="0" * 64, as_="bo")
        assert digest(ready) not in repr((refused.value.message, refused.value.hint, refused.value.fields))

    def test_it_is_a_person_s_decision_and_not_the_requester_s(self, make: Make):
        """A service account, the requester and someone without the role are refused."""
        workspace = make(requester="cy")
        workspace.approve("bo")
        workspace.judged(OK)
        with pytest.raises(PermissionRefused, match="airflow is a service account") as refused:
            signed(workspace, "airflow")
        assert refused.value.hint == "ask bo or cy or dana"
        with pytest.raises(ApprovalRefused, match="other than the requester, found cy"):
            signed(workspace, "cy")
        with pytest.raises(PermissionRefused, match="expected the role publisher"):
            signed(workspace, "ana")

    def test_only_what_passed_its_gate_is_released(self, make: Make):
        """Before a verdict, and while a warning waits, there is nothing to sign."""
        workspace = make()
        with pytest.raises(StateRefused, match="expected a validated run, found planned"):
            workspace.client.release(workspace.run.run_id, as_="bo")
        workspace.judged(WARNED, passed=False)
        with pytest.raises(StateRefused, match="found needs_acceptance"):
            workspace.client.release(workspace.run.run_id, as_="bo")
        assert workspace.client.show(workspace.run.run_id).release_digest is None


class TestWarrant:
    """What lets a publication go ahead."""

    def test_a_person_releases_by_publishing(self, ready: Office):
        """Release and deed in one, recorded as a release."""
        found = warranted(ready, "bo")
        assert (found.release.kind, found.release.person) == ("publish", "bo")
        assert found.told["release_digest"] == digest(ready)
        assert warranted(ready, "bo").release == found.release, "a repetition finds its own"

    def test_only_a_publication_that_landed_has_a_publisher(self, ready: Office):
        """A release by a publish that was refused says that nothing landed; afterwards it names who published."""
        run, told = ready.run.run_id, warranted(ready, "bo").told
        for outcome, publisher, text in (
            ("abandoned", None, "released by bo with errata publish, which has not landed"),
            ("committed", "bo", "released by bo, who published"),
        ):
            settle(ready.ledger, intend(ready.ledger, run, ready.run.partitions, release=told), outcome)
            release = ready.client.show(run).release
            assert release.published_by == publisher
            assert text in " ".join(render_released(None, release, 200))

    def test_a_service_account_needs_a_person_s_release(self, ready: Office):
        """Without one it is refused with the command for a person; with one it goes."""
        with pytest.raises(ApprovalRefused, match="no person has released this candidate") as refused:
            warranted(ready, "airflow")
        assert refused.value.hint == f"errata release {ready.run.run_id}"
        signed(ready)
        found = warranted(ready, "airflow")
        assert (found.release.kind, found.release.person) == ("release", "bo")
        assert len(ready.ledger.releases.list(ready.run.run_id)) == 1

    @pytest.mark.parametrize(
        "change, why",
        [
            (lambda workspace: (workspace.candidate(), workspace.verdict(OK)), "there is a new candidate"),
            (lambda workspace: workspace.verdict(OK, OK), "the candidate was judged again"),
            (lambda workspace: workspace.verdict(OK), "the candidate was judged again"),
            (
                lambda workspace: (
                    workspace.ledger.approvals.accept_warning(
                        workspace.run.run_id, "moved", "known", "bo", Actor("bo", "u", "h"), "f" * 64
                    ),
                    workspace.verdict(WARNED | {"accepted_by": "bo"}),
                ),
                "the accepted warnings are others",
            ),
        ],
        ids=["candidate", "verdict", "the same verdict again", "acceptance"],
    )
    def test_a_new_candidate_verdict_or_acceptance_voids_a_release(
        self, ready: Office, change: Callable[[Office], None], why: str
    ):
        """The old one says why it no longer counts; a new one makes it good."""
        signed(ready)
        before = digest(ready)
        change(ready)
        assert digest(ready) != before
        with pytest.raises(ApprovalRefused, match=f"the release by bo no longer counts: {why}"):
            warranted(ready, "airflow")
        shown = ready.client.show(ready.run.run_id).release
        assert (shown.valid, shown.void) == (False, why)
        signed(ready)
        assert warranted(ready, "airflow").release.person == "bo"

    def test_a_release_is_void_while_partitions_are_computed_again(self, ready: Office):
        """After a rebase there is no candidate to publish, so nobody is shown a release that seems to hold."""
        signed(ready)
        ready.ledger.runs.move(ready.run.run_id, RunState.RUNNING, actor=ANA)
        shown = ready.client.show(ready.run.run_id).release
        assert (shown.valid, "was given up" in shown.void) == (False, True)

    def test_a_release_is_void_when_the_gate_then_says_no(self, ready: Office):
        """A run that no longer passes shows the release that was given, and that it no longer counts."""
        signed(ready)
        ready.verdict(WARNED, passed=False)
        shown = ready.client.show(ready.run.run_id)
        assert (shown.state, shown.release_digest, shown.release.valid) == ("needs_acceptance", None, False)
        assert shown.release.void == "the candidate was judged again"

    @pytest.mark.parametrize(
        "bo, why",
        [
            (Person("bo", (Role.APPROVER,)), "bo no longer has the role publisher"),
            (None, "bo no longer has the role publisher"),
            (Person("bo", (Role.APPROVER, Role.PUBLISHER), service=True), "bo is a service account"),
        ],
        ids=["role revoked", "gone", "made a service"],
    )
    def test_roles_are_judged_at_publication(self, ready: Office, bo: Person | None, why: str):
        """Whoever released must be allowed to today."""
        signed(ready)
        ready.staff(bo=bo)
        with pytest.raises(ApprovalRefused, match=why):
            warranted(ready, "airflow")

    def test_an_older_release_by_someone_else_still_counts(self, ready: Office):
        """Two people released the same; one of them lost the role."""
        signed(ready, "bo")
        signed(ready, "dana")
        ready.staff(dana=None)
        assert warranted(ready, "airflow").release.person == "bo"

    def test_release_and_approval_grow_old(self, ready: Office):
        """Both count for as long as the plan says."""
        signed(ready)
        with ready.later(days=31):
            with pytest.raises(ApprovalRefused) as refused:
                warranted(ready, "airflow")
            approval, release = refused.value.fields["problems"]
            assert "no valid approval" in approval
            assert "counts for 30d" in approval
            assert "the release by bo no longer counts" in release
            assert "approve again" in (refused.value.hint or "")
            ready.approve("bo")
            signed(ready)
            assert warranted(ready, "airflow").release.person == "bo"

    def test_a_revoked_approver_is_refused_at_publication(self, ready: Office):
        """The quorum is that of today's roles, though the run was long under way."""
        ready.staff(bo=Person("bo", (Role.PUBLISHER,)))
        with pytest.raises(ApprovalRefused, match="that of bo needs the role approver, now gone"):
            warranted(ready, "dana")

    def test_whoever_accepted_a_warning_must_still_be_allowed_to(self, make: Make):
        """An acceptance by someone who may no longer give it does not carry a publication."""
        workspace = make()
        workspace.approve("cy")
        workspace.judged(OK)
        workspace.ledger.approvals.accept_warning(
            workspace.run.run_id, "moved", "known", "bo", Actor("bo", "u", "h"), "f" * 64
        )
        workspace.verdict(WARNED | {"accepted_by": "bo"})
        assert warranted(workspace, "dana").release.person == "dana"
        workspace.staff(bo=None)
        with pytest.raises(ApprovalRefused, match="moved was accepted by bo, who may no longer do so"):
            warranted(workspace, "cy")

    def test_the_candidate_must_hold_what_was_judged(self, ready: Office):
        """A file more, and neither a release nor breaking the glass helps."""
        signed(ready)
        ready.files.append(DataFile("/lake/slipped-in.parquet", 1, 1, "2026-01-02"))
        for options in ({}, {"break_glass": "now"}):
            with pytest.raises(ApprovalRefused, match="the candidate is not what was judged"):
                warranted(ready, "dana", **options)

    def test_a_verdict_that_comes_between_is_caught_in_the_transaction_of_the_intent(self, ready: Office):
        """What was checked is what is done: a newer verdict refuses the intent under the older release."""
        found = warranted(ready, "bo")
        ready.verdict(OK, OK)
        with pytest.raises(ApprovalRefused, match="released over the verdict of entry"):
            ready.ledger.publications.intend(
                ready.run.run_id, "publish", ready.run.partitions, table=ready.run.table, person="bo", reason="",
                detail={}, lease_seconds=60, actor=Actor("bo", "u", "h"), consumers=(), release=found.told,
            )  # fmt: skip


class TestByItself:
    """``publish: {manual: false}``."""

    def ready(self, make: Make, *checks: Any) -> Office:
        workspace = make(manual=False)
        workspace.approve("bo")
        workspace.judged(*checks)
        return workspace

    def test_a_clean_gate_lets_a_service_account_publish(self, make: Make):
        """No person; the record says that it was the gate."""
        found = warranted(self.ready(make, OK), "airflow")
        assert (found.release.kind, name_releaser(found.release)) == ("automatic", "clean gate")

    def test_a_warning_needs_a_person_though_it_was_accepted(self, make: Make):
        """Clean means that nothing was found."""
        workspace = self.ready(make, OK, WARNED | {"accepted_by": "bo"})
        with pytest.raises(ApprovalRefused, match="does not publish by itself, because the gate warned"):
            warranted(workspace, "airflow")
        signed(workspace, "bo")
        assert warranted(workspace, "airflow").release.person == "bo"

    def test_the_gate_is_judged_at_publication(self, make: Make):
        """Clean yesterday, warned today: yesterday's automatic release is void."""
        workspace = self.ready(make, OK)
        warranted(workspace, "airflow")
        workspace.verdict(OK, WARNED | {"accepted_by": "bo"})
        with pytest.raises(ApprovalRefused, match=r"judged again.*the gate warned"):
            warranted(workspace, "airflow")

    def test_a_product_that_wants_people_again_gets_them(self, make: Make):
        """Sealed as automatic, but the product file of now says otherwise: the stricter of the two counts."""
        workspace = self.ready(make, OK)
        warranted(workspace, "airflow")
        project = workspace.workspace.project
        stricter = {name: replace(product, manual=True) for name, product in project.products.items()}
        workspace.use(replace(project, products=stricter))
        with pytest.raises(ApprovalRefused, match="the product now wants a person"):
            warranted(workspace, "airflow")

    def test_a_run_that_was_planned_for_a_person_waits_for_one(self, make: Make):
        """Sealed as manual, and the product file was loosened since: the stricter of the two counts."""
        workspace = make()
        workspace.approve("bo")
        workspace.judged(OK)
        project = workspace.workspace.project
        looser = {name: replace(product, manual=False) for name, product in project.products.items()}
        workspace.use(replace(project, products=looser))
        assert not workspace.client.publishes_itself(workspace.run.run_id, as_="airflow")
        with pytest.raises(ApprovalRefused, match="no person has released this candidate"):
            warranted(workspace, "airflow")

    def test_a_run_goes_on_when_whoever_acts_may_publish(self, make: Make):
        """A service and a publisher do; the requester and someone without the role leave it to others."""
        workspace = self.ready(make, OK)
        goes = {
            name: workspace.client.publishes_itself(workspace.run.run_id, as_=name) for name in ("airflow", "bo", "ana")
        }
        assert goes == {"airflow": True, "bo": True, "ana": False}
        assert workspace.said == [
            f"not published by itself: ana is no publisher; next: errata publish {workspace.run.run_id} --as bo"
        ]
        found = warranted(workspace, "bo", by_itself=True)
        assert found.release.kind == "automatic", "nobody looked, so nobody released"

    def test_a_manual_product_is_refused_before_any_work(self, ready: Office):
        """``run --publish`` would end where a person is needed."""
        with pytest.raises(ApprovalRefused, match=r"expected a product with publish.manual false"):
            ready.client.require_unattended(ready.run.run_id, as_="airflow")
        assert not ready.client.publishes_itself(ready.run.run_id, as_="airflow")
        with pytest.raises(ApprovalRefused, match="no person has released"):
            warranted(ready, "bo", by_itself=True)

    def test_the_requester_of_a_run_is_refused_before_any_work(self, make: Make):
        """``run --publish`` is a publication, so the requester may not start it, whatever the product allows."""
        workspace = make(requester="cy", manual=False)
        with pytest.raises(ApprovalRefused, match="other than the requester, found cy"):
            workspace.client.require_unattended(workspace.run.run_id, as_="cy")
        workspace.client.require_unattended(workspace.run.run_id, as_="airflow")
        assert workspace.actions()[-1] == "refused"


class TestBreakGlass:
    """``errata publish --break-glass WHY``."""

    def test_it_stands_for_release_and_approvals(self, make: Make):
        """The requester alone, with an approval that no longer counts."""
        workspace = make(requester="dana", rules=ApprovalRules(valid="1d"))
        workspace.approve("bo")
        workspace.judged(OK)
        with workspace.later(days=2):
            found = warranted(workspace, "dana", break_glass="regulator waits")
        assert found.release.break_glass == "regulator waits"
        assert workspace.actions()[-3:] == ["break_glass.publish", "run.released", "outbox.owed"]
        raise_alarm(workspace.workspace, ANA, workspace.run)
        assert workspace.bell.heard[0]["deed"] == "publish"
        shown = workspace.client.show(workspace.run.run_id).break_glass
        assert (shown.person, shown.why, shown.deed) == ("dana", "regulator waits", "publish")

    def test_it_never_stands_for_the_gate(self, make: Make):
        """What the gate blocked is not published by anyone."""
        workspace = make()
        workspace.approve("bo")
        workspace.judged(OK | {"level": "block"}, passed=False)
        with pytest.raises(StateRefused, match="found rejected"):
            warranted(workspace, "dana", break_glass="now")
        assert workspace.bell.heard == []

    def test_it_has_a_release_of_its_own(self, ready: Office):
        """A valid release is not reused: the record of this publication names who decided alone, and why."""
        signed(ready, "bo")
        found = warranted(ready, "dana", break_glass="regulator waits")
        assert (found.release.person, found.release.break_glass) == ("dana", "regulator waits")
        assert [one.person for one in ready.ledger.releases.list(ready.run.run_id)] == ["bo", "dana"]
        assert found.told["release"] == found.release.release_id
        raise_alarm(ready.workspace, ANA, ready.run)
        assert [one["deed"] for one in ready.bell.heard] == ["publish"]

    def test_it_needs_the_role(self, ready: Office):
        """A publisher without it is refused before anything is looked at."""
        with pytest.raises(PermissionRefused, match="expected the role break_glass"):
            ready.client.publish(ready.run.run_id, break_glass="now", as_="bo")


def test_in_single_user_mode_one_person_releases_and_every_record_says_so(make: Make):
    """The requester may; the view, the row of the intent and the audit tell."""
    workspace = make(single_user=True)
    workspace.approve("ana")
    workspace.judged(OK)
    view = signed(workspace, "ana")
    assert view.single_user
    assert warranted(workspace, "ana").told["single_user"]


def test_nobody_publishes_what_they_have_not_seen(ready: Office):
    """Publishing is a release: a verdict that arrived after the look refuses it, on the record; a new look mends it."""
    seen = digest(ready)
    ready.verdict({**OK, "message": "fine, too"})
    with pytest.raises(ApprovalRefused, match=f"{seen} is not the digest") as refused:
        warranted(ready, "bo", looked_at=seen)
    assert digest(ready) not in refused.value.message
    assert ready.ledger.releases.list(ready.run.run_id) == ()
    assert ready.actions()[-1] == "refused"
    assert warranted(ready, "bo", looked_at=digest(ready)).release.person == "bo"
