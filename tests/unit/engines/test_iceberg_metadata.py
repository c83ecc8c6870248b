from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.typedef import Record

from errata.canonical import digest_of
from errata.engines.iceberg.metadata.data_files import LiveFile, attach_deletes, fingerprint_files
from errata.engines.iceberg.metadata.history import IcebergHistory
from errata.errors import NotFound, SetupError, UsageError
from errata.model.calendar_math import ordinal_at
from errata.model.partition import NULL, Grain
from errata.model.product import Completeness, Input
from errata.ports.tables import Arrival
from unit.engines.conftest import Lake, append, data_file, on

IDENTITY: Transform[Any, Any] = IdentityTransform()


@pytest.mark.parametrize(
    "column,transform,grain,expected",
    [
        ("day", IDENTITY, Grain.DAY, "2026-01-03"),
        ("at", DayTransform(), Grain.DAY, "2026-01-03"),
        ("at", HourTransform(), Grain.HOUR, "2026-01-03T05"),
        ("at", MonthTransform(), Grain.MONTH, "2026-01"),
        ("day", MonthTransform(), Grain.MONTH, "2026-01"),
        ("at", YearTransform(), Grain.YEAR, "2026"),
        ("region", IDENTITY, Grain.VALUE, "EU"),
        ("n", IDENTITY, Grain.VALUE, "7"),
    ],
)
def test_partitions_are_written_as_people_write_them(
    lake: Lake, column: str, transform: Transform[Any, Any], grain: Grain, expected: str
):
    """Every supported spec gives canonical texts, sizes and the expected set of the partitions asked for."""
    table = lake.create("t", (column, transform), rows=[on("2026-01-03T05:30:00", 7), on("2026-01-03T05:31:00", 7)])
    facts = lake.reader.read_target("lake.fin.t", column, grain, [expected])
    (task,) = table.scan().plan_files()
    assert facts.partition_field is not None
    assert facts.partition_field.transform == str(transform)
    assert facts.partitions[expected].rows == 2
    assert facts.partitions[expected].bytes == task.file.file_size_in_bytes
    assert [(f.path, f.rows, f.content) for f in facts.expected[expected]] == [(task.file.file_path, 2, "data")]
    assert facts.base_snapshot_id == str(table.current_snapshot().snapshot_id)


def test_the_field_is_found_by_column_and_transform_not_by_position(lake: Lake):
    """In a spec of several fields the product's field may be anywhere, and files of one day count together."""
    rows = [on("2026-01-01", 1, "EU"), on("2026-01-01", 2, "US"), on("2026-01-02", 3, "EU")]
    lake.create("t", ("region", IDENTITY), ("n", BucketTransform(4)), ("at", DayTransform()), rows=rows)
    facts = lake.reader.read_target("lake.fin.t", "at", Grain.DAY, ["2026-01-01"])
    assert {name: size.rows for name, size in facts.partitions.items()} == {"2026-01-01": 2, "2026-01-02": 1}
    assert len(facts.expected["2026-01-01"]) == 2
    by_region = lake.reader.read_target("lake.fin.t", "region", Grain.VALUE, ["US"])
    assert {name: size.rows for name, size in by_region.partitions.items()} == {"EU": 2, "US": 1}


