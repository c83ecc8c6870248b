"""What others do between plan and publication is noticed early, and told by every command since."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]


def test_a_live_write_is_noticed_by_approve_status_and_validate_and_refused_by_publish(make_world: Make) -> None:
    """Each commit is on the record once, with who wrote it; compaction and other days are not told."""
    world = make_world(days=3)
    plan = world.plan(f"{world.days[0]}..{world.days[1]}")
    world.live(world.days[0], "early")
    first = str(world.snapshot())
    view = world.client.approve(plan.id, digest=plan.digest, as_="bo")
    assert [(one.snapshot_id, one.partitions) for one in view.live_writes] == [(first, world.days[:1])]
    world.live(world.days[2], "elsewhere")
    world.compact()
    assert [one.snapshot_id for one in world.client.status(plan.id).live_writes] == [first]
    world.client.run(plan.id, as_="ana")
    world.live(world.days[1], "late")
    second = str(world.snapshot())
    assert world.client.validate(plan.id, as_="ana").conflicts == world.days[:2]
    told = world.client.status(plan.id).live_writes
    assert [(one.snapshot_id, one.seen_by) for one in told] == [(first, "approve"), (second, "validate")]
    assert world.client.report(plan.id).notes[0].startswith(f"{world.days[0]} was written after planning by")
    with pytest.raises(PublishConflict):
        world.client.publish(plan.id, as_="bo")


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
