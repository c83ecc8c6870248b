"""Commits of main by partition, and the table as it was, from metadata alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, StringType

from errata.engines.iceberg.metadata.history import IcebergHistory, format_application
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import NotFound
from errata.model.partition import Grain
from errata.model.table import Departure, Touch
from unit.engines.conftest import Lake, append, on

NAME, DAYS = "lake.fin.t", ("2026-01-03", "2026-01-04")


@pytest.fixture
def reader(lake: Lake) -> IcebergHistory:
    return IcebergHistory(TableLoader({"lake": lake.catalog}))


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two days, then one of them again, then the other."""
    made = lake.create("t", ("day", IdentityTransform()), rows=[on(DAYS[0]), on(DAYS[1])])
    append(made, on(DAYS[0]), on(DAYS[0]))
    return append(made, on(DAYS[1]))


def ids(table: Table) -> list[str]:
    return [str(entry.snapshot_id) for entry in table.history()]


def test_only_commits_that_touched_the_partition_are_told(reader: IcebergHistory, table: Table):
    """Newest first, with rows and with what stood right before; the beginning is known."""
    first, second, _ = ids(table)
    found = reader.commits(NAME, "day", Grain.DAY, DAYS[:1])
    assert [(one.snapshot_id, one.parent_id, one.operation) for one in found.commits] == [
        (second, first, "append"),
        (first, None, "append"),
    ]
    assert found.commits[0].touched == {DAYS[0]: Touch(2, 0, 0)}
    assert found.complete
    assert not reader.commits(NAME, "day", Grain.DAY, DAYS[:1], most=1).complete


def test_commits_since_a_snapshot_end_before_it(reader: IcebergHistory, table: Table):
    """The snapshot itself is what was known; one that main does not reach leaves the answer incomplete."""
    first, second, third = ids(table)
    found = reader.commits(NAME, "day", Grain.DAY, DAYS, since=first)
    assert ([one.snapshot_id for one in found.commits], found.complete) == ([third, second], True)
    assert reader.commits(NAME, "day", Grain.DAY, DAYS, since=third).commits == ()
    assert not reader.commits(NAME, "day", Grain.DAY, DAYS, since="12345").complete


def test_the_table_as_it_was(reader: IcebergHistory, table: Table):
    """Sizes are those of then, and only later commits in scope are told."""
    first, second, third = ids(table)
    held = reader.held(NAME, "day", Grain.DAY, DAYS, first)
    assert {name: size.rows for name, size in held.partitions.items()} == dict.fromkeys(DAYS, 1)
    assert [one.snapshot_id for one in held.since.commits] == [third, second]
    assert held.since.complete
    assert held.problems == ()
    only = reader.held(NAME, "day", Grain.DAY, DAYS[:1], second)
    assert only.since.commits == ()


def test_a_tag_and_a_time_name_a_snapshot(reader: IcebergHistory, table: Table):
    """A time names what main held then."""
    first, second, _ = ids(table)
    table.manage_snapshots().create_tag(int(second), "month_end").commit()
    assert reader.held(NAME, "day", Grain.DAY, DAYS, "month_end").snapshot_id == second
    at = table.snapshot_by_id(int(first)).timestamp_ms  # type: ignore[union-attr]
    when = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
    assert reader.held(NAME, "day", Grain.DAY, DAYS, when).snapshot_id == first


def when(table: Table, entry: int) -> str:
    """The time at which main came to hold what the log names there."""
    at = table.metadata.snapshot_log[entry].timestamp_ms
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def test_a_time_before_main_was_set_back_names_what_it_held_then(reader: IcebergHistory, table: Table):
    """Someone set main to an older snapshot: that one counts for two times, and the one between for its own."""
    first, second, _ = ids(table)
    table.manage_snapshots().set_current_snapshot(snapshot_id=int(first)).commit()
    table.refresh()
    found = [reader.held(NAME, "day", Grain.DAY, DAYS, when(table, entry)).snapshot_id for entry in (0, 1, 3)]
    assert found == [first, second, first]


def test_a_snapshot_that_main_was_set_back_from_is_told_with_when_and_where_to(reader: IcebergHistory, table: Table):
    """Also when main has gone on since, on either side; what its head descends from was not left."""
    first, second, third = ids(table)
    assert reader.left(NAME, ids(table)) == {}
    table.manage_snapshots().set_current_snapshot(snapshot_id=int(first)).commit()
    append(table.refresh(), on(DAYS[0]))
    table.refresh()
    back_at = table.metadata.snapshot_log[3].timestamp_ms
    left = Departure(first, back_at, is_sure=True)
    assert reader.left(NAME, [first, second, third, ids(table)[-1]]) == {second: left, third: left}


def expire(table: Table, *snapshots: str) -> None:
    """Expire these snapshots as Spark does it: their children still name them (PyIceberg would clear that)."""
    gone = {int(one) for one in snapshots}
    kept = [one for one in table.metadata.snapshots if one.snapshot_id not in gone]
    log = [one for one in table.metadata.snapshot_log if one.snapshot_id not in gone]
    place = f"{table.location()}/metadata/after-expiry.metadata.json"
    metadata = table.metadata.model_copy(update={"snapshots": kept, "snapshot_log": log})
    ToOutputFile.table_metadata(metadata, table.io.new_output(place))
    table.catalog.drop_table(table.name())
    table.catalog.register_table(table.name(), place)


