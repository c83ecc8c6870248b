"""The promise to undo: what it pins, what it survives, and what a partition with delete files needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.model.refs import GUARD, undo_branch
from spark.test_mode_guarantees import MODES, Mode
from spark.test_shapes import HIDDEN, HIDDEN_TRANSFORM
from support.terminal import text
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]


def test_after_publish_and_rollback_no_expiry_takes_a_live_file(world_at: WorldAt) -> None:
    """Expiry by the Spark procedure and by the Java API with retainLast(1) leave every live file there."""
    world, run = world_at("published", days=2)
    world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    rows = world.rows()
    _expire_by_java(world)
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    assert world.rows() == rows
    assert world.client.rollback(run, reason="the rest", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_the_guard_alone_keeps_an_expiry_from_taking_restored_files(world_at: WorldAt) -> None:
    """With every other ref of ours gone, the guard still makes expiry look at what is reachable."""
    world, run = world_at("published", days=2)
    world.client.rollback(run, reason="undo", as_="bo")
    rows = world.rows()
    for ref in sorted(world.refs() - {"main", GUARD}):
        kind = "BRANCH" if world.table().metadata.refs[ref].snapshot_ref_type == "branch" else "TAG"
        world.sql(f"ALTER TABLE {TABLE} DROP {kind} `{ref}`")
    _expire_by_java(world)
    assert world.rows() == rows
    assert world.table().metadata.refs[GUARD].max_ref_age_ms > 10_000 * 86_400_000


def test_two_processes_that_make_the_guard_at_once_leave_one_usable_guard(make_world: Make) -> None:
    """Whoever comes second finds it made; branches that were rooted on it stay."""
    import threading

    from errata.engines.iceberg.commits.refs import open_branch

    world = make_world(days=1)
    java = world.engines.java
    java.bulk.snapshots(java.load(TABLE))

    def make(n: int) -> None:
        open_branch(java, TABLE, f"errata_race{n}", 1)

    threads = [threading.Thread(target=make, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"errata_race0", "errata_race1", "errata_race2", GUARD} <= world.refs()


def _hidden(make_world: Make) -> World:
    """Two days of a table that is partitioned by the day of an instant."""
    world = make_world(days=2, product=HIDDEN, transform=HIDDEN_TRANSFORM, history=False)
    world.sql(f"DROP TABLE {TABLE}")
    world.sql(
        f"CREATE TABLE {TABLE} (ts timestamp, account string, gross decimal(12,2), n bigint, "
        "produced_by_run_id string, restatement_reason string) USING iceberg PARTITIONED BY (days(ts))"
    )
    values = [f"(timestamp'{day} 00:00:00', 'a0', 9, 9, null, null)" for day in world.days]
    world.sql(f"INSERT INTO {TABLE} VALUES {', '.join(values)}")
    return world


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [lambda make: make(days=2), _hidden],
    ids=["date", "instant"],
)
def test_the_statement_that_a_rollback_suggests_ends_what_depends_on_the_guard(
    make_world: Make, shape: Callable[[Make], World]
) -> None:
    """It is run exactly as told, rewrites these partitions and no other, and is suggested no more afterwards."""
    world = shape(make_world)
    day, other = world.days
    run = world.to("published")
    back = world.client.rollback(run, partitions=day, reason="undo", as_="bo")
    assert back.hazard is not None
    assert [one.rewrite for one in world.client.status(run).hazards] == [back.hazard.rewrite]
    assert back.hazard.rewrite in text(world, f"errata status {run}")[1]
    files, rows = (
        world.files(),
        world.table().scan().to_arrow().sort_by([("account", "ascending"), ("gross", "ascending")]).to_pylist(),
    )
    world.sql(back.hazard.rewrite)
    assert (world.files()[day] & files[day], world.files()[other]) == (frozenset(), files[other])
    assert (
        world.table().scan().to_arrow().sort_by([("account", "ascending"), ("gross", "ascending")]).to_pylist() == rows
    )
    assert world.client.status(run).hazards == ()
    assert world.client.rollback(run, partitions=day, reason="undo", as_="bo").hazard is None
    assert "rewrite_data_files" not in text(world, f"errata status {run}")[1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_files_that_came_back_are_watched(make_world: Make, mode: Mode) -> None:
    """A rollback leaves a hazard where files came back into the table; elsewhere the next command closes it."""
    world = mode.world(make_world)
    run = world.to("published", mode.scope(world))
    world.client.rollback(run, reason="undo", as_="bo")
    world.client.status()
    closed = [e.body["why"] for e in world.ledger.audit.entries() if e.action == "hazard.closed"]
    came_back = mode.touches_target and mode.name != "append"
    assert closed == ([] if came_back else ["the rollback brought no files back into the table"])
    assert len(world.ledger.guards.open_hazards()) == int(came_back)


def test_the_guard_is_an_empty_root_and_is_put_back_when_it_was_dropped(make_world: Make) -> None:
    """The guard has no parent and no files, older snapshots of main stay, and a dropped guard is said aloud."""
    world = make_world(days=2)
    snapshots = {s.snapshot_id for s in world.table().snapshots()}
    run = world.to("published")
    table = world.table()
    guard = table.snapshot_by_id(table.metadata.refs[GUARD].snapshot_id)
    assert guard is not None
    assert guard.manifests(table.io) == []
    assert guard.parent_snapshot_id is None or table.snapshot_by_id(guard.parent_snapshot_id) is None
    assert snapshots <= {s.snapshot_id for s in table.snapshots()}
    world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    world.sql(f"ALTER TABLE {TABLE} DROP BRANCH {GUARD}")
    world.client.status()
    assert GUARD in world.refs()
    assert any("WARNING" in line and GUARD in line for line in world.said)


def _without_guard(world: World) -> None:
    """A tool that drops refs it does not know, and an expiry after it."""
    for ref in sorted(world.refs() - {"main"}):
        kind = "BRANCH" if world.table().metadata.refs[ref].snapshot_ref_type == "branch" else "TAG"
        world.sql(f"ALTER TABLE {TABLE} DROP {kind} `{ref}`")
    _expire_by_java(world)


def _hazards_closed(world: World) -> list[str]:
    return [e.body["why"] for e in world.ledger.audit.entries() if e.action == "hazard.closed"]


def test_files_that_an_expiry_took_are_named_and_the_hazard_stays_open(world_at: WorldAt) -> None:
    """A file is deleted while the guard is gone: status warns, doctor names it, nothing is said to be over."""
    world, run = world_at("published", days=2)
    world.client.rollback(run, reason="undo", as_="bo")
    _without_guard(world)
    (lost,) = world.files()[world.days[0]]
    place = Path(lost.removeprefix("file://").removeprefix("file:"))
    place.rename(place.with_suffix(".away"))
    for _ in range(2):
        world.client.status()
    assert any("1 of 2 files" in line and "are gone" in line for line in world.said)
    check = next(check for check in world.client.doctor() if check.name == f"files {world.publication(run, 2)}")
    assert not check.ok
    assert lost in check.found
    assert check.hint.startswith("errata plan fin.sales --partitions ")
    assert _hazards_closed(world) == []
    place.with_suffix(".away").rename(place)
    world.client.status()
    assert len(_hazards_closed(world)) == 1


def test_an_undo_branch_holds_exactly_the_files_that_were_taken_out(make_world: Make) -> None:
    """The promise of 30 days pins these files and not the whole table."""
    world = make_world(days=4)
    before = world.files()
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    table = world.table()
    ref = table.metadata.refs[undo_branch(world.publication(run))]
    assert world.files(ref.snapshot_id) == {day: before[day] for day in world.days[:2]}
    assert ref.max_ref_age_ms is not None
    kept_until = table.snapshot_by_id(ref.snapshot_id).timestamp_ms + ref.max_ref_age_ms  # type: ignore[union-attr]
    assert kept_until >= time.time() * 1000 + 29 * 86_400_000


def test_a_partition_with_delete_files_comes_back_without_the_deleted_rows(make_world: Make) -> None:
    """Old files that carry deletes cannot be added again as they are: their rows are written anew."""
    modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
    world = make_world(days=2, properties=modes)
    world.live(world.days[0], "gone")
    world.sql(
        f"INSERT INTO {TABLE} VALUES (date'{world.days[0]}', 'p', 1, 1, null, null), "
        f"(date'{world.days[0]}', 'q', 1, 1, null, null)"
    )
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'{world.days[0]}' AND account = 'q'")
    assert any(
        int(e.data_file.content)
        for m in world.table().current_snapshot().manifests(world.table().io)
        for e in m.fetch_manifest_entry(world.table().io)
    )
    old = world.rows()
    run = world.to("published")
    assert world.rows() == world.expected()
    view = world.client.rollback(run, reason="undo", as_="bo")
    assert view.data_files_written > 0
    assert world.rows() == old


@pytest.mark.slow  # faults/test_reading.py reads beside many of them
def test_readers_see_the_whole_scope_old_or_the_whole_scope_new(make_world: Make) -> None:
    """A reader that loops through a publication and a rollback never sees a mixture."""
    import threading

    world = make_world(days=3)
    run = world.to("validated")
    old, new, seen, stop = world.wrong(), world.expected(), [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(world.rows())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        world.client.publish(run, as_="bo")
        world.client.rollback(run, reason="undo", as_="bo")
    finally:
        stop.set()
        reader.join()
    assert len(seen) > 3
    assert all(rows in (old, new) for rows in seen)


def _expire_by_java(world: World) -> None:
    java = world.engines.java
    table = java.load(TABLE)
    table.expireSnapshots().expireOlderThan(int(time.time() * 1000) + 1000).retainLast(1).commit()
