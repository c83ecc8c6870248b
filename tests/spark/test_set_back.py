"""The table's owner sets main back, or makes it anew: what was published is not there, and everything says so."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from errata.errors import StateRefused
from support.terminal import answer, text
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
SCHEMA = "day date, account string, gross decimal(12,2), n bigint, produced_by_run_id string, restatement_reason string"
ACTS = {
    "rollback": "CALL lake.system.rollback_to_snapshot('fin.sales', {start})",
    "set": "CALL lake.system.set_current_snapshot('fin.sales', {start})",
    "replace": f"CREATE OR REPLACE TABLE {TABLE} ({SCHEMA}) USING iceberg PARTITIONED BY (day)",
}


def finish(world: World, told: dict[str, str]) -> None:
    """Bring a planned run to readers."""
    run = told["run_id"]
    world.client.approve(run, digest=told["manifest_digest"], as_="bo")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")


@pytest.mark.parametrize("act", ACTS)
def test_a_main_that_its_owner_set_back_is_told_by_every_command(world_at: WorldAt, act: str) -> None:
    """Publish refuses, status, why and doctor name when and where to; the command that they suggest brings it back."""
    world, run = world_at("published", days=2)
    start = world.start
    published = world.snapshot()
    assert world.client.status(run).set_back == ()
    world.sql(ACTS[act].format(start=start))
    (found,) = world.client.status(run).set_back
    assert (found.partitions, found.run_id, found.snapshot_id) == (world.days, run, str(published))
    assert found.main_snapshot_id == (None if act == "replace" else str(start))
    assert found.set_back_at
    how = "replaced by its owner" if act == "replace" else f"to snapshot {start} (no run of Errata did that)"
    for command in (f"status {run}", f"why {TABLE} {world.days[0]}", "doctor", f"publish {run}"):
        code, said = text(world, f"errata {command}")
        assert how in said, command
        assert re.search(rf"plan fin\.sales (--as \w+ )?--partitions {world.days[0]}", said), command
        assert f" --restore {published} " in said, command
        assert code == {"doctor": 1, "publish": 3}.get(command.split()[0], 0)
    with pytest.raises(StateRefused):
        world.client.publish(run, as_="bo")
    finish(world, answer(world, found.next, "ana"))
    assert world.rows() == world.expected()
    assert world.client.status(run).set_back == ()
    assert world.client.why(TABLE, world.days[0]).set_back is None


def test_a_later_run_and_its_rollback_do_not_make_the_first_run_the_truth(world_at: WorldAt) -> None:
    """Set back, published by another run, taken back: readers see the old rows, whatever the ledger stands on."""
    world, first = world_at("published", days=1)
    start = world.start
    world.sql(ACTS["rollback"].format(start=start))
    later = world.to("published", reason="again")
    assert world.client.status(later).set_back == ()
    world.client.rollback(later, reason="no", as_="bo")
    assert world.rows() == world.wrong()
    (found,) = world.client.status(first).set_back
    assert (found.run_id, found.main_snapshot_id) == (first, str(start))


def test_a_rollback_that_the_owner_undid_is_told_too(world_at: WorldAt) -> None:
    """Main set to the publication again: readers do not see what was rolled back to."""
    world, run = world_at("published", days=1)
    published = world.snapshot()
    world.client.rollback(run, reason="undo", as_="bo")
    world.sql(ACTS["set"].format(start=published))
    (found,) = world.client.status(run).set_back
    assert (found.kind, found.main_snapshot_id) == ("rollback", str(published))
    assert "was rolled back" in found.told


@pytest.mark.parametrize("is_back", [True, False])
def test_files_tell_where_history_has_expired(world_at: WorldAt, is_back: bool) -> None:
    """With the publication's snapshot gone, old files that are live again prove it; a compaction proves nothing."""
    world, run = world_at("published", days=1)
    start = world.start
    if is_back:
        world.sql(ACTS["rollback"].format(start=start))
    else:
        world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    world.live("2026-02-01")
    for ref in sorted(world.refs() - {"main"}):
        kind = "BRANCH" if world.table().metadata.refs[ref].snapshot_ref_type == "branch" else "TAG"
        world.sql(f"ALTER TABLE {TABLE} DROP {kind} `{ref}`")
    table = world.engines.java.load(TABLE)
    table.expireSnapshots().expireOlderThan(int(time.time() * 1000) + 1000).retainLast(1).commit()
    found = world.client.status(run).set_back
    assert len(found) == int(is_back)
    assert [one.next.split("--")[2] for one in found] == [f"supersede {run} "] * int(is_back)


def test_live_writes_and_compactions_set_nothing_back(world_at: WorldAt) -> None:
    """What descends from the publication is its history going on."""
    world, run = world_at("published", days=1)
    world.live(world.days[0])
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    assert world.client.status(run).set_back == ()
    assert all(check.ok for check in world.client.doctor() if check.name.startswith("main "))
    assert world.client.publish(run, as_="bo").already