def test_null_is_a_partition_value(lake: Lake):
    """Rows without a value are their own partition, and a string 'null' is not that partition."""
    lake.create("t", ("region", IDENTITY), rows=[on("2026-01-01", 1, None), on("2026-01-01", 2, "null")])
    facts = lake.reader.read_target("lake.fin.t", "region", Grain.VALUE, [NULL])
    assert set(facts.partitions) == {NULL, '"null"'}
    assert [f.rows for f in facts.expected[NULL]] == [1]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    "column,transform,grain,asked",
    [
        ("day", IDENTITY, Grain.DAY, "2026-01-03"),
        ("day", MonthTransform(), Grain.MONTH, "2026-01"),
        ("day", YearTransform(), Grain.YEAR, "2026"),
        ("at", HourTransform(), Grain.HOUR, "2026-01-03T05"),
        ("at", HourTransform(), Grain.DAY, "2026-01-03"),
        ("at", DayTransform(), Grain.DAY, "2026-01-03"),
        ("at", MonthTransform(), Grain.MONTH, "2026-01"),
        ("at", MonthTransform(), Grain.DAY, "2026-01-03"),
        ("at", YearTransform(), Grain.YEAR, "2026"),
    ],
)
def test_a_year_that_no_date_can_name_hides_no_other_partition(
    lake: Lake, column: str, transform: Transform[Any, Any], grain: Grain, asked: str, late: bool
):
    """A row of the year 57971, or of the year 0, is told with its file; every other partition reads as without it."""
    table = lake.create("t", (column, transform), rows=[on("2026-01-03T05:30:00", 7)])
    sources = Input("raw", table="lake.fin.t", partition=column)
    before = lake.reader.read_target("lake.fin.t", column, grain, [asked])
    inputs = lake.reader.read_input(sources, grain, [asked])
    path = strange_row(table, column, transform, 20_454_000 if late else -719_600)
    after = lake.reader.read_target("lake.fin.t", column, grain, [asked])
    (name,) = after.unnameable
    assert after.unnameable == {name: path}
    assert name.startswith("+57971" if late else "-0001")
    assert (after.partitions, after.expected, after.shared_files) == (
        before.partitions,
        before.expected,
        before.shared_files,
    )
    now = lake.reader.read_input(sources, grain, [asked])
    assert (now.partitions, now.oldest) == (inputs.partitions, inputs.oldest)
    history = IcebergHistory(lake.tables).commits("lake.fin.t", column, grain, [asked])
    assert len(history.commits) == 1


@contextmanager
def appending(table: Table) -> Iterator[Any]:
    with table.transaction() as tx, tx.update_snapshot().fast_append() as update:
        yield update


def strange_row(table: Table, column: str, transform: Transform[Any, Any], day: int) -> str:
    """Metadata of one file with one row of this day since 1970, which may be in any year."""
    unit = {"identity": Grain.DAY}.get(str(transform)) or Grain(str(transform))
    field, spec = table.schema().find_field(column), table.spec()
    path, value = f"{table.location()}/data/strange.parquet", day if column == "day" else day * 86_400_000_000
    bound = to_bytes(field.field_type, value)
    metrics = {
        "value_counts": {field.field_id: 1},
        "null_value_counts": {field.field_id: 0},
        "lower_bounds": {field.field_id: bound},
        "upper_bounds": {field.field_id: bound},
    }
    # pyiceberg writes the partition's path into the snapshot's summary and has none for such a year; others do
    with mock.patch.object(PartitionSpec, "partition_to_path", return_value="strange"), appending(table) as update:
        partition = (ordinal_at(unit, day * 86_400),) if spec.fields else ()
        update.append_data_file(data_file(path, partition, 1, spec.spec_id, **metrics))
    return path


def test_a_file_without_a_partition_is_placed_by_its_bounds_in_any_year(lake: Lake):
    """Bounds in the year 57971 put a file of an unpartitioned table outside every partition that can be chosen."""
    for column, grain in (("day", Grain.MONTH), ("at", Grain.YEAR), ("at", Grain.HOUR)):
        table = lake.create(f"{column}_{grain}", rows=[on("2026-01-03T05:30:00", 7)])
        path = strange_row(table, column, DayTransform(), 20_454_000)
        asked = {Grain.MONTH: "2026-01", Grain.YEAR: "2026", Grain.HOUR: "2026-01-03T05"}[grain]
        facts = lake.reader.read_target(f"lake.fin.{column}_{grain}", column, grain, [asked])
        assert list(facts.unnameable.values()) == [path]
        assert (set(facts.partitions), facts.shared_files) == ({asked}, ())


def test_a_file_that_does_not_count_its_nulls_may_hold_rows_without_a_value(lake: Lake):
    """Not every writer leaves NULL counts; bounds of one day do not put all rows of such a file into that day."""
    table = lake.create("t")
    field = table.schema().find_field("day")
    bounds = {field.field_id: to_bytes(field.field_type, 20_456)}  # 2026-01-03
    with appending(table) as update:
        update.append_data_file(data_file("uncounted.parquet", (), 2, 0, lower_bounds=bounds, upper_bounds=bounds))
    facts = lake.reader.read_target("lake.fin.t", "day", Grain.DAY, ["2026-01-03"])
    assert (len(facts.shared_files), facts.shared_rows) == (1, 2)


