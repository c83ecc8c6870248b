"""A rollback that has nothing to take back: what is said, and where it leads. Without Spark or a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.cli.render.publish import render_rollback
from errata.commands.publish import rollback as undoing
from errata.errors import PermissionRefused, StateRefused
from errata.model.audit import Actor
from errata.model.refs import undo_branch
from support.memory_world import MemoryWorld
from support.office import ANA, DAYS, PEOPLE, Office, office
from unit.ledger.steps import publish, roll_back


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Office]:
    made = office(tmp_path)
    made.judged()
    yield made
    made.ledger.close()


def refusal(workspace: Office, partitions: str | None = None) -> StateRefused:
    with pytest.raises(StateRefused) as refused:
        workspace.client.rollback(workspace.run.run_id, partitions=partitions, reason="wrong", as_="bo")
    return refused.value


def test_a_run_that_is_not_out_yet_is_cancelled_instead(workspace: Office):
    """Nothing of it is published, so the way on is to end it."""
    error = refusal(workspace)
    assert f"found {DAYS[0]} … {DAYS[1]} not published (the run is validated)" in error.message
    assert error.hint == f'errata cancel {workspace.run.run_id} --reason "…"'


def test_partitions_that_have_not_gone_yet_are_named_beside_those_that_have(workspace: Office):
    """A run that is partly published is not said to be unpublished, nor sent to a cancel that would be refused."""
    publish(workspace.ledger, workspace.run.run_id, DAYS[:1])
    error = refusal(workspace, DAYS[1])
    assert f"found {DAYS[1]} not published (the run is part published)" in error.message
    assert error.hint == f'errata rollback {workspace.run.run_id} --partitions {DAYS[0]} --reason "…"'


def test_taking_back_all_of_it_twice_is_taking_it_back_once(workspace: Office):
    """Also when a part of the run never went out."""
    publish(workspace.ledger, workspace.run.run_id, DAYS[:1])
    taken_back(workspace, workspace.run.run_id, DAYS[:1])
    view = workspace.client.rollback(workspace.run.run_id, reason="wrong", as_="bo")
    assert (view.already, view.partitions, view.state) == (True, DAYS[:1], "rolled_back")
    assert "errata status" in (refusal(workspace, DAYS[1]).hint or "")


def test_a_repeated_rollback_names_the_run_that_is_on_top_by_now(workspace: Office, tmp_path: Path):
    """Readers do not see the old rows of a day that a later run has published; its own rollback brings them back."""
    ledger, run = workspace.ledger, workspace.run.run_id
    publish(ledger, run, DAYS)
    taken_back(workspace, run)
    other = office(tmp_path, requester="cy")
    other.judged()
    publish(other.ledger, other.run.run_id, DAYS[:1])
    again = workspace.client.rollback(run, reason="wrong", as_="bo")
    assert (again.already, again.later) == (True, {other.run.run_id: DAYS[:1]})
    text = " ".join(render_rollback(again, 200))
    assert f"{other.run.run_id} has published {DAYS[0]} since" in text
    assert "readers see" not in text
    taken_back(workspace, other.run.run_id, DAYS[:1])
    assert workspace.client.rollback(run, reason="wrong", as_="bo").later == {}
    other.ledger.close()


def test_a_rollback_holds_each_partition_against_its_own_publication(workspace: Office):
    """What an earlier publication left of a day that a later one published says nothing about who wrote since."""
    first, second = (publish(workspace.ledger, workspace.run.run_id, (day,)) for day in DAYS[:2])
    inner = workspace.workspace
    refs = {undo_branch(one.pub_id): f"undo of {one.n}" for one in (first, second)}
    inner.engines.pins.refs = lambda _table: refs  # type: ignore[method-assign]
    order = undoing.build_undo(inner.open_run(workspace.run.run_id, ANA), DAYS[:2])
    assert order.group_by_base(DAYS[:2]) == {
        workspace.ledger.publications.get(one.pub_id).result_snapshot_id: [day]
        for one, day in zip((first, second), DAYS[:2], strict=True)
    }


def taken_back(workspace: Office, run_id: str, days: tuple[str, ...] = DAYS) -> None:
    """A rollback after which no table has to be looked at."""
    back = roll_back(workspace.ledger, run_id, days)
    workspace.ledger.guards.close_hazard(back.pub_id, "no files", Actor("bo", "u", "h"))


def test_who_may_not_take_back_is_sent_to_people(workspace: Office):
    """A service account has the role for publishing and never takes back."""
    assert PEOPLE["airflow"].service
    for deed in (
        lambda: workspace.client.rollback(workspace.run.run_id, reason="wrong", as_="ana"),
        lambda: workspace.client.release(workspace.run.run_id, digest="0" * 64, as_="ana"),
    ):
        with pytest.raises(PermissionRefused) as refused:
            deed()
        assert refused.value.hint == "ask bo or cy or dana"


def test_what_was_named_and_never_went_out_is_said_to_stay(tmp_path: Path):
    """The published part goes back; nobody has to compare lists to see that the rest was not touched."""
    world = MemoryWorld.make(tmp_path, days=2)
    run = world.to("validated")
    world.client.publish(run, partitions=world.days[0], as_="bo")
    back = world.client.rollback(run, partitions=",".join(world.days), reason="wrong", as_="bo")
    assert back.partitions == world.days[:1]
    assert f"{world.days[1]} is not published and stays as it is" in world.said
    assert world.rows() == world.wrong()
    world.client.close()
