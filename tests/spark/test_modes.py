"""Publication modes through whole runs: what readers see, what a live write does, what a rollback leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PlanRefused, PublishConflict, RunFailed
from support.world import PRODUCT_FILE, TABLE, TRANSFORM, World

Make = Callable[..., World]

APPEND = PRODUCT_FILE.replace("mode: replace_partitions", "mode: append")
MERGE = PRODUCT_FILE.replace(
    "{mode: replace_partitions,", "{mode: merge, merge: {version: n, delete: gone},"
).partition("reconcile:")[0]
# account a0 is not given, a1 is deleted, the rest is corrected at an equal version
CHANGES = TRANSFORM.replace("    return raw", "    rows = raw").rstrip() + (
    '\n    return rows.where("account <> \'a0\'").withColumn("gone", F.col("account") == "a1")\n'
)


def merged_rows(world: World, day: str) -> list[tuple[object, ...]]:
    """What the merge leaves of a day, computed here."""
    wrong = {row[1]: row for row in world.wrong([day])}
    right = {row[1]: row for row in world.expected([day])}
    return sorted([wrong["a0"], *(row for name, row in right.items() if name not in ("a0", "a1"))])


def incremental(world: World, after: int | None) -> int:
    """Rows that an incremental reader gets after a snapshot."""
    reader = world.spark.read.format("iceberg").option("start-snapshot-id", str(after))
    return reader.load(TABLE).count()


def test_append_atomic_whole_scope(make_world: Make) -> None:
    """One append snapshot with every partition of the scope; incremental and streaming readers see its rows."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    before = world.snapshot()
    seen = world.root / "stream"
    stream = world.spark.readStream.format("iceberg").load(TABLE).writeStream.format("memory").queryName("seen")
    stream = stream.option("checkpointLocation", str(seen)).trigger(availableNow=True).outputMode("append")
    stream.start().awaitTermination()
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    table = world.table()
    head = table.current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary.operation.value == "append"
    assert head.summary.additional_properties["errata.publication"] == f"{run}-p1"
    assert world.rows() == sorted(world.wrong(world.days[:1]) + world.expected(world.days[1:]))
    assert incremental(world, before) == len(world.expected(world.days[1:]))
    stream.start().awaitTermination()
    assert world.spark.sql("SELECT * FROM seen").count() == len(world.rows())


def test_append_conflict_detected(make_world: Make) -> None:
    """Rows that are live by then are kept, and the rest of the scope can still go out."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    with pytest.raises(PlanRefused, match=f"1 of 3 partitions are not empty: {world.days[0]}"):
        world.plan()
    run = world.to("validated", f"{world.days[1]}..{world.days[2]}")
    world.live(world.days[1])
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    world.client.publish(run, partitions=world.days[2], as_="bo")
    days = {row[0]: row[1] for row in world.rows() if row[0] != world.days[0]}
    assert days[world.days[1]] == "live"
    assert [row for row in world.rows() if row[0] == world.days[2]] == world.expected([world.days[2]])


def test_append_per_partition_rollback(make_world: Make) -> None:
    """The files are taken out again, one partition at a time; what stood beside them stays."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    world.client.rollback(run, partitions=world.days[1], reason="too early", as_="bo")
    assert world.rows() == sorted(world.wrong(world.days[:1]) + world.expected(world.days[2:]))
    world.client.rollback(run, reason="all of it", as_="bo")
    assert world.rows() == world.wrong(world.days[:1])


def test_merge_atomic_whole_scope(make_world: Make) -> None:
    """Keys that are not given stay, deleted ones go, the rest is corrected: in one commit that writes no data file."""
    world = make_world(days=2, product=MERGE, transform=CHANGES)
    run = world.to("validated")
    found = world.client.diff(run).diff
    assert (found.removed, found.changed, found.added) == (2, 2, 0)
    view = world.client.publish(run, as_="bo")
    assert view.data_files_written == 0
    assert world.rows() == sorted(row for day in world.days for row in merged_rows(world, day))


def test_merge_per_partition_rollback(make_world: Make) -> None:
    """What the merge took out or changed comes back, also rows that delete files had hidden stay hidden."""
    world = make_world(
        days=2, product=MERGE, transform=CHANGES, properties={"write.delete.mode": "merge-on-read"}, rows=4
    )
    world.sql(f"DELETE FROM {TABLE} WHERE account = 'a3' AND day = date'{world.days[0]}'")
    before = world.rows()
    run = world.to("published")
    # a3 was given by the transform, so it is there again; a0 was not, and has its old row
    assert [row for row in world.rows() if row[0] == world.days[0]] == merged_rows(world, world.days[0])
    world.client.rollback(run, partitions=world.days[0], reason="wrong version", as_="bo")
    assert [row for row in world.rows() if row[0] == world.days[0]] == [r for r in before if r[0] == world.days[0]]
    world.client.rollback(run, reason="all of it", as_="bo")
    assert world.rows() == before


def test_merge_keeps_rows_hidden_that_delete_files_had_taken_out(make_world: Make) -> None:
    """Prior rows are read as readers see them: a deleted row whose key is not given does not come back."""
    world = make_world(days=1, product=MERGE, transform=CHANGES, properties={"write.delete.mode": "merge-on-read"})
    world.sql(f"DELETE FROM {TABLE} WHERE account = 'a0'")
    world.to("published")
    assert [row[1] for row in world.rows()] == ["a2"]


@pytest.mark.slow
def test_merge_conflict_detected(make_world: Make) -> None:
    """What was merged with is the base; a live write since is a conflict."""
    world = make_world(days=2, product=MERGE, transform=CHANGES)
    run = world.to("validated")
    world.live(world.days[0])
    with pytest.raises(PublishConflict, match=world.days[0]):
        world.client.publish(run, as_="bo")


@pytest.mark.slow
def test_an_ambiguous_merge_fails_its_chunk_and_names_the_key(make_world: Make) -> None:
    """Two changes of one key at one version."""
    doubled = CHANGES.replace("    return rows.where", "    rows = rows.unionAll(rows)\n    return rows.where")
    world = make_world(days=1, product=MERGE, transform=doubled)
    with pytest.raises(RunFailed, match="two changes of one key have the same version: day=2026-01-01, account=a"):
        world.to("staged")
