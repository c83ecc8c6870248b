"""A delete file of live is a write, whether or not it applies to a live file: to go over it would bring rows back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from spark.test_later_columns import cut_history
from support.deletes import add_deletes, delete_files, delete_position, delete_rows, rows_by_spark
from support.world import TABLE, World

Make = Callable[..., World]
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
FORMATS = ["2", pytest.param("3", marks=pytest.mark.slow)]
EXPIRED = pytest.mark.parametrize(
    "expired", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["kept", "expired"]
)
EXPIRE = (
    "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
)


@pytest.mark.parametrize("version", FORMATS)
def test_an_equality_delete_in_an_empty_partition_of_the_scope_is_a_conflict(make_world: Make, version: str) -> None:
    """No file of that day is live, so none has changed; the other day goes out, and so does a new plan."""
    world = make_world(days=2, history=False, properties={"format-version": version})
    world.write_history(world.days[:1])
    run = world.to("validated")
    day = world.days[1]
    delete_rows(world, partition=day, day=day, account="a0")
    before = rows_by_spark(world)
    with pytest.raises(PublishConflict, match=f"{day} .*delete file") as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [day]
    assert rows_by_spark(world) == before
    world.client.publish(run, partitions=world.days[0], as_="bo")
    assert delete_files(world) == {}, "Iceberg drops deletes that are older than all data, in any commit"
    with pytest.raises(PublishConflict, match=f"{day} .*delete file"):
        world.client.publish(run, as_="bo")
    again = world.to("published", day, supersede=run, reason="again, and live knows")
    assert rows_by_spark(world) == world.expected()
    world.client.rollback(again, reason="undo", as_="bo")
    assert rows_by_spark(world) == world.expected(world.days[:1])


@EXPIRED
@pytest.mark.parametrize("version", FORMATS)
def test_a_rollback_does_not_bring_back_what_live_deleted_since(make_world: Make, version: str, expired: bool) -> None:
    """The published day has no such row, so no file has the delete; a delete of before the plan is in nobody's way."""
    world = make_world(days=2, properties={"format-version": version})
    hit, other = world.days
    for day in world.days:
        world.live(day, "zz")
        delete_rows(world, partition=day, day=day, account="long gone")
    old = rows_by_spark(world)
    run = world.to("published")
    delete_rows(world, partition=hit, day=hit, account="zz")
    if expired:
        cut_history(world)
    with pytest.raises(PublishConflict, match=f"{hit} .*delete file") as conflict:
        world.client.rollback(run, reason="undo", as_="bo")
    assert conflict.value.fields["partitions"] == [hit]
    assert not [row for row in rows_by_spark(world) if row[1] == "zz"]
    world.client.rollback(run, partitions=other, reason="undo", as_="bo")
    assert [row for row in rows_by_spark(world) if row[0] == other] == [row for row in old if row[0] == other]


@pytest.mark.parametrize("version", FORMATS)
def test_a_position_delete_on_a_file_that_was_taken_out_is_a_conflict(make_world: Make, version: str) -> None:
    """Its writer had read the day before it was published; the rollback would bring that file back, row and all."""
    world = make_world(days=1, properties=MERGE_ON_READ | {"format-version": version})
    (day,) = world.days
    if version == "3":
        world.live(day, "twice")
        world.sql(f"DELETE FROM {TABLE} WHERE account = 'a0'")
        ((_, vector),) = delete_files(world).items()
    ((path, *_),) = world.files().values()
    run = world.to("published")
    if version == "3":
        add_deletes(world, vector)
    else:
        delete_position(world, path, 0, partition=day)
    with pytest.raises(PublishConflict, match=f"{day} .*delete file"):
        world.client.rollback(run, reason="undo", as_="bo")
    assert rows_by_spark(world) == world.expected()


@EXPIRED
def test_a_rewrite_of_position_deletes_is_no_write(make_world: Make, expired: bool) -> None:
    """Two delete files become one of the same age; the rows are the same."""
    world = make_world(days=1, rows=4, properties=MERGE_ON_READ | {"write.delete.granularity": "partition"})
    for account in ("a1", "a2"):
        world.sql(f"DELETE FROM {TABLE} WHERE account = '{account}'")
    old, files = rows_by_spark(world), set(delete_files(world))
    run = world.to("validated")
    world.sql("CALL lake.system.rewrite_position_delete_files('fin.sales', map('rewrite-all','true'))")
    assert files.isdisjoint(delete_files(world))
    assert rows_by_spark(world) == old
    if expired:
        world.sql(EXPIRE)
    world.client.publish(run, as_="bo")
    assert rows_by_spark(world) == world.expected()
    world.client.rollback(run, reason="undo", as_="bo")
    assert rows_by_spark(world) == old


def test_a_global_equality_delete_hits_the_days_that_it_may_be_about(make_world: Make) -> None:
    """All of them, unless the day is among its columns; then its bounds tell."""
    world = make_world(days=2, spec="", history=False)
    world.sql(f"ALTER TABLE {TABLE} ADD PARTITION FIELD day")
    world.write_history(world.days)
    first, second = world.days
    run = world.to("validated")
    delete_rows(world, partition=None, day=second, account="nobody")
    with pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [second]
    delete_rows(world, partition=None, account="nobody")
    with pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [first, second]
    assert rows_by_spark(world) == world.wrong()


def test_equality_deletes_of_shared_files_are_writes_of_the_days_that_they_may_be_about(make_world: Make) -> None:
    """The rows they delete may be in no file, so content does not tell; deletes of other days stay what they are."""
    world = make_world(days=2, spec="")
    hit, other = world.days
    run = world.to("validated", hit)
    delete_rows(world, partition=None, day=other, account="a0")
    world.client.publish(run, as_="bo")
    rest = [row for row in world.wrong([other]) if row[1] != "a0"]
    assert rows_by_spark(world) == sorted([*world.expected([hit]), *rest])
    delete_rows(world, partition=None, day=hit, account="nobody")
    with pytest.raises(PublishConflict, match=f"{hit} .*delete file"):
        world.client.rollback(run, reason="undo", as_="bo")
    assert rows_by_spark(world) == sorted([*world.expected([hit]), *rest])
