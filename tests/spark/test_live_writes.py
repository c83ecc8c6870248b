"""What others do between plan and publication is noticed early, from real table metadata.

The commands that tell it are tested on tables in memory, in ``tests/protocol/test_live_writes.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from protocol import test_live_writes
from support.deletes import delete_rows
from support.world import World

Make = Callable[..., World]


def test_a_delete_file_that_applies_to_no_live_file_is_noticed_early(make_world: Make) -> None:
    """It is a conflict of the publication, so approve and status tell it before the work is done."""
    world = make_world(days=2, history=False)
    world.write_history(world.days[:1])
    plan = world.plan()
    delete_rows(world, partition=world.days[1], day=world.days[1], account="a0")
    told = [(str(world.snapshot()), world.days[1:])]
    view = world.client.approve(plan.id, digest=plan.digest, as_="bo")
    assert [(one.snapshot_id, one.partitions) for one in view.live_writes] == told
    assert [(one.snapshot_id, one.partitions) for one in world.client.status(plan.id).live_writes] == told


@pytest.mark.parametrize(
    "expire",
    [World.expire, pytest.param(World.expire_by_pyiceberg, marks=pytest.mark.slow)],
    ids=["spark", "pyiceberg"],
)
def test_a_write_into_an_empty_table_is_no_compaction_when_its_commit_has_expired(
    make_world: Make, expire: Callable[[World], None]
) -> None:
    """The oldest snapshot left is a rewrite without a parent; the row that live wrote before it stays."""
    world = make_world(days=1, history=False)
    run = world.to("validated")
    world.live(world.days[0], "precious", "77.00")
    world.compact()
    expire(world)
    kept = world.rows()
    assert any("precious" in row for row in kept)
    with pytest.raises(PublishConflict):
        world.client.publish(run, as_="bo")
    assert world.rows() == kept


@pytest.mark.slow
def test_a_live_write_is_noticed_by_approve_status_and_validate_and_refused_by_publish(make_world: Make) -> None:
    """As on tables in memory."""
    test_live_writes.test_a_live_write_is_noticed_by_approve_status_and_validate_and_refused_by_publish(make_world)