def test_a_table_without_snapshots_has_no_base(lake: Lake):
    """Nothing is live, nothing is expected, and that is said with None rather than with an id."""
    lake.create("t", ("day", IDENTITY))
    facts = lake.reader.read_target("lake.fin.t", "day", Grain.DAY, ["2026-01-01"])
    assert (facts.base_snapshot_id, facts.base_timestamp_ms, facts.partitions) == (None, None, {})
    assert facts.expected == {"2026-01-01": ()}


def test_a_grain_the_spec_does_not_have_is_no_field(lake: Lake):
    """Days of an hourly table, or of an unpartitioned one, are no partitions of it."""
    lake.create("hourly", ("at", HourTransform()), rows=[on("2026-01-01T05:00")])
    lake.create("plain", rows=[on("2026-01-01"), on("2026-01-03")])
    assert lake.reader.read_target("lake.fin.hourly", "at", Grain.DAY, ["2026-01-01"]).partition_field is None
    plain = lake.reader.read_target("lake.fin.plain", "day", Grain.DAY, ["2026-01-01", "2026-01-02", "2026-01-04"])
    assert plain.partition_field is None
    assert (len(plain.shared_files), plain.shared_rows) == (1, 2)
    assert plain.shared_bytes > 0
    listed = {name: [file.path for file in files] for name, files in plain.expected.items()}
    shared = list(plain.shared_files)
    assert listed == {"2026-01-01": shared, "2026-01-02": shared, "2026-01-04": []}


def test_a_file_whose_bounds_lie_in_one_partition_is_of_that_partition(lake: Lake):
    """Also where the spec says nothing of it; NULLs beside a value make it shared, NULLs alone do not."""
    table = lake.create("t", rows=[on("2026-01-01", 1, "EU"), on("2026-01-01", 2, "EU")])
    append(table, on("2026-01-01", 3, None))
    append(table, on("2026-01-01", 4, None), on("2026-01-01", 5, "US"))
    by_day = lake.reader.read_target("lake.fin.t", "day", Grain.DAY, ["2026-01-01"])
    assert (by_day.shared_files, len(by_day.expected["2026-01-01"])) == ((), 3)
    assert {name: size.rows for name, size in by_day.partitions.items()} == {"2026-01-01": 5}
    by_region = lake.reader.read_target("lake.fin.t", "region", Grain.VALUE, ["EU", "US", "AF", NULL])
    assert len(by_region.shared_files) == 1
    assert {name: len(files) for name, files in by_region.expected.items()} == {"EU": 1, "US": 1, "AF": 0, NULL: 2}


def test_files_of_a_coarser_spec_that_touch_the_scope_are_shared(lake: Lake):
    """After monthly → daily evolution, a file that spans the scope is shared; one that is of another day is not."""
    rows = [on("2025-06-05"), on("2026-01-05"), on("2026-01-07")]
    table = lake.create("t", ("at", MonthTransform()), rows=rows)
    with table.update_spec() as update:
        update.remove_field("p0")
        update.add_field("at", DayTransform(), "daily")
    append(table, on("2026-01-06"))
    january = lake.reader.read_target("lake.fin.t", "at", Grain.DAY, ["2026-01-06"])
    assert len(january.shared_files) == 1
    assert len(january.expected["2026-01-06"]) == 2
    june = lake.reader.read_target("lake.fin.t", "at", Grain.DAY, ["2025-06-05", "2026-01-08"])
    assert (june.shared_files, len(june.expected["2025-06-05"]), june.expected["2026-01-08"]) == ((), 1, ())


def test_files_of_a_finer_spec_are_of_their_day(lake: Lake):
    """After hourly → daily evolution, bounds say what the daily field does not."""
    table = lake.create("t", ("at", HourTransform()), rows=[on("2026-01-05T01:00")])
    with table.update_spec() as update:
        update.remove_field("p0")
        update.add_field("at", DayTransform(), "daily")
    append(table, on("2026-01-05T02:00"))
    facts = lake.reader.read_target("lake.fin.t", "at", Grain.DAY, ["2026-01-05"])
    assert facts.shared_files == ()
    assert len(facts.expected["2026-01-05"]) == 2


