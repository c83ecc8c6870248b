"""How long branches and tags live, and who removes them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table.refs import SnapshotRef

from errata.model.refs import (
    GUARD,
    base_tag,
    pre_tag,
    pub_tag,
    rest_branch,
    rows_branch,
    run_branch,
    undo_branch,
)
from support.ids import plain_ref
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
DAY_MS = 86_400_000
DELETES = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}


def test_the_next_command_that_writes_sweeps_what_a_cancelled_run_left(world_at: WorldAt) -> None:
    """Doctor says what can go; a run of the same table removes it in one commit; refs of other ledgers stay."""
    world, first = world_at("staged", days=1)
    world.client.cancel(first, reason="no longer needed", as_="ana")
    foreign = "errata_bf-20250101-other-00000000"
    world.sql(f"ALTER TABLE {TABLE} CREATE TAG `{foreign}`")
    told = {check.name: check for check in world.client.doctor()}[f"refs {TABLE}"]
    assert not told.ok
    assert "1 run that this ledger does not have (bf-20250101-other-00000000)" in told.found
    assert "2 of finished runs" in told.found
    assert f"1 of runs that are not in this ledger, which are left alone: {foreign}" in told.found
    assert {run_branch(first), base_tag(first)} <= world.refs()
    second = world.to("staged", reason="again")
    assert {run_branch(first), base_tag(first)}.isdisjoint(world.refs())
    assert {run_branch(second), base_tag(second), foreign} <= world.refs()
    (swept,) = [entry for entry in world.client.audit_log(first) if entry.action == "refs.swept"]
    assert {gone["ref"] for gone in swept.body["removed"]} == {run_branch(first), base_tag(first)}


def _age_guard(world: World, days: int) -> None:
    """Let the guard be so much older than everything else, as on a table that was corrected long ago."""
    table = world.table()
    place = Path(table.metadata_location.removeprefix("file:"))
    metadata = json.loads(place.read_text())
    for snapshot in metadata["snapshots"]:
        if snapshot["snapshot-id"] == table.metadata.refs[GUARD].snapshot_id:
            snapshot["timestamp-ms"] -= days * DAY_MS
    place.write_text(json.dumps(metadata))


def _days_left(world: World) -> dict[str, float]:
    """For how many days from now an expiry would keep each ref."""
    metadata = world.table().metadata

    def ends(ref: SnapshotRef) -> float:
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        return ((snapshot.timestamp_ms if snapshot else 0) + (ref.max_ref_age_ms or 0)) / DAY_MS

    return {
        plain_ref(name): ends(ref) - time.time() / 86_400
        for name, ref in metadata.refs.items()
        if name not in ("main", GUARD)
    }


def _with_deletes(make_world: Make) -> World:
    world = make_world(days=1, properties=DELETES)
    values = ", ".join(f"(date'{world.days[0]}', '{account}', 1, 1, null, null)" for account in "pq")
    world.sql(f"INSERT INTO {TABLE} VALUES {values}")
    world.sql(f"DELETE FROM {TABLE} WHERE account = 'q'")
    return world


def test_a_ref_lives_for_its_window_however_old_the_guard_is(make_world: Make) -> None:
    """Undo, run, candidate and rows branches and every tag end when the guide says, not a year later."""
    world = _with_deletes(make_world)
    world.client.cancel(world.to("staged"), reason="no longer needed", as_="ana")
    _age_guard(world, 365)
    run = world.to("validated", reason="again")
    left = _days_left(world)
    promised = {run_branch(run): 45, f"errata_{run}_c1": 7, base_tag(run): 45}
    world.client.publish(run, as_="bo")
    world.client.rollback(run, reason="undo", as_="bo")
    left |= _days_left(world)
    promised |= {undo_branch(f"{run}-{pub}"): 30 for pub in ("p1", "r2")}
    promised |= {pub_tag(f"{run}-{pub}"): 7 for pub in ("p1", "r2")}
    promised |= {pre_tag(f"{run}-p1"): 30, pre_tag(f"{run}-r2"): 3, rows_branch(f"{run}-r2", 1): 7}
    assert {name: round(left[name], 1) for name in promised} == promised


@pytest.mark.slow
def test_rows_that_were_carried_over_are_kept_for_their_window_only(make_world: Make) -> None:
    """The branch of rows that share files with the scope is needed for one commit, and kept for a week."""
    world = make_world(days=3, spec="")
    world.client.cancel(world.to("staged", world.days[1]), reason="no longer needed", as_="ana")
    _age_guard(world, 365)
    run = world.to("published", world.days[1], reason="again")
    left = _days_left(world)
    assert {name: round(left[name], 1) for name in left if "_rest" in name} == {rest_branch(f"{run}-p1", 1): 7}
