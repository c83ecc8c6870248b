"""How far the search for a pattern came: on a disk, through the source that plans use."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.engines.files.source import FileSource
from errata.model.near_miss import NearMiss
from errata.model.partition import Grain
from errata.model.product import Input

FILES = ("raw/day=2026-01-01/a.parquet", "raw/2026/01/02/x/b.parquet", "raw/one.parquet", "raw/day=2026-01-03/_tmp")


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return FileSource(str(tmp_path))


def search(source: FileSource, pattern: str) -> NearMiss | None:
    return source.find_near_miss(Input("sales", files=pattern, partition="day"))


@pytest.mark.parametrize(
    "pattern",
    [
        "raw/day={day}/*.parquet",
        "raw/day={day}",
        "raw/{day:%Y/%m/%d}/**",
        "raw/{day:%Y/%m/%d}/x/*.parquet",
        "raw/**",
        "raw/one.parquet",
        "raw/on[e].parquet",
    ],
)
def test_a_pattern_that_matches_any_file_is_no_miss(source: FileSource, pattern: str):
    """One file in one partition is enough, whatever form the pattern has."""
    assert search(source, pattern) is None


@pytest.mark.parametrize(
    "pattern,directory,entries",
    [
        ("raw/day={day}/*.csv", "raw/day=2026-01-01", ("a.parquet",)),
        ("raw/date={day}/*.parquet", "raw", ("2026", "day=2026-01-01", "day=2026-01-03", "one.parquet")),
        ("raws/day={day}/*.parquet", None, ("raw",)),
        ("raw/{day:%Y-%m}/*", "raw", ("2026", "day=2026-01-01", "day=2026-01-03", "one.parquet")),
        ("raw/two.parquet", "raw", ("2026", "day=2026-01-01", "day=2026-01-03", "one.parquet")),
    ],
)
def test_a_miss_names_the_deepest_directory_that_exists(
    source: FileSource, tmp_path: Path, pattern: str, directory: str | None, entries: tuple[str, ...]
):
    """The person compares what is there with what was written."""
    assert search(source, pattern) == NearMiss(pattern, directory or str(tmp_path), entries)


def test_a_plan_is_told_where_the_first_missing_partition_was_searched(source: FileSource):
    """Partitions that exist are pinned; for those that do not, the search ended somewhere."""
    asked = Input("sales", files="raw/day={day}/*.parquet", partition="day")
    found = source.read_input(asked, Grain.DAY, ("2026-01-01", "2026-01-02"))
    assert list(found.partitions) == ["2026-01-01"]
    assert found.near_miss is not None
    assert found.near_miss.directory == "raw"
    assert source.read_input(asked, Grain.DAY, ("2026-01-01",)).near_miss is None