def test_a_spec_that_changed_elsewhere_keeps_its_days(lake: Lake):
    """Adding a bucket beside the day leaves every file with the day it had."""
    table = lake.create("t", ("at", DayTransform()), rows=[on("2026-01-05")])
    with table.update_spec() as update:
        update.add_field("n", BucketTransform(4), "bucket")
    append(table, on("2026-01-05"))
    facts = lake.reader.read_target("lake.fin.t", "at", Grain.DAY, ["2026-01-05"])
    assert (facts.shared_files, len(facts.expected["2026-01-05"])) == ((), 2)


def test_text_columns_may_hold_days_and_other_texts_are_reported(lake: Lake):
    """A string column partitions by day as long as its values are days."""
    lake.create("t", ("region", IDENTITY), rows=[on("2026-01-01", 1, "2026-01-01"), on("2026-01-01", 1, "EU")])
    facts = lake.reader.read_target("lake.fin.t", "region", Grain.DAY, ["2026-01-01"])
    assert set(facts.partitions) == {"2026-01-01"}
    assert facts.unreadable_values == ("EU",)


def test_no_data_file_is_opened(lake: Lake):
    """The data files of these tables do not exist at all: only metadata is read."""
    table = lake.create("t", ("day", IDENTITY), rows=[on("2026-01-01")])
    (task,) = table.scan().plan_files()
    assert not Path(task.file.file_path.removeprefix("file://")).exists()
    assert lake.reader.read_target("lake.fin.t", "day", Grain.DAY, ["2026-01-01"]).partitions["2026-01-01"].rows == 1


def source(**more: Any) -> Input:
    return Input("events", **({"table": "lake.fin.t", "partition": "at"} | more))


def test_hours_of_an_input_are_gathered_into_the_days_of_the_product(lake: Lake):
    """A finer input is mapped by time; its fingerprint covers all of its hours."""
    table = lake.create(
        "t", ("at", HourTransform()), rows=[on("2026-01-01T01:00"), on("2026-01-01T02:00"), on("2026-01-02T01:00")]
    )
    facts = lake.reader.read_input(source(), Grain.DAY, ["2026-01-01", "2026-01-02", "2026-01-03"])
    assert {name: (size.rows, size.files) for name, size in facts.partitions.items()} == {
        "2026-01-01": (2, 2),
        "2026-01-02": (1, 1),
    }
    assert "hour" in facts.note
    append(table, on("2026-01-01T03:00"))
    later = lake.reader.read_input(source(), Grain.DAY, ["2026-01-01", "2026-01-02"])
    assert later.partitions["2026-01-01"].fingerprint != facts.partitions["2026-01-01"].fingerprint
    assert later.partitions["2026-01-02"].fingerprint == facts.partitions["2026-01-02"].fingerprint


def test_a_month_of_an_input_serves_each_of_its_days(lake: Lake):
    """A coarser input is present for every day of its months, without counting its bytes more than once."""
    table = lake.create("t", ("at", MonthTransform()), rows=[on("2026-01-01"), on("2026-01-20"), on("2026-02-01")])
    facts = lake.reader.read_input(source(), Grain.DAY, ["2026-01-01", "2026-01-02", "2026-03-01"])
    assert set(facts.partitions) == {"2026-01-01", "2026-01-02"}
    january = next(task.file for task in table.scan().plan_files() if task.file.record_count == 2)
    assert sum(size.bytes for size in facts.partitions.values()) == january.file_size_in_bytes


def test_an_input_partitioned_otherwise_is_read_whole_and_says_so(lake: Lake):
    """Without a partition field for the column, one fingerprint covers the table."""
    lake.create("t", ("region", IDENTITY), rows=[on("2026-01-01"), on("2026-01-02")])
    facts = lake.reader.read_input(source(), Grain.DAY, ["2026-01-01"])
    assert facts.partitions == {}
    assert facts.whole is not None
    assert facts.whole.rows == 2
    assert "not partitioned by at" in facts.note
    reference = lake.reader.read_input(source(partition=None), Grain.DAY, [])
    assert (reference.whole, reference.note) == (facts.whole, "")