def test_a_snapshot_that_may_only_have_expired_was_not_surely_left(reader: IcebergHistory, table: Table):
    """Main's known history begins after it, so main may still descend from it: nobody is told that main left it."""
    first, second, third = ids(table)
    expire(table, first, second)
    left = reader.left(NAME, [second, third])
    assert {snapshot: one.is_sure for snapshot, one in left.items()} == {second: False}


def test_a_history_that_pyiceberg_cut_has_no_known_beginning(reader: IcebergHistory, table: Table):
    """PyIceberg's expiry clears the parent of the oldest snapshot that it keeps, which does not make it the first."""
    first, second, third = ids(table)
    table.maintenance.expire_snapshots().by_ids([int(first), int(second)]).commit()
    left = reader.left(NAME, [second])
    assert {snapshot: (one.at_ms, one.is_sure) for snapshot, one in left.items()} == {second: (None, False)}
    found = reader.commits(NAME, "day", Grain.DAY, DAYS)
    assert ([one.snapshot_id for one in found.commits], found.complete) == ([third], False)


def test_a_snapshot_newer_than_the_cut_of_history_was_surely_left(reader: IcebergHistory, table: Table):
    """Expiry only cuts the old end of main's history: a newer snapshot that is not part of it was really left."""
    first, second, third = ids(table)
    table.manage_snapshots().set_current_snapshot(snapshot_id=int(second)).commit()
    expire(table.refresh(), first)
    left = reader.left(NAME, [third])
    assert {snapshot: (one.snapshot_id, one.is_sure) for snapshot, one in left.items()} == {third: (second, True)}


@pytest.mark.parametrize("asked", ["1", "2001-01-01T00:00Z", "last tuesday", "2026-01-03", "side", "errata_x_pub"])
def test_what_main_never_held_is_refused_with_what_there_is(reader: IcebergHistory, table: Table, asked: str):
    """A number that is unknown, a time before all of it, a branch, and a fence are no content of main."""
    first, second, third = ids(table)
    with table.manage_snapshots() as manage:
        manage.create_branch(int(second), "side").create_branch(int(first), "errata_guard")
        manage.create_tag(int(first), "errata_x_pub").create_tag(int(second), "month_end")
    with pytest.raises(NotFound) as refused:
        reader.held(NAME, "day", Grain.DAY, DAYS, asked)
    said = refused.value.message
    assert all(text in said for text in (first, third, "month_end"))
    assert "errata_x_pub;" not in said.partition("tags:")[2]


def test_columns_go_by_their_field_ids(reader: IcebergHistory, table: Table):
    """Renamed keeps its values, added is absent; removed and added anew under the same name is removed."""
    first = ids(table)[0]
    with table.update_schema() as update:
        update.rename_column("region", "area")
        update.add_column("note", StringType())
    held = reader.held(NAME, "day", Grain.DAY, DAYS, first)
    assert held.columns == {"day": "day", "at": "at", "area": "region", "n": "n"}
    assert held.problems == ()
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", LongType())
    (problem,) = reader.held(NAME, "day", Grain.DAY, DAYS, first).problems
    assert problem.startswith("column n (long) was removed since")


def test_a_column_that_was_added_with_a_default_value_cannot_be_put_back(reader: IcebergHistory, lake: Lake):
    """Old rows read as the default now; put back they would hold NULL, so the restore is refused."""
    table = lake.create("t", ("day", IdentityTransform()), rows=[on(DAYS[0])])
    with table.update_schema() as update:
        update.add_column("note", StringType(), default_value="none")
    (problem,) = reader.held(NAME, "day", Grain.DAY, DAYS[:1], ids(table)[0]).problems
    assert problem.startswith("column note was added since with a default value")


def test_a_wider_type_fits(reader: IcebergHistory, lake: Lake):
    """What Iceberg promotes needs no cast of ours."""
    table = lake.create("t", ("day", IdentityTransform()), rows=[on(DAYS[0])])
    with table.update_schema() as update:
        update.add_column("small", IntegerType())
    append(table, on(DAYS[0]))
    second = ids(table)[1]
    with table.update_schema() as update:
        update.update_column("small", LongType())
    held = reader.held(NAME, "day", Grain.DAY, DAYS, second)
    assert held.problems == ()
    assert held.columns["small"] == "small"


@pytest.mark.parametrize(
    "summary,told",
    [
        ({"app-name": "nightly", "app-id": "app-7", "spark.app.id": "app-7"}, "nightly (app-7)"),
        ({"spark.app.id": "app-7"}, "app-7"),
        ({"engine-name": "trino"}, "trino"),
        ({}, "unknown"),
    ],
)
def test_whoever_wrote_is_told_by_name_and_id(summary: dict[str, str], told: str):
    """As far as the engine says."""
    assert format_application(summary) == told
