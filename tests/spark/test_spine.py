"""The whole correction on a real table: staged beside it, published in one commit, undone by the day."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol import test_every_command, test_undo
from support.world import World
from support.worlds import WorldAt


def test_a_correction_reaches_readers_in_one_commit_and_leaves_other_partitions_alone(
    make_world: Callable[..., World],
) -> None:
    """Publication is one new snapshot with zero data files written, and every partition outside keeps its files."""
    world = make_world(days=5)
    # as Spark does it for users, from here on
    world.spark.conf.set("spark.sql.codegen.wholeStage", "true")
    world.spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
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


def test_three_days_are_taken_back_and_the_others_stay_corrected(world_at: WorldAt) -> None:
    """Rollback restores exactly the old rows of the named partitions and keeps what live wrote since."""
    world, run = world_at("published", days=5)
    world.live("2026-02-01")
    view = world.client.rollback(run, partitions=list(world.days[1:4]), reason="too early", as_="bo")
    assert view.data_files_written == 0
    rows = world.rows()
    assert [r for r in rows if r[0] in world.days[1:4]] == world.wrong(world.days[1:4])
    assert [r for r in rows if r[0] in (world.days[0], world.days[4])] == world.expected([world.days[0], world.days[4]])
    assert [r for r in rows if r[1] == "live"]


@pytest.mark.slow
def test_every_command_twice_is_once(make_world: Callable[..., World]) -> None:
    """As on tables in memory: the same answer, and nothing changes."""
    test_every_command.test_every_command_twice_is_once(make_world)


@pytest.mark.slow
def test_what_was_rolled_back_is_not_published_again(make_world: Callable[..., World]) -> None:
    """As on tables in memory: only a new run publishes those partitions."""
    test_undo.test_what_was_rolled_back_is_not_published_again(make_world)
