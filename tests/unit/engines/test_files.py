from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from errata.engines.files.pattern import locate_partition, matches, pattern_root, placeholder_column
from errata.engines.files.source import FileSource
from errata.errors import UsageError
from errata.model.manifest import SourceFile
from errata.model.partition import NULL, Grain
from errata.model.product import Completeness, Input
from errata.planning.completeness import find_waiting
from errata.ports.tables import FileTimes

PATTERN = "raw/day={day}/*.parquet"


def put(root: Path, *names: str, size: int = 10) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, ns=(1_700_000_000_000_000_123, 1_700_000_000_000_000_123))


def source(files: str = PATTERN, partition: str | None = "day") -> Input:
    return Input("events", files=files, partition=partition)


def test_files_are_pinned_by_path_size_and_time(tmp_path: Path):
    """Each partition lists its own data files; markers, other suffixes and other days are left out."""
    put(tmp_path, "raw/day=2026-01-01/b.parquet", "raw/day=2026-01-01/a.parquet", "raw/day=2026-01-03/a.parquet")
    put(tmp_path, "raw/day=2026-01-01/_SUCCESS", "raw/day=2026-01-01/.a.parquet.crc", "raw/day=2026-01-01/a.csv")
    facts = FileSource(str(tmp_path)).read_input(source(), Grain.DAY, ["2026-01-01", "2026-01-02"])
    assert facts.files == {
        "2026-01-01": tuple(
            SourceFile(f"file://{tmp_path}/raw/day=2026-01-01/{name}.parquet", 10, "mtime:1700000000000000123")
            for name in "ab"
        )
    }
    assert (facts.partitions["2026-01-01"].bytes, facts.partitions["2026-01-01"].files) == (20, 2)
    assert (facts.rows_known, facts.newest_ms) == (False, 1_700_000_000_000)


def test_the_oldest_directory_is_known_when_something_is_missing(tmp_path: Path):
    """So that a plan can say whether retention has passed."""
    put(tmp_path, "raw/day=2026-01-05/a.parquet", "raw/day=2026-01-03/a.parquet", "raw/notes/a.parquet")
    facts = FileSource(str(tmp_path)).read_input(source(), Grain.DAY, ["2026-01-01"])
    assert (facts.partitions, facts.oldest) == ({}, "2026-01-03")


def test_values_have_no_oldest_directory(tmp_path: Path):
    """Values have no order, and as text 9 would come after 10: a missing one is never called older."""
    put(tmp_path, "raw/shop=10/a.parquet", "raw/shop=9/a.parquet")
    shops = source("raw/shop={shop}/*.parquet", "shop")
    facts = FileSource(str(tmp_path)).read_input(shops, Grain.VALUE, ["1", "9"])
    assert (set(facts.partitions), facts.oldest) == ({"9"}, None)


def test_a_fingerprint_changes_with_any_file(tmp_path: Path):
    """Size, time or name: each one shows, and other partitions keep theirs."""
    put(tmp_path, "raw/day=2026-01-01/a.parquet", "raw/day=2026-01-02/a.parquet")
    days = ["2026-01-01", "2026-01-02"]
    before = FileSource(str(tmp_path)).read_input(source(), Grain.DAY, days).partitions
    os.utime(tmp_path / "raw/day=2026-01-01/a.parquet", ns=(1, 1))
    after = FileSource(str(tmp_path)).read_input(source(), Grain.DAY, days).partitions
    assert after["2026-01-01"].fingerprint != before["2026-01-01"].fingerprint
    assert after["2026-01-02"] == before["2026-01-02"]


def test_one_listing_of_everything_equals_one_per_partition(tmp_path: Path):
    """The way an object store is listed for many partitions gives the same files."""
    days = [f"2026-01-{n:02d}" for n in range(1, 29)]
    put(tmp_path, *(f"raw/day={day}/{name}.parquet" for day in days for name in "ab"), "raw/day=2026-01-01/x/c.parquet")
    files = FileSource(str(tmp_path))
    places = {day: locate_partition(f"{tmp_path}/{PATTERN}", Grain.DAY, day) for day in days}
    single = files._list_partitions("file", pattern_root(f"{tmp_path}/{PATTERN}"), places)
    files._open["fake"] = files._get_filesystem("file")
    together = files._list_partitions("fake", pattern_root(f"{tmp_path}/{PATTERN}"), places)
    assert {d: {Path(f.path).name for f in found} for d, found in together.items()} == {
        d: {"a.parquet", "b.parquet"} for d in days
    }
    assert {d: sorted(f.path for f in found) for d, found in together.items()} == {
        d: sorted(f.path for f in found) for d, found in single.items()
    }


def test_reference_files_are_read_whole(tmp_path: Path):
    """A pattern without a placeholder has one fingerprint for all files."""
    put(tmp_path, "ref/fx.csv")
    facts = FileSource(str(tmp_path)).read_input(source("ref/*.csv", None), Grain.DAY, [])
    assert facts.partitions == {}
    assert facts.whole is not None
    assert (facts.whole.files, list(facts.files or {})) == (1, ["*"])


def test_one_file_per_partition_needs_no_glob(tmp_path: Path):
    """A path may name the file, or a directory of files."""
    put(tmp_path, "raw/2026-01-01.csv", "days/2026-01-01/a.csv", "days/2026-01-01/b.csv")
    files = FileSource(str(tmp_path))
    one = files.read_input(source("raw/{day}.csv"), Grain.DAY, ["2026-01-01", "2026-01-02"])
    assert {name: size.files for name, size in one.partitions.items()} == {"2026-01-01": 1}
    many = files.read_input(source("days/{day}"), Grain.DAY, ["2026-01-01"])
    assert many.partitions["2026-01-01"].files == 2


