"""What plans know of Parquet files from their footers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from errata.engines.files.source import FileSource
from errata.model.partition import Grain
from errata.model.product import Input
from errata.ports.tables import InputState


def _put(place: Path, table: Any, **options: Any) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place, **options)
    return place


def _read(root: Path, *days: str, **declared: Any) -> InputState:
    source = Input("raw", files="raw/{day}/*.parquet", partition="day", **declared)
    return FileSource(str(root)).read_input(source, Grain.DAY, days)


def test_types_are_those_that_spark_reads(tmp_path: Path):
    """Dictionaries are values, old timestamps instants; what Spark cannot read keeps a name that fits no type."""
    table = pa.table(
        {
            "text": pa.array(["a"]).dictionary_encode(),
            "small": pa.array([1], pa.int16()),
            "big": pa.array([1], pa.uint64()),
            "money": pa.array([Decimal("1.50")], pa.decimal128(12, 2)),
            "day": pa.array([date(2026, 1, 1)]),
            "local": pa.array([0], pa.timestamp("us")),
            "instant": pa.array([0], pa.timestamp("ms", "UTC")),
            "nested": pa.array([[{"k": "x", "n": 1}]], pa.list_(pa.struct([("k", pa.string()), ("n", pa.int64())]))),
            "pairs": pa.array([[("a", 1.0)]], pa.map_(pa.string(), pa.float64())),
            "clock": pa.array([0], pa.time64("us")),
            "blob": pa.array([b"x"], pa.large_binary()),
        }
    )
    _put(tmp_path / "raw/2026-01-01/a.parquet", table)
    old = pa.table({"at": pa.array([0], pa.timestamp("ns"))})
    _put(tmp_path / "raw/2026-01-02/a.parquet", old, use_deprecated_int96_timestamps=True)
    _put(tmp_path / "raw/2026-01-03/a.parquet", old, version="2.6")
    facts = _read(tmp_path, "2026-01-01", "2026-01-02", "2026-01-03", columns={"text": "string"})
    assert facts.schemas == (
        {
            "text": "string",
            "small": "int",
            "big": "decimal(20, 0)",
            "money": "decimal(12, 2)",
            "day": "date",
            "local": "timestamp",
            "instant": "timestamptz",
            "nested": "array<struct<k:string,n:long>>",
            "pairs": "map<string,double>",
            "clock": "time64[us]",
            "blob": "binary",
        },
        {"at": "timestamptz"},
        {"at": "timestamp[ns]"},
    )
    assert [file.schema for files in (facts.files or {}).values() for file in files] == [0, 1, 2]


def test_rows_are_known_and_a_cut_file_says_why(tmp_path: Path):
    """Row counts come from the footers; a file without one is named, whatever is declared of the input."""
    good = _put(tmp_path / "raw/2026-01-01/a.parquet", pa.table({"a": [1, 2, 3]}))
    cut = tmp_path / "raw/2026-01-02/a.parquet"
    cut.parent.mkdir()
    cut.write_bytes(good.read_bytes()[:-20])
    facts = _read(tmp_path, "2026-01-01", "2026-01-02", columns={"a": "long"})
    assert (facts.rows_known, facts.partitions["2026-01-01"].rows) == (True, 3)
    assert list(facts.unreadable) == [f"file://{cut}"]
    assert "magic bytes" in facts.unreadable[f"file://{cut}"]


def test_files_stay_closed_where_nothing_is_declared(tmp_path: Path):
    """A product without columns and rules pays nothing: not even a broken file is noticed here."""
    place = tmp_path / "raw/2026-01-01/a.parquet"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no parquet")
    facts = _read(tmp_path, "2026-01-01")
    assert (facts.schemas, facts.unreadable, facts.rows_known) == ((), {}, False)