def test_manifests_outside_the_range_are_skipped_without_changing_the_answer(lake: Lake):
    """Bounds in the manifest list prune, and the oldest partition is still known."""
    table = lake.create("t", ("at", DayTransform()))
    for day in range(1, 6):
        append(table, on(f"2026-01-0{day}"))
    facts = lake.reader.read_input(source(), Grain.DAY, ["2026-01-03", "2026-01-04"])
    assert set(facts.partitions) == {"2026-01-03", "2026-01-04"}
    assert facts.oldest == "2026-01-01"


def test_values_have_no_oldest_partition(lake: Lake):
    """Values have no order, and as text 9 would come after 10: a missing one is never called older."""
    lake.create("t", ("n", IDENTITY), rows=[on("2026-01-01", n=9), on("2026-01-01", n=10)])
    facts = lake.reader.read_input(source(partition="n"), Grain.VALUE, ["1", "9"])
    assert (set(facts.partitions), facts.oldest) == ({"9"}, None)


def test_an_input_without_its_column_is_a_problem(lake: Lake):
    """The plan is refused by name instead of failing in Spark."""
    lake.create("t", ("at", DayTransform()), rows=[on("2026-01-01")])
    assert "no column nope" in str(lake.reader.read_input(source(partition="nope"), Grain.DAY, ["2026-01-01"]).problem)


def test_a_version_is_read_at_its_tag_and_not_at_the_newest_snapshot(lake: Lake):
    """A report that names the version of its reference data is not moved by the next version."""
    table = lake.create("t", ("at", DayTransform()), rows=[on("2026-01-01")])
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "v1").commit()
    append(table, on("2026-01-02"))
    tagged = lake.reader.read_input(source(partition=None, version="v1"), Grain.DAY, [])
    newest = lake.reader.read_input(source(partition=None), Grain.DAY, [])
    assert (tagged.snapshot_id, tagged.whole and tagged.whole.rows) == (str(first.snapshot_id), 1)
    assert newest.whole is not None
    assert newest.whole.rows == 2


@pytest.mark.parametrize("version", ["v2", "main"])
def test_a_version_that_is_no_tag_is_a_problem(lake: Lake, version: str):
    """A branch moves, so it names no version; tags of other runs are not offered."""
    table = lake.create("t", ("at", DayTransform()), rows=[on("2026-01-01")])
    current = table.current_snapshot()
    assert current is not None
    for name in ("v1", "errata_bf-1_in"):
        table.manage_snapshots().create_tag(current.snapshot_id, name).commit()
    facts = lake.reader.read_input(source(version=version), Grain.DAY, ["2026-01-01"])
    assert facts.problem == f"input events: lake.fin.t has no tag {version}; its tags: v1"


def test_a_missing_table_or_catalog_is_named_and_nothing_is_created(lake: Lake, tmp_path: Path):
    """Looking for what is not there leaves no empty catalog behind."""
    with pytest.raises(SetupError, match="expected a SQLite database"):
        lake.reader.describe("lake.fin.t")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="other"):
        lake.reader.describe("other.fin.t")
    lake.create("t")
    with pytest.raises(NotFound, match="nope"):
        lake.reader.describe("lake.fin.nope")


def test_describing_a_table_gives_columns_and_fields(lake: Lake):
    """What adopt and check need: names, types, and the grain each partition field stands for."""
    lake.create("t", ("at", DayTransform()), ("n", BucketTransform(4)))
    facts = lake.reader.describe("lake.fin.t")
    assert {column.name: column.type for column in facts.columns} == {
        "day": "date",
        "at": "timestamp",
        "region": "string",
        "n": "long",
    }
    assert [(f.column, f.transform, f.grain) for f in facts.partition_fields] == [
        ("at", "day", Grain.DAY),
        ("n", "bucket[4]", None),
    ]


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 2**53 - 1))))
def test_fingerprints_are_digests_of_canonical_json(files: list[tuple[str, int]]):
    """The fast encoder gives the bytes that RFC 8785 asks for."""
    assert fingerprint_files(files) == digest_of([list(pair) for pair in sorted(files)])


HERE = (0, Record(1))


def entry(path: str, content: int, sequence: int, where: Any = HERE, only: bytes | None = None) -> LiveFile:
    return LiveFile(path, 1, 1, content, sequence, where, only)