def test_changed_and_missing_files_are_named(tmp_path: Path):
    """A worker finds out before it reads, and untouched files are not mentioned."""
    put(tmp_path, *(f"raw/day=2026-01-01/{name}.parquet" for name in "abcd"))
    files = FileSource(str(tmp_path))
    pinned = (files.read_input(source(), Grain.DAY, ["2026-01-01"]).files or {})["2026-01-01"]
    assert files.verify(pinned) == []
    day = tmp_path / "raw/day=2026-01-01"
    (day / "a.parquet").unlink()
    (day / "b.parquet").write_bytes(b"longer than before")
    os.utime(day / "c.parquet", ns=(1, 1))
    problems = files.verify(pinned)
    assert [problem.split(" ")[0].rpartition("/")[2] for problem in problems] == ["a.parquet", "b.parquet", "c.parquet"]
    assert ["missing" in problems[0], "bytes" in problems[1], "mtime:1 " in problems[2]] == [True] * 3


@pytest.mark.parametrize(
    "path,grain,partition,directory,globs",
    [
        ("b/t/day={day}/*.parquet", Grain.DAY, "2026-01-03", "b/t/day=2026-01-03", ("*.parquet",)),
        ("b/{h:%Y/%m/%d/%H}/*.json", Grain.HOUR, "2026-01-03T05", "b/2026/01/03/05", ("*.json",)),
        ("b/{m:%Y-%m}/part-*/x.csv", Grain.MONTH, "2026-01", "b/2026-01", ("part-*", "x.csv")),
        ("b/r={r}/*.csv", Grain.VALUE, "a/b=c", "b/r=a%2Fb%3Dc", ("*.csv",)),
        ("b/r={r}/*.csv", Grain.VALUE, NULL, "b/r=__HIVE_DEFAULT_PARTITION__", ("*.csv",)),
        ("b/*/{day}-*.csv", Grain.DAY, "2026-01-03", "b", ("*", "2026-01-03-*.csv")),
    ],
)
def test_patterns_are_filled_by_grain(path: str, grain: Grain, partition: str, directory: str, globs: tuple[str, ...]):
    """Placeholders take the partition's text or a format of its first instant; values are escaped as Hive does."""
    place = locate_partition(path, grain, partition)
    assert (place.directory, place.segments) == (directory, globs)


def test_globs_stay_inside_a_segment():
    """``*`` does not cross a slash, ``**`` does."""
    flat, deep = (
        locate_partition("b/{d}/*.csv", Grain.DAY, "2026-01-01"),
        locate_partition("b/{d}/**/*.csv", Grain.DAY, "2026-01-01"),
    )
    assert [matches(flat, f"b/2026-01-01/{name}") for name in ("a.csv", "x/a.csv", "_a.csv")] == [True, False, False]
    assert [matches(deep, f"b/2026-01-01/{name}") for name in ("a.csv", "x/y/a.csv")] == [True, True]


def test_a_pattern_has_one_partition_column():
    """Two columns, a format on a value, or a placeholder without a column are refused."""
    assert placeholder_column("b/{day:%Y}/{day:%m}/*.csv") == "day"
    with pytest.raises(UsageError, match="one partition column"):
        placeholder_column("b/{day}/{region}/*.csv")
    with pytest.raises(UsageError, match="not times"):
        locate_partition("b/{r:%Y}/*", Grain.VALUE, "EU")
    with pytest.raises(UsageError, match="placeholder"):
        locate_partition("b/{r}/*", Grain.VALUE, None)


@pytest.mark.parametrize("many", [False, True])
def test_markers_are_looked_at_beside_the_files_of_each_partition(tmp_path: Path, many: bool):
    """With the time of the newest file, so that one of an earlier attempt shows; data files they are not."""
    days = [f"2026-01-{n:02d}" for n in range(1, 31 if many else 5)]
    put(tmp_path, *(f"raw/day={day}/{name}" for day in days[:3] for name in ("a.parquet", "b.parquet")))
    put(tmp_path, f"raw/day={days[0]}/_SUCCESS", f"raw/day={days[1]}/_SUCCESS", f"raw/day={days[3]}/_SUCCESS")
    base = 1_700_000_000_000_000_123
    os.utime(tmp_path / f"raw/day={days[1]}/b.parquet", ns=(base + 1, base + 1))
    marked = replace(source(), complete=Completeness(marker="_SUCCESS"))
    facts = FileSource(str(tmp_path)).read_input(marked, Grain.DAY, days)
    assert facts.arrival is not None
    assert {day: facts.arrival.marked[day] for day in days[:4]} == {
        days[0]: FileTimes(base, base),
        days[1]: FileTimes(base, base + 1),
        days[2]: FileTimes(None, base),
        days[3]: FileTimes(base, None),
    }
    assert set(find_waiting(marked, facts, Grain.DAY, days)) == {days[1], days[2], *days[4:]}
    assert FileSource(str(tmp_path)).read_input(source(), Grain.DAY, days).arrival is None


def test_a_marker_may_be_named_after_its_partition(tmp_path: Path):
    """Where the files of all partitions are in one directory."""
    put(tmp_path, "raw/2026-01-01.parquet", "raw/2026-01-02.parquet", "raw/20260101.done")
    marked = replace(source("raw/{day}.parquet"), complete=Completeness(marker="{day:%Y%m%d}.done"))
    facts = FileSource(str(tmp_path)).read_input(marked, Grain.DAY, ["2026-01-01", "2026-01-02"])
    assert set(find_waiting(marked, facts, Grain.DAY, ["2026-01-01", "2026-01-02"])) == {"2026-01-02"}
