"""The whole correction on a real table: staged beside it, published in one commit, undone by the day."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ErrataError
from support.world import World


def test_a_correction_reaches_readers_in_one_commit_and_leaves_other_partitions_alone(
    make_world: Callable[..., World],
) -> None:
    """Publication is one new snapshot with zero data files written, and every partition outside keeps its files."""
    world = make_world(days=5)
    scope = f"{world.days[0]}..{world.days[2]}"
    run = world.to("validated", scope)
    world.live(world.days[4])
    before, head = world.files(), world.snapshot()
    view = world.client.publish(run, as_="bo")
    after = world.table()
    made = after.current_snapshot()
    assert made is not None
    assert made.parent_snapshot_id == head
    assert made.summary.additional_properties["errata.run"] == run
    assert made.summary.additional_properties["errata.manifest"] == world.client.show(run).digest
    assert view.data_files_written == 0
    assert {day: files for day, files in world.files().items() if day in world.days[3:]} == {
        day: files for day, files in before.items() if day in world.days[3:]
    }
    live = [row for row in world.rows() if row[1] == "live"]
    assert len(live) == 1
    assert [row for row in world.rows() if row[0] in world.days[:3]] == world.expected(world.days[:3])


def test_three_days_are_taken_back_and_the_others_stay_corrected(make_world: Callable[..., World]) -> None:
    """Rollback restores exactly the old rows of the named partitions and keeps what live wrote since."""
    world = make_world(days=5)
    run = world.to("published")
    world.live("2026-02-01")
    view = world.client.rollback(run, partitions=list(world.days[1:4]), reason="too early", as_="bo")
    assert view.data_files_written == 0
    rows = world.rows()
    assert [r for r in rows if r[0] in world.days[1:4]] == world.wrong(world.days[1:4])
    assert [r for r in rows if r[0] in (world.days[0], world.days[4])] == world.expected([world.days[0], world.days[4]])
    assert [r for r in rows if r[1] == "live"]


@pytest.mark.parametrize("command", ["plan", "approve", "run", "validate", "publish", "rollback"])
def test_every_command_twice_is_once(make_world: Callable[..., World], command: str) -> None:
    """Repeating a command gives the same answer, says that it was so already, and changes nothing."""
    world = make_world(days=2)
    plan = world.plan()
    acts = {
        "plan": world.plan,
        "approve": lambda: world.client.approve(plan.id, digest=plan.digest, as_="bo"),
        "run": lambda: world.client.run(plan.id, as_="ana"),
        "validate": lambda: world.client.validate(plan.id, as_="ana"),
        "publish": lambda: world.client.publish(plan.id, as_="bo"),
        "rollback": lambda: world.client.rollback(plan.id, reason="again", as_="bo"),
    }
    for name, act in acts.items():
        first = act()
        if name != command:
            continue
        state = (world.snapshot(), world.refs(), world.client.audit_verify().entries)
        second = act()
        assert second.already
        assert second.state == first.state
        assert (world.snapshot(), world.refs(), world.client.audit_verify().entries) == state
        break


def test_what_was_rolled_back_is_not_published_again(make_world: Callable[..., World]) -> None:
    """Repeating publish after a rollback is refused; only a new run publishes those partitions."""
    world = make_world(days=2)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    with pytest.raises(ErrataError) as refused:
        world.client.publish(run, as_="bo")
    assert refused.value.exit_code == 3
    again = world.to("published", reason="second try")
    assert again != run
    assert world.rows() == world.expected()
