"""The promise to undo: what it pins, what it survives, and what a partition with delete files needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.errors import ErrataError, PublishConflict, RunExpired
from errata.failpoints import arm
from errata.model.refs import GUARD, pub_tag, run_branch, undo_branch
from spark.test_mode_guarantees import MODES, Mode
from spark.test_shapes import HIDDEN, HIDDEN_TRANSFORM
from support.ids import numbered
from support.terminal import text
from support.world import TABLE, World

Make = Callable[..., World]


def test_after_publish_and_rollback_no_expiry_takes_a_live_file(make_world: Make) -> None:
    """Expiry by the Spark procedure and by the Java API with retainLast(1) leave every live file there."""
    world = make_world(days=3)
    run = world.to("published")
    world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    rows = world.rows()
    _expire_by_java(world)
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    assert world.rows() == rows
    assert world.client.rollback(run, reason="the rest", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_the_guard_alone_keeps_an_expiry_from_taking_restored_files(make_world: Make) -> None:
    """With every other ref of ours gone, the guard still makes expiry look at what is reachable."""
    world = make_world(days=2)
    run = world.to("published")
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
    java = world.client._workspace.engines.java
    java.bulk.snapshots(java.load(TABLE))

    def make(n: int) -> None:
        open_branch(java, TABLE, f"errata_race{n}", 1)

    threads = [threading.Thread(target=make, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"errata_race0", "errata_race1", "errata_race2", GUARD} <= world.refs()


def test_a_hazard_closes_when_the_restored_files_were_rewritten(make_world: Make) -> None:
    """A rollback opens it; after a rewrite of those files the next command closes it."""
    world = make_world(days=1)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    ledger = world.client._workspace.ledger
    assert len(ledger.guards.open_hazards()) == 1
    world.client.status()
    assert len(ledger.guards.open_hazards()) == 1
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    world.client.status()
    assert ledger.guards.open_hazards() == ()


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


@pytest.mark.parametrize("shape", [lambda make: make(days=2), _hidden], ids=["date", "instant"])
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
    closed = [e.body["why"] for e in world.client._workspace.ledger.audit.entries() if e.action == "hazard.closed"]
    came_back = mode.touches_target and mode.name != "append"
    assert closed == ([] if came_back else ["the rollback brought no files back into the table"])
    assert len(world.client._workspace.ledger.guards.open_hazards()) == int(came_back)


def test_compaction_between_stacked_runs_does_not_void_the_lower_rollback(make_world: Make) -> None:
    """A published, compacted, B published and taken back: A can still be taken back."""
    world = make_world(days=1)
    first = world.to("published")
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    second = world.to("published", reason="again")
    world.client.rollback(second, reason="undo", as_="bo")
    assert world.client.rollback(first, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


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
    return [e.body["why"] for e in world.client._workspace.ledger.audit.entries() if e.action == "hazard.closed"]


def test_a_hazard_during_which_the_guard_was_missing_is_closed_with_that(make_world: Make) -> None:
    """The record never says that the guard was there when it was not; what it says of the files was looked at."""
    world = make_world(days=2)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    _without_guard(world)
    world.client.status()
    assert any("was gone and has been put back" in line for line in world.said)
    checks = {check.name: check for check in world.client.doctor()}
    assert checks[f"files {world.publication(run, 2)}"].ok
    assert checks[f"files {world.publication(run, 2)}"].found == f"all 2 of {world.days[0]} … {world.days[1]} are there"
    assert _hazards_closed(world) == []
    world.client.status()
    (why,) = _hazards_closed(world)
    assert why.startswith("the publication's snapshot has expired; the guard was missing for a time, and 2 files")


def test_a_hazard_with_a_guard_throughout_is_closed_as_that(make_world: Make) -> None:
    """The publication's snapshot expires, the guard is where it was."""
    world = make_world(days=1)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    for ref in sorted(world.refs() - {"main", GUARD}):
        kind = "BRANCH" if world.table().metadata.refs[ref].snapshot_ref_type == "branch" else "TAG"
        world.sql(f"ALTER TABLE {TABLE} DROP {kind} `{ref}`")
    _expire_by_java(world)
    world.client.status()
    assert _hazards_closed(world) == ["the publication's snapshot has expired while the guard was there"]


def test_files_that_an_expiry_took_are_named_and_the_hazard_stays_open(make_world: Make) -> None:
    """A file is deleted while the guard is gone: status warns, doctor names it, nothing is said to be over."""
    world = make_world(days=2)
    run = world.to("published")
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


