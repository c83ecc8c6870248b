"""What is published or rolled back in the lake is delivered to a copy in a real PostgreSQL database."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from errata.errors import CopyChanged
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


def test_a_row_that_was_edited_by_hand_is_found_and_repaired(make_world: Make) -> None:
    """`copies check` names the partition; the approved repair replaces it in one swap; the lake gets no commit."""
    world = make_world(days=3, history=False)
    lake = world.lake
    lake.to("published")
    before, day = lake.snapshot(), lake.days[1]
    world.server.execute(f"UPDATE shop.sales SET n = n + 1 WHERE day = '{day}'", database=world.database)
    [found] = lake.client.check_copies("fin.sales").copies
    assert [(one.partition, one.why) for one in found.differing] == [(day, "changed")]
    plan = lake.client.plan("fin.sales", partitions=day, reason="edited by hand", kind="repair", copies=(), as_="ana")
    lake.client.approve(plan.run_id, digest=plan.digest, as_="bo")
    assert lake.client.run(plan.run_id, as_="ana").state == "published"
    assert (world.rows(), lake.snapshot(), world.staging()) == (lake.expected(), before, [])
    assert lake.client.check_copies("fin.sales").ok


def test_an_edit_after_the_approval_is_a_conflict(make_world: Make) -> None:
    """The repair writes nothing: what it would replace is not what was approved."""
    world = make_world(days=1, history=False)
    lake = world.lake
    lake.to("published")
    change = "UPDATE shop.sales SET n = n + 1"
    world.server.execute(change, database=world.database)
    day = lake.days[0]
    plan = lake.client.plan("fin.sales", partitions=day, reason="edited by hand", kind="repair", copies=(), as_="ana")
    lake.client.approve(plan.run_id, digest=plan.digest, as_="bo")
    world.server.execute(change, database=world.database)
    before = world.rows()
    with pytest.raises(CopyChanged):
        lake.client.run(plan.run_id, as_="ana")
    assert (world.rows(), world.staging()) == (before, [])


def test_the_checker_of_copies_finds_what_is_wrong(make_world: Make) -> None:
    """A row twice, a marker of nothing, a partition that went back, and staging that was left."""
    world = make_world(days=2, history=False)
    world.lake.to("published")
    world.check()
    spoil = {
        "times": "INSERT INTO shop.sales SELECT * FROM shop.sales LIMIT 1",
        "nothing that landed": "INSERT INTO shop.errata_markers_sales VALUES ('bf-x-p1', 1, 'done')",
        "was delivered by an attempt": "UPDATE shop.errata_markers_sales SET state = 'void'",
        "had delivered": "UPDATE shop.errata_delivered_sales SET sequence = 0",
        "is accepted": "UPDATE shop.errata_delivered_sales SET sequence = 99",
        "is left": "CREATE TABLE shop.errata_stage_x (n int)",
    }
    for told, statement in spoil.items():
        copied = f"{world.database}_{len(told)}"
        world.server.execute(f"CREATE DATABASE {copied} TEMPLATE {world.database}", database="postgres")
        world.server.execute(statement, database=copied)
        with pytest.raises(AssertionError, match=told):
            replace(world, database=copied).check()
        world.server.drop_database(copied)
