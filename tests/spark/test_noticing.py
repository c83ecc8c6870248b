"""What others do between plan and publication is noticed early, from real table metadata."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
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