@pytest.mark.parametrize(
    "delete,is_kept",
    [
        (entry("d", 1, 2), True),
        (entry("d", 1, 1), True),
        (entry("d", 1, 0), False),
        (entry("d", 2, 1), False),
        (entry("d", 2, 2), True),
        (entry("d", 1, 2, only=b"a"), True),
        (entry("d", 1, 2, only=b"gone"), False),
        (entry("d", 2, 2, where=(0, Record(2))), False),
        (entry("d", 2, 2, where=(1, Record())), True),
    ],
)
def test_a_delete_file_is_expected_when_a_scan_would_apply_it(delete: LiveFile, is_kept: bool):
    """Sequence numbers, partition and the one file it names decide; a global equality delete hits everything."""
    kept = (
        attach_deletes([entry("a", 0, 1), delete], [])
        if delete.partition[1]
        else attach_deletes([entry("a", 0, 1)], [delete])
    )
    assert [file.path for file in kept] == (["a", "d"] if is_kept else ["a"])


NOON_MS = 1_767_614_400_000
"""Noon of 2026-01-05, UTC."""


def test_a_watermark_is_the_newest_value_of_all_files_that_can_be_true(lake: Lake):
    """Whatever partition it is in; a row of the year 57971 is named with its file and counts for nothing."""
    rows = [on("2026-01-01T01:00"), on("2026-01-05T12:00"), on("2026-01-03T01:00")]
    table = lake.create("t", ("at", DayTransform()), rows=rows)
    marked = source(complete=Completeness(watermark="at", latest_ms=NOON_MS))
    facts = lake.reader.read_input(marked, Grain.DAY, ["2026-01-01"])
    assert facts.arrival == Arrival(watermark_ms=NOON_MS)
    path = strange_row(table, "at", DayTransform(), 20_454_000)
    again = lake.reader.read_input(marked, Grain.DAY, ["2026-01-01"])
    assert again.arrival == Arrival(watermark_ms=NOON_MS, ignored=(f"year 57971 in {path}",))
    append(table, on("2026-01-05T12:00:01"))
    (later,) = [
        one
        for one in lake.reader.read_input(marked, Grain.DAY, ["2026-01-01"]).arrival.ignored  # type: ignore[union-attr]
        if "57971" not in one
    ]
    assert later.startswith("2026-01-05 12:00 UTC in ")


def test_a_watermark_of_dates_is_the_beginning_of_the_day(lake: Lake):
    """A table without rows has none; a column that is no time, or is not there, is a problem."""
    lake.create("t", ("day", IDENTITY), rows=[on("2026-01-05T12:00")])
    lake.create("empty", ("day", IDENTITY), rows=[])
    by_day = source(partition="day", complete=Completeness(watermark="day", latest_ms=NOON_MS))
    assert lake.reader.read_input(by_day, Grain.DAY, []).arrival == Arrival(watermark_ms=NOON_MS - 12 * 3_600_000)
    nothing = replace(by_day, table="lake.fin.empty")
    assert lake.reader.read_input(nothing, Grain.DAY, []).arrival == Arrival()
    for column, said in (("region", "is string, expected a date or a timestamp"), ("nope", "has no column nope")):
        wrong = replace(by_day, complete=Completeness(watermark=column))
        assert said in str(lake.reader.read_input(wrong, Grain.DAY, []).problem)


def test_rows_are_counted_only_where_metadata_counts_them(lake: Lake):
    """By hour or day of a product by day; not by month, nor where the column is no partition at all."""
    asked = ["2026-01-01", "2026-01-02"]
    rule = Completeness(rows_from="lake.fin.batches.n")
    for place, (column, transform), uncounted in (
        ("h", ("at", HourTransform()), set()),
        ("d", ("at", DayTransform()), set()),
        ("m", ("at", MonthTransform()), set(asked)),
        ("r", ("region", IDENTITY), set(asked)),
    ):
        lake.create(place, (column, transform), rows=[on("2026-01-01")])
        facts = lake.reader.read_input(source(table=f"lake.fin.{place}", complete=rule), Grain.DAY, asked)
        assert facts.arrival == Arrival(uncounted=frozenset(uncounted)), place


