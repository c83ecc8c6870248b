"""How long branches and tags live, and who removes them."""

from __future__ import annotations

from collections.abc import Callable

from errata.model.refs import base_pin, run_branch
from support.world import TABLE, World

Make = Callable[..., World]


def test_the_next_command_that_writes_sweeps_what_a_cancelled_run_left(make_world: Make) -> None:
    """Doctor says what can go; a run of the same table removes it in one commit; refs of other ledgers stay."""
    world = make_world(days=1)
    first = world.to("staged")
    world.client.cancel(first, as_="ana")
    foreign = "errata_bf-20250101-other-00000000"
    world.sql(f"ALTER TABLE {TABLE} CREATE TAG `{foreign}`")
    told = {check.name: check for check in world.client.doctor()}[f"refs {TABLE}"]
    assert told.ok
    assert "2 of finished runs" in told.found
    assert f"1 of runs that are not in this ledger, which are left alone: {foreign}" in told.found
    assert {run_branch(first), base_pin(first)} <= world.refs()
    second = world.to("staged", reason="again")
    assert {run_branch(first), base_pin(first)}.isdisjoint(world.refs())
    assert {run_branch(second), base_pin(second), foreign} <= world.refs()
    (swept,) = [entry for entry in world.client.audit_log(first) if entry.action == "refs.swept"]
    assert {gone["ref"] for gone in swept.body["removed"]} == {run_branch(first), base_pin(first)}
