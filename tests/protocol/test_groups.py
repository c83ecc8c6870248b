"""Publication in groups: what readers see in between, and what each group is judged by."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ApprovalRefused, PublishConflict, PublishHeld, StateRefused
from support.clock import later
from support.ids import numbered
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

Make = Callable[..., World]
GROUPED = PRODUCT_FILE.replace("{mode: replace_partitions,", "{mode: replace_partitions, groups: {size: 2, hold: 1h},")

APPROVER = "bo: {roles: [approver, publisher]}"


def seen(world: World, right: tuple[str, ...]) -> bool:
    """Whether readers see these days corrected and all others as they were."""
    wrong = [day for day in world.days if day not in right]
    return world.rows() == sorted([*world.expected(right), *(world.wrong(wrong) if wrong else [])])


def test_readers_see_one_group_after_the_other(make_world: Make) -> None:
    """Newest first, two days at a time, each by one commit. The release of the first carries all of them, and each is
    judged anew: by who may approve today, and by what live wrote into its own partitions."""
    world = make_world(days=5, product=GROUPED)
    plan = world.plan()
    assert plan.publish["groups"]["groups"] == [list(world.days[3:]), list(world.days[1:3]), [world.days[0]]]
    ledger = world.ledger
    run = world.to("validated")
    first = world.client.publish(run, as_="bo")
    assert (first.state, first.partitions, first.data_files_written) == ("part_published", world.days[3:], 0)
    assert seen(world, world.days[3:])
    with pytest.raises(PublishHeld, match="the hold of 1h"):
        world.client.publish(run, as_="bo")
    world.live(world.days[0])
    with later(minutes=61):
        second = world.client.publish(run, as_="bo")
        assert (numbered(second.publication_id), second.partitions) == (f"{run}-p2", world.days[1:3])
        shown = world.client.status(run)
        assert shown.groups is not None
        assert [group.state for group in shown.groups.groups] == ["published", "published", "waiting"]
        assert shown.groups.next == 3
    world.configure(APPROVER, APPROVER.replace("approver, ", ""))
    ledger = world.ledger
    with later(minutes=122), pytest.raises(ApprovalRefused, match="no valid approval"):
        world.client.publish(run, as_="cy")
    world.configure(APPROVER.replace("approver, ", ""), APPROVER)
    ledger = world.ledger
    with later(minutes=122), pytest.raises(PublishConflict, match=world.days[0]):
        world.client.publish(run, as_="bo")
    assert len({p.release["release"] for p in ledger.publications.list(run)}) == 1
    assert [row for row in world.rows() if row[0] in world.days[1:]] == world.expected(world.days[1:])
    world.client.rollback(run, partitions=world.days[4], reason="the newest is wrong", as_="bo")
    with later(hours=9), pytest.raises(StateRefused, match="rolled back 1 partition"):
        world.client.publish(run, as_="bo")