@pytest.mark.slow
def test_publications_of_one_run_have_ids_of_their_own(make_world: Make) -> None:
    """Two groups, a rollback of one, and a new run over it: each look-up finds its own publication."""
    world = make_world(days=4)
    run = world.to("validated")
    first = world.client.publish(run, partitions=list(world.days[:2]), as_="bo")
    second = world.client.publish(run, as_="bo")
    assert (first.state, second.state) == ("part_published", "published")
    assert second.partitions == world.days[2:]
    back = world.client.rollback(run, partitions=list(world.days[:2]), reason="first group", as_="bo")
    assert len({first.publication_id, second.publication_id, back.publication_id}) == 3
    assert [r for r in world.rows() if r[0] in world.days[:2]] == world.wrong(world.days[:2])
    again = world.to("published", f"{world.days[0]}..{world.days[1]}", reason="second try")
    assert world.rows() == world.expected()
    assert world.client.rollback(run, partitions=world.days[0], reason="first group", as_="bo").already
    assert world.client.rollback(again, reason="unwind", as_="bo").state == "rolled_back"
    assert world.client.rollback(run, reason="all", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


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


def test_a_fence_keeps_a_late_commit_out(make_world: Make) -> None:
    """Once the publication's own tag sits on the guard, its commit cannot land any more."""
    world = make_world(days=2)
    run = world.to("validated")
    publishing, target = (
        world.client._workspace.engines.publishing,
        world.client._workspace.ledger.runs.manifest(run).target,
    )
    head = world.snapshot()
    with (
        arm("publish.before_commit", lambda: publishing.fence(target, world.publication(run))),
        pytest.raises(PublishConflict),
    ):
        world.client.publish(run, as_="bo")
    assert world.snapshot() == head
    assert (
        world.table().metadata.refs[pub_tag(world.publication(run))].snapshot_id
        == world.table().metadata.refs[GUARD].snapshot_id
    )
    assert numbered(world.client.publish(run, as_="bo").publication_id) == f"{run}-p2"


def test_two_publishers_of_one_scope_do_not_both_commit(make_world: Make) -> None:
    """The second is refused while the first holds the locks, and told so."""
    world = make_world(days=2)
    run = world.to("validated")
    refused: list[ErrataError] = []

    def second() -> None:
        if refused:
            return
        try:
            world.client.publish(run, as_="cy")
        except ErrataError as error:
            refused.append(error)

    with arm("publish.before_commit", second):
        world.client.publish(run, as_="bo")
    assert [error.exit_code for error in refused] == [3]
    assert world.rows() == world.expected()


def test_a_run_branch_dropped_too_early_expires_the_run_and_touches_nothing(make_world: Make) -> None:
    """Validate says what is gone; main is unchanged."""
    world = make_world(days=2)
    run = world.to("staged")
    world.sql(f"ALTER TABLE {TABLE} DROP BRANCH `{run_branch(run)}`")
    _expire_by_java(world)
    with pytest.raises(RunExpired):
        world.client.validate(run, as_="ana")
    assert world.rows() == world.wrong()


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
    java = world.client._workspace.engines.java
    table = java.load(TABLE)
    table.expireSnapshots().expireOlderThan(int(time.time() * 1000) + 1000).retainLast(1).commit()


def test_after_the_window_a_rollback_is_refused_and_a_restore_does_it(make_world: Make) -> None:
    """The undo set is gone: the refusal says how an older snapshot is put back, and that works."""
    world = make_world(days=2)
    before = world.snapshot()
    run = world.to("published")
    world.sql(f"ALTER TABLE {TABLE} DROP BRANCH `{undo_branch(world.publication(run))}`")
    head = world.snapshot()
    with pytest.raises(RunExpired) as refused:
        world.client.rollback(run, reason="too late", as_="bo")
    assert "--restore" in (refused.value.hint or "")
    assert f"errata history {TABLE}" in (refused.value.hint or "")
    assert world.snapshot() == head
    again = world.to("published", restore=str(before), reason="too late for a rollback")
    assert world.rows() == world.wrong()
    accepted = world.client._workspace.ledger.partitions.accepted(TABLE)
    assert {record.run_id for record in accepted.values()} == {again}
    assert world.client.status(run).state == "superseded"


def test_a_rollback_takes_a_restore_back_and_not_what_it_superseded(make_world: Make) -> None:
    """Live, run, restore of live's rows, rollback of the restore: the run is the truth again, in table and history."""
    world = make_world(days=1)
    before = world.snapshot()
    run = world.to("published")
    restore = world.to("published", restore=str(before), reason="the old numbers were right")
    assert world.rows() == world.wrong()
    world.client.rollback(restore, reason="they were not", as_="bo")
    assert world.rows() == world.expected()
    told = [(event.action, event.run_id) for event in world.client.why(TABLE, world.days[0]).history]
    assert told == [("live", None), ("published", run), ("published", restore), ("rolled_back", restore)]
    told = [event.restored for event in world.client.why(TABLE, world.days[0]).history]
    assert told == [None, None, str(before), None]
    view = world.client.history(TABLE, world.days[0])
    assert [(one.writer, one.run_id) for one in view.commits] == [
        ("errata", restore), ("errata", restore), ("errata", run), ("job", None),
    ]  # fmt: skip
    assert [one.accepted for one in view.commits] == [True, False, False, False]
    assert view.complete
    moments = [row.at for row in world.client._workspace.ledger.partitions.history(TABLE, world.days[0])]
    truths = [world.client.runs(accepted_at=at).accepted[0].run_id for at in moments]
    assert truths == [run, restore, run]


@pytest.mark.slow
def test_a_rollback_that_would_lose_a_later_live_write_is_refused_for_that_day_only(make_world: Make) -> None:
    """The refusal names the day and who wrote it; the other days go back, again and again the same."""
    world = make_world(days=3)
    run = world.to("published")
    world.live(world.days[1], "late")
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.rollback(run, reason="undo", as_="bo")
    for day in (world.days[0], world.days[2]):
        assert world.client.rollback(run, partitions=day, reason="undo", as_="bo").partitions == (day,)
        assert world.client.rollback(run, partitions=day, reason="undo", as_="bo").already
    assert world.client.status(run).state == "published"
    assert [r for r in world.rows() if r[0] != world.days[1]] == world.wrong((world.days[0], world.days[2]))
