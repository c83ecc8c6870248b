"""Release: a person decides and a program publishes, a clean gate alone, and one person alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from errata.errors import ApprovalRefused, PermissionRefused, PublishConflict
from errata.report.page import render_page
from errata.testing import arm
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., World]

CY = "  cy: {roles: [requester, operator, approver, publisher]}\n"
SERVICE = "  airflow: {roles: [operator, publisher], service: true}\n"
PEOPLE = f"people:\n  ana: {{roles: [requester, operator]}}\n  bo: {{roles: [approver, publisher]}}\n{CY}"


def test_a_person_releases_and_a_service_account_publishes(make_world: Make) -> None:
    """Without the release it is refused; with it the table changes once, and the history names both."""
    world = make_world(days=1)
    world.configure(CY, CY + SERVICE)
    run, before = world.to("validated"), world.snapshot()
    with pytest.raises(ApprovalRefused, match="no person has released this candidate") as refused:
        world.client.publish(run, as_="airflow")
    hint = world.client.complete_commands(str(refused.value.hint), as_="airflow")
    assert hint == f"errata release {run} --as bo", "the account itself may not release"
    assert world.snapshot() == before
    digest = world.client.status(run).release_digest
    released = world.client.release(run, digest=digest, note="checked", as_="bo")
    assert released.release.valid
    view = world.client.publish(run, as_="airflow")
    assert (view.state, view.release.person, view.release.kind) == ("published", "bo", "release")
    assert world.rows() == world.expected()
    (entry,) = [item for item in world.client.why(TABLE, world.days[0]).history if item.action == "published"]
    assert (entry.approved_by, entry.released_by, entry.published_by) == ("bo", "bo", "airflow")
    with pytest.raises(PermissionRefused, match="expected a person, airflow is a service account"):
        world.client.rollback(run, reason="x", as_="airflow")
    assert world.client.audit_verify().ok


@pytest.mark.parametrize(
    "command, names",
    [
        ("errata release RUN", "bo"),
        ("errata rollback RUN --reason x", "bo"),
        ("errata resume RUN", "ana"),
        ('errata publish RUN --early "now"', "bo"),
        ("errata publish RUN", "airflow"),
        ("errata run RUN", "airflow"),
    ],
)
def test_a_service_account_is_not_told_to_type_what_a_person_decides(
    command: str, names: str, make_world: Make
) -> None:
    """A suggested command names someone who may type it; what the account may do, it is told to do itself."""
    world = make_world(days=1)
    world.configure(CY, SERVICE)
    command = command.replace("RUN", world.plan().run_id)
    assert world.client.complete_commands(command, as_="airflow").split(" --as ")[1].split()[0] == names


def test_a_product_that_says_so_publishes_by_itself_when_the_gate_finds_nothing(make_world: Make) -> None:
    """``errata run RUN --publish`` ends published, released by the gate."""
    product = PRODUCT_FILE.replace("rollback_window: 30d}", "rollback_window: 30d, manual: false}")
    world = make_world(days=1, product=product)
    world.configure(CY, CY + SERVICE)
    run = world.to("approved")
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(
        open_project=lambda *_, **__: world.another_client(), out=out, err=err, interactive=False, environ={}
    )
    code = main(["-C", str(world.root), "--as", "airflow", "--json", "run", run, "--publish"], terminal)
    assert code == 0, err.getvalue()
    told = json.loads(out.getvalue())
    assert (told["state"], told["release"]["kind"], told["release"]["person"]) == ("published", "automatic", "airflow")
    assert world.rows() == world.expected()


@pytest.mark.parametrize("growths, code", [(1, 0), (9, 3)])
def test_a_run_that_publishes_judges_again_if_the_list_of_erased_subjects_grows(
    make_world: Make, growths: int, code: int
) -> None:
    """A few times, because that is the next command anyway; a list that grows each time ends with that command."""
    product = PRODUCT_FILE.replace("rollback_window: 30d}", "rollback_window: 30d, manual: false}")
    world = make_world(days=1, product=product)
    world.configure(CY, CY + SERVICE)
    run, err, left = world.to("approved"), io.StringIO(), iter(range(growths))

    def grow() -> None:
        if (n := next(left, None)) is not None:
            world.engines.suppressions.suppress(f"subject {n}")

    # the same client, whose list it is
    terminal = Terminal(
        open_project=lambda *_, **__: world.client, out=io.StringIO(), err=err, interactive=False, environ={}
    )
    with arm("publish.after_intent", grow):
        assert main(["-C", str(world.root), "--as", "airflow", "run", run, "--publish"], terminal) == code
    assert "validate again; this is done now" in err.getvalue()
    assert (f" validate {run}" in err.getvalue()) is (code != 0)
    world.open()
    assert (world.client.status(run).state == "published") is (code == 0)


def test_breaking_the_glass_does_not_overwrite_what_others_wrote(make_world: Make) -> None:
    """One person plans, approves and wants to publish alone; the alarm rings twice, and the conflict still stands."""
    world = make_world(days=1)
    world.configure(CY, CY.replace("publisher]", "publisher, break_glass]"))
    plan = world.client.plan("fin.sales", partitions=world.days[0], reason="x", as_="cy")
    approved = world.client.approve(plan.id, digest=plan.digest, break_glass="market opens", as_="cy")
    assert (approved.state, approved.break_glass.alarm) == ("approved", "rung")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.live(world.days[0])
    before = world.snapshot()
    with pytest.raises(PublishConflict):
        world.client.publish(plan.id, break_glass="market opens", as_="cy")
    assert world.rows(before) == world.rows()
    assert [one["deed"] for one in world.engines.alarm.sent] == ["approve", "publish"]
    status = world.client.status(plan.id)
    assert (status.break_glass.person, status.break_glass.deed) == ("cy", "publish")
    assert [one.break_glass for one in status.approvals] == ["market opens"]
    assert {"break_glass.approve", "break_glass.publish"} <= {e.action for e in world.client.audit_log(plan.id)}


def test_single_user_mode_is_said_by_every_answer(make_world: Make) -> None:
    """One person does everything, and plan, decisions, report, publication, history and audit all tell."""
    world = make_world(days=1)
    world.configure(PEOPLE, "people: single-user\n")
    client = world.client
    plan = client.plan("fin.sales", partitions=world.days[0], reason="x", as_="ana")
    told = {"plan": plan, "approve": client.approve(plan.id, digest=plan.digest, as_="ana")}
    client.run(plan.id, as_="ana")
    told["validate"] = client.validate(plan.id, as_="ana")
    told["release"] = client.release(plan.id, digest=client.status(plan.id).release_digest, as_="ana")
    report = client.report(plan.id)
    told["publish"] = client.publish(plan.id, as_="ana")
    told |= {"publish again": client.publish(plan.id, as_="ana"), "show": client.show(plan.id)}
    told |= {"status": client.status(plan.id), "all runs": client.status(), "report": report.plan}
    told["why"] = client.why(TABLE, world.days[0]).history[-1]
    told["rollback"] = client.rollback(plan.id, reason="x", as_="ana")
    told["why rolled back"] = client.why(TABLE, world.days[0]).history[-1]
    assert {name: view.single_user for name, view in told.items()} == dict.fromkeys(told, True)
    assert [one["single_user"] for one in client.status(plan.id).publications] == [True, True]
    assert "single-user" in render_page(report)
    assert all(entry.actor.single_user for entry in client.audit_log())
