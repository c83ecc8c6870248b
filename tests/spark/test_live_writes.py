"""What others do between plan and publication is noticed early, from real table metadata."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from support.deletes import delete_rows
from support.world import World

Make = Callable[..., World]


def test_a_live_write_is_noticed_by_approve_status_and_validate_and_refused_by_publish(make_world: Make) -> None:
    """Each commit is on the record once, with who wrote it; compaction and other days are not told."""
    world = make_world(days=3)
    plan = world.plan(f"{world.days[0]}..{world.days[1]}")
    world.live(world.days[0], "early")
    first = world.snapshot()
    view = world.client.approve(plan.id, digest=plan.digest, as_="bo")
    assert [(one.snapshot_id, one.partitions) for one in view.live_writes] == [(str(first), world.days[:1])]
    world.live(world.days[2], "elsewhere")
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    assert [one.snapshot_id for one in world.client.status(plan.id).live_writes] == [str(first)]
    world.client.run(plan.id, as_="ana")
    world.live(world.days[1], "late")
    second = world.snapshot()
    assert world.client.validate(plan.id, as_="ana").conflicts == world.days[:2]
    told = world.client.status(plan.id).live_writes
    assert [(one.snapshot_id, one.seen_by) for one in told] == [(str(first), "approve"), (str(second), "validate")]
    assert world.client.report(plan.id).notes[0].startswith(f"{world.days[0]} was written after planning by")
    with pytest.raises(PublishConflict):
        world.client.publish(plan.id, as_="bo")


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


@pytest.mark.parametrize("expire", [World.expire, World.expire_by_pyiceberg], ids=["spark", "pyiceberg"])
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


def test_files_that_came_after_the_plan_are_told_by_validate_publish_status_and_report(make_world: Make) -> None:
    """What was computed is published all the same, and everyone is told which day is behind its source."""
    world = make_world(days=2)
    run, right = world.to("staged"), world.expected()
    days = world.root / f"raw/day={world.days[1]}"
    shutil.copy(days / "part-0.parquet", days / "part-9.parquet")
    view = world.client.validate(run, as_="ana")
    (late,) = view.late_inputs
    assert (late.input, late.partitions, late.files[0].rpartition("/")[2]) == ("raw", world.days[1:], "part-9.parquet")
    told = world.client.publish(run, as_="bo").warnings
    assert len(told) == 1
    assert told[0].startswith(f"input raw changed for {world.days[1]} after it was pinned: 1 new file, such as")
    assert world.rows() == right
    assert world.client.status(run).noticed == told
    assert world.client.report(run).notes == told
    assert [one.seen_by for one in world.client.status(run).late_inputs] == ["validate"]
