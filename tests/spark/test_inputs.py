"""Inputs are read as pinned: these files, this snapshot, these partitions, and nothing else."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.canonical import canonical_bytes, digest_of
from errata.engines.spark.inputs.frames import list_pinned_files, read_input_frames
from errata.errors import ChunkError, SourceChanged
from errata.model.manifest import InputPin, Manifest, SourceFile
from errata.model.partition import Grain
from unit.gate.manifests import input_pin, manifest, target_pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _write(path: Path, **columns: list[Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


def _files_pin(
    name: str, pattern: str, partition: str | None, files: dict[str, list[str]], **changes: Any
) -> tuple[InputPin, dict[str, bytes]]:
    part = {p: [SourceFile(path, Path(path).stat().st_size, "mtime:0") for path in paths] for p, paths in files.items()}
    digest = digest_of(part)
    pin = input_pin(
        name, pattern, partition, changes.pop("column_type", None), kind="files", files_part=digest, **changes
    )
    return pin, {digest: canonical_bytes(part)}


def _run(*pins: InputPin, grain: Grain = Grain.DAY, column_type: str = "date") -> Manifest:
    return manifest(inputs=pins, target=target_pin("lake.t", "d", column_type, grain, {"d": column_type}))


def test_only_pinned_files_are_read_and_days_come_from_the_path(spark: SparkSession, tmp_path: Path) -> None:
    """A file nobody pinned is not there, names may hold blanks, %, =, + and [*], and the day is a date."""
    root = tmp_path / "ra w%20=+[1]*"
    pattern = f"{root}/business_date={{business_date}}/*.parquet"
    days = {
        day: [_write(root / f"business_date={day}" / "a b%2F[x].parquet", n=[n])]
        for n, day in enumerate(["2026-01-01", "2026-01-02"])
    }
    _write(root / "business_date=2026-01-01" / "late.parquet", n=[99])
    _write(tmp_path / "ra w%20=+1x" / "business_date=2026-01-01" / "a b%2Fx.parquet", n=[98])
    pin, parts = _files_pin("raw", pattern, "business_date", days, column_type="date")
    found = read_input_frames(spark, _run(pin), parts, ["2026-01-01", "2026-01-02"])["raw"]
    assert sorted(map(tuple, found.collect())) == [(0, date(2026, 1, 1)), (1, date(2026, 1, 2))]
    assert pin.name in read_input_frames(spark, _run(pin), parts, ["2026-01-02"])
    one = read_input_frames(spark, _run(pin), parts, ["2026-01-02"])["raw"]
    assert [tuple(row) for row in one.collect()] == [(1, date(2026, 1, 2))]


def test_hours_and_values_come_from_file_names(spark: SparkSession, tmp_path: Path) -> None:
    """A placeholder inside a file name works; hours become timestamps, escaped values their text."""
    hour = _write(tmp_path / "x_2026-01-01T05_eu.parquet", n=[1])
    pin, parts = _files_pin(
        "raw", f"file://{tmp_path}/x_{{ts}}_*.parquet", "ts", {"2026-01-01T05": [hour]}, column_type="timestamp"
    )
    found = read_input_frames(spark, _run(pin, grain=Grain.HOUR, column_type="timestamp"), parts, ["2026-01-01T05"])[
        "raw"
    ]
    assert found.collect()[0]["ts"] == datetime(2026, 1, 1, 5)  # noqa: DTZ001 - timestamp without zone
    tenants = {
        "a b": [_write(tmp_path / "t=a%20b" / "f.parquet", n=[1])],
        "c": [_write(tmp_path / "t=c" / "f.parquet", n=[2])],
    }
    pin, parts = _files_pin("raw", f"{tmp_path}/t={{t}}/f.parquet", "t", tenants, column_type="string")
    found = read_input_frames(spark, _run(pin, grain=Grain.VALUE, column_type="string"), parts, ["a b", "c"])["raw"]
    assert sorted(map(tuple, found.collect())) == [(1, "a b"), (2, "c")]


def test_a_path_that_says_another_partition_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The pinned partition and the path must agree, else rows would be counted for the wrong day."""
    wrong = _write(tmp_path / "d=2026-01-09" / "f.parquet", n=[1])
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", {"2026-01-01": [wrong]}, column_type="date")
    with pytest.raises(SourceChanged, match="path says 2026-01-09"):
        read_input_frames(spark, _run(pin), parts, ["2026-01-01"])


def test_a_column_in_the_files_is_taken_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """When the files have the partition column themselves, the path adds nothing."""
    path = _write(tmp_path / "d=2026-01-01" / "f.parquet", n=[1], d=[date(2026, 1, 1)])
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", {"2026-01-01": [path]}, column_type="date")
    found = read_input_frames(spark, _run(pin), parts, ["2026-01-01"])["raw"]
    assert found.columns == ["n", "d"]
    assert found.count() == 1


