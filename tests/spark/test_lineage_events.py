"""Lineage of a correction on real Iceberg: the versions that it names can be read."""

from __future__ import annotations

from collections.abc import Callable

from support.lineage import list_endings, read_events, require_valid
from support.world import PRODUCT, TABLE, World


def test_the_versions_in_lineage_are_snapshots_of_the_table(make_world: Callable[..., World]) -> None:
    """What was published and what was rolled back to are on main; what was staged and judged was on branches."""
    world = make_world(days=2, project="\nlineage: {file: lineage.jsonl}\n")
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    events = read_events(world.root / "lineage.jsonl")
    require_valid(events)
    assert all(found == ["START", "COMPLETE"] for found in list_endings(events).values())
    versions = {
        one["job"]["name"]: (one["outputs"] or one["inputs"])[0]["facets"]["version"]["datasetVersion"]
        for one in events
        if one["eventType"] == "COMPLETE"
    }
    main = [str(row[0]) for row in world.sql(f"SELECT snapshot_id FROM {TABLE}.history ORDER BY made_current_at")]
    assert [versions[PRODUCT], versions[f"{PRODUCT}.rollback"]] == main[-2:]
    staged = {str(row[0]) for row in world.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots")}
    assert {versions[f"{PRODUCT}.chunk"], versions[f"{PRODUCT}.gate"]} <= staged