def test_announced_rows_are_read_from_the_table_that_is_named(lake: Lake, tmp_path: Path):
    """Added up by partition; its columns have to be there, and the count a whole number."""
    import pyarrow as pa

    lake.create("t", ("at", DayTransform()), rows=[])
    table = lake.create("batches", rows=[])
    times = [datetime(2026, 1, 1, 5, tzinfo=UTC), datetime(2026, 1, 1, 9, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)]
    schema = table.schema().as_arrow()
    held = {"day": [one.date() for one in times], "at": times, "region": ["EU"] * 3, "n": [3, 4, None]}
    columns = {name: held[name] for name in schema.names}
    if schema.field("at").type.tz is None:
        columns["at"] = [one.replace(tzinfo=None) for one in times]
    table.append(pa.table(columns, schema=schema))
    rule = Completeness(rows_from="lake.fin.batches.n")
    asked = ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert lake.reader.read_announced(source(complete=rule), Grain.DAY, asked) == {"2026-01-01": 7}
    for column, said in (("region", "expected whole numbers, found string"), ("nope", "found ")):
        wrong = Completeness(rows_from=f"lake.fin.batches.{column}")
        with pytest.raises(UsageError, match=said):
            lake.reader.read_announced(source(complete=wrong), Grain.DAY, asked)


def test_rows_in_files_of_an_older_spec_belong_to_every_day_that_they_may_be_in(lake: Lake):
    """After monthly → daily evolution such a day has rows and a fingerprint, which changes when the file goes."""
    table = lake.create("t", ("at", MonthTransform()), rows=[on("2026-01-05"), on("2026-01-07")])
    with table.update_spec() as update:
        update.remove_field("p0")
        update.add_field("at", DayTransform(), "daily")
    append(table, on("2026-01-06"))
    days = ["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"]
    before = lake.reader.read_input(source(), Grain.DAY, days)
    assert {name: size.files for name, size in before.partitions.items()} == {
        "2026-01-05": 1, "2026-01-06": 2, "2026-01-07": 1
    }  # fmt: skip
    old = next(task.file for task in table.scan().plan_files() if task.file.record_count == 2)
    with table.transaction() as tx, tx.update_snapshot().overwrite() as change:
        change.delete_data_file(old)
    after = lake.reader.read_input(source(), Grain.DAY, days)
    assert set(after.partitions) == {"2026-01-06"}
    assert after.partitions["2026-01-06"].fingerprint != before.partitions["2026-01-06"].fingerprint


def test_a_fingerprint_of_an_input_does_not_depend_on_what_else_is_asked_for(lake: Lake):
    """Months of an older spec belong to their own days, however long the range is."""
    table = lake.create("t", ("at", MonthTransform()), rows=[on("2025-06-05"), on("2025-06-06")])
    append(table, on("2026-01-05"), on("2026-01-07"))
    with table.update_spec() as update:
        update.remove_field("p0")
        update.add_field("at", DayTransform(), "daily")
    append(table, on("2026-01-06"))
    alone = lake.reader.read_input(source(), Grain.DAY, ["2026-01-06"]).partitions
    together = lake.reader.read_input(source(), Grain.DAY, ["2025-06-05", "2026-01-06"]).partitions
    assert alone["2026-01-06"].fingerprint == together["2026-01-06"].fingerprint


def test_delete_files_of_another_spec_belong_to_what_is_read(lake: Lake):
    """A global delete may hide rows of every day; a day without rows does not come to be by it."""
    table = lake.create("t", rows=[on("2026-01-05")])
    with table.update_spec() as update:
        update.add_field("at", DayTransform(), "daily")
    append(table, on("2026-01-06"))
    days = ["2026-01-05", "2026-01-06", "2026-01-07"]
    before = lake.reader.read_input(source(), Grain.DAY, days).partitions
    with table.update_spec() as update:
        update.remove_field("daily")
    hidden = data_file(f"{table.location()}/delete.parquet", (), 1, 0, content=DataFileContent.EQUALITY_DELETES)
    with table.transaction() as tx, tx.update_snapshot().fast_append() as change:
        change.append_data_file(hidden)
    with table.update_spec() as update:
        update.add_field("at", DayTransform(), "daily")
    after = lake.reader.read_input(source(), Grain.DAY, days).partitions
    assert set(before) == set(after) == set(days[:2])
    assert all(before[name].fingerprint != after[name].fingerprint for name in days[:2])