def test_files_of_different_ages_have_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A column that only newer files have is NULL in older ones, whichever is read first."""
    files = {
        "2026-01-01": [_write(tmp_path / "d=2026-01-01" / "f.parquet", n=[1])],
        "2026-01-02": [_write(tmp_path / "d=2026-01-02" / "f.parquet", n=[2], more=["x"])],
    }
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", files, column_type="date")
    found = read_input_frames(spark, _run(pin), parts, list(files))["raw"]
    assert sorted((row["n"], row["more"]) for row in found.collect()) == [(1, None), (2, "x")]


def test_look_back_widens_the_input_and_reference_data_is_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Each input gets its own range; files without a partition column are read whole."""
    days = [f"2026-01-0{n}" for n in range(1, 6)]
    files = {day: [_write(tmp_path / f"d={day}" / "f.parquet", n=[n])] for n, day in enumerate(days, 1)}
    back, parts = _files_pin(
        "back", f"{tmp_path}/d={{d}}/*.parquet", "d", files, column_type="date", lookback=2, lookahead=1
    )
    whole, more = _files_pin(
        "whole", f"{tmp_path}/**/*.parquet", None, {"": [p for paths in files.values() for p in paths]}
    )
    run = _run(back, whole)
    found = read_input_frames(spark, run, parts | more, ["2026-01-03"])
    assert sorted(row["n"] for row in found["back"].collect()) == [1, 2, 3, 4]
    assert found["whole"].count() == 5
    assert [file.path for file in list_pinned_files(_run(back), parts, ["2026-01-05"])] == [
        files[d][0] for d in days[2:]
    ]


def test_a_day_without_files_is_empty_with_the_right_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Columns are known from the other files; without any file at all the input cannot be read."""
    path = _write(tmp_path / "d=2026-01-01" / "f.parquet", n=[1])
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", {"2026-01-01": [path]}, column_type="date")
    empty = read_input_frames(spark, _run(pin), parts, ["2026-01-02"])["raw"]
    assert empty.dtypes == [("n", "bigint"), ("d", "date")]
    assert empty.count() == 0
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", {"2026-01-02": []}, column_type="date")
    with pytest.raises(ChunkError, match="no file is pinned"):
        read_input_frames(spark, _run(pin), parts, ["2026-01-02"])


def test_a_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A pinned file that went away fails the read by name, even when the session is told to ignore such files."""
    path = _write(tmp_path / "d=2026-01-01" / "f.parquet", n=[1])
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", {"2026-01-01": [path]}, column_type="date")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    Path(path).unlink()
    with pytest.raises(SourceChanged, match=r"d=2026-01-01/f\.parquet"):
        read_input_frames(spark, _run(pin), parts, ["2026-01-01"])


def test_many_files_are_not_listed_by_a_job(spark: SparkSession, tmp_path: Path) -> None:
    """Forty paths, more than Spark's threshold for a listing job, cost the schema job only."""
    files = {"2026-01-01": [_write(tmp_path / "d=2026-01-01" / f"{n}.parquet", n=[n]) for n in range(40)]}
    pin, parts = _files_pin("raw", f"{tmp_path}/d={{d}}/*.parquet", "d", files, column_type="date")
    spark.sparkContext.setJobGroup("listing", "listing")
    read_input_frames(spark, _run(pin), parts, ["2026-01-01"])
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("listing")) == 1


def test_tables_are_read_at_their_snapshot_and_cut(spark: SparkSession) -> None:
    """Later rows are not seen; a timestamp column is cut to the product's days; no snapshot means no rows."""
    spark.sql("CREATE TABLE lake.in_table (ts timestamp, n int) USING iceberg")
    assert read_input_frames(spark, _run(input_pin("t", "lake.in_table", None, None)), {}, [])["t"].count() == 0
    spark.sql(
        "INSERT INTO lake.in_table VALUES (timestamp'2026-01-01 23:59:59', 1), (timestamp'2026-01-02 00:00:00', 2)"
    )
    (first,) = spark.sql("SELECT snapshot_id FROM lake.in_table.snapshots").collect()
    spark.sql("INSERT INTO lake.in_table VALUES (timestamp'2026-01-02 12:00:00', 3)")
    pin = input_pin("t", "lake.in_table", "ts", "timestamptz", snapshot_id=str(first[0]))
    whole = input_pin("whole", "lake.in_table", None, None, snapshot_id=str(first[0]))
    never = input_pin("never", "lake.in_table", None, None)
    found = read_input_frames(spark, _run(pin, whole, never), {}, ["2026-01-02"])
    assert {name: sorted(row["n"] for row in frame.collect()) for name, frame in found.items()} == {
        "t": [2],
        "whole": [1, 2],
        "never": [],
    }
    spark.sql("DROP TABLE lake.in_table PURGE")
