"""What is published or rolled back in the lake is delivered to a copy in a real PostgreSQL database."""

from __future__ import annotations

import json
from collections.abc import Callable

from support.copy_world import CopyWorld

Make = Callable[..., CopyWorld]


def test_a_publication_and_a_rollback_reach_the_copy(make_world: Make) -> None:
    """With the command that causes them: the copy holds the rows of the lake, each once, and nothing is left behind."""
    world = make_world(days=3, history=False)
    run = world.lake.to("published", f"{world.lake.days[0]}..{world.lake.days[1]}")
    assert world.rows() == world.lake.expected(world.lake.days[:2])
    [item] = world.items()
    assert (item.state, item.result["rows_written"], item.result["rows_removed"]) == ("paid", 6, 0)
    told = json.loads(world.lake.ledger.parts.get(item.result["contents"]))
    assert {name: one["rows"] for name, one in told.items()} == dict.fromkeys(world.lake.days[:2], 3)
    assert world.markers() == [(item.pub_id, item.fence, "done")]
    world.lake.client.rollback(run, partitions=world.lake.days[0], reason="wrong rates", as_="bo")
    left = [*world.lake.wrong(world.lake.days[:1]), *world.lake.expected(world.lake.days[1:2])]
    assert world.rows() == sorted(left)
    assert [one.state for one in world.items()] == ["paid", "paid"]
    assert world.staging() == []
