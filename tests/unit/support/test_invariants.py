"""The checker of invariants notices what it is there to notice, whatever the partitions of a table are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
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

from errata.model.product import Catalog
from support.invariants import Partitions, publication_violations
from unit.engines.conftest import Lake, data_file

IDENTITY: Transform[Any, Any] = IdentityTransform()
NAME = "lake.fin.t"
# column, grain, transform, (partition value and its text) of a file in scope, the same of one outside
SHAPES: dict[str, tuple[str, str, Transform[Any, Any], tuple[Any, str], tuple[Any, str]]] = {
    "hour": ("at", "hour", HourTransform(), (5, "1970-01-01T05"), (-1, "1969-12-31T23")),
    "day": ("at", "day", DayTransform(), (31, "1970-02-01"), (-1, "1969-12-31")),
    "day of a date": ("day", "day", IDENTITY, (31, "1970-02-01"), (2_932_897, "+10000-01-01")),
    "day of hours": ("at", "day", HourTransform(), (25, "1970-01-02"), (23, "1970-01-01")),
    "month": ("at", "month", MonthTransform(), (13, "1971-02"), (-1, "1969-12")),
    "year": ("day", "year", YearTransform(), (56, "2026"), (-1, "1969")),
    "number": ("n", "value", IDENTITY, (7, "7"), (-7, "-7")),
    "text": ("region", "value", IDENTITY, ("EU", "EU"), ("", '""')),
    "text that reads as NULL": ("region", "value", IDENTITY, (None, "null"), ("null", '"null"')),
    "NULL": ("at", "day", DayTransform(), (0, "1970-01-01"), (None, "null")),
}


@contextmanager
def ledger(digest: str, target: dict[str, str], scope: list[str]) -> Iterator[sqlite3.Connection]:
    """As much of a ledger as one committed publication needs."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        db.execute("CREATE TABLE run (run_id, manifest_digest)")
        db.execute("CREATE TABLE manifest (digest, content)")
        db.execute("CREATE TABLE publication (pub_id, run_id, table_name, state, partitions, result_snapshot_id)")
        db.execute("INSERT INTO run VALUES ('r', ?)", (digest,))
        db.execute("INSERT INTO manifest VALUES (?, ?)", (digest, json.dumps({"target": target})))
        db.execute("INSERT INTO publication VALUES ('p', 'r', ?, 'committed', ?, NULL)", (NAME, json.dumps(scope)))
        yield db


def append(table: Table, *values: Any, **summary: str) -> None:
    """One metadata-only file for each partition value."""
    # pyiceberg writes paths of partitions into the summary and has none for the year 10000; other writers do
    with (
        mock.patch.object(PartitionSpec, "partition_to_path", return_value="any"),
        table.transaction() as tx,
        tx.update_snapshot(snapshot_properties=summary).fast_append() as update,
    ):
        for n, value in enumerate(values):
            path = f"{table.location()}/data/{len(table.snapshots())}-{n}.parquet"
            update.append_data_file(data_file(path, (value,), 1, table.spec().spec_id))


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_outside_the_scope_of_a_publication_is_noticed(tmp_path: Path, shape: str, planted: bool) -> None:
    """For every grain, with NULL and in years that no date can name; and nothing is said of files inside it."""
    column, grain, transform, (inside, text), (outside, other) = SHAPES[shape]
    lake = Lake(Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/warehouse"))
    table = lake.create("t", (column, transform))
    append(table, inside)
    said = {"errata.publication": "p", "errata.manifest": "d", "errata.run": "r"}
    append(table, inside, *([outside] if planted else []), **said)
    with ledger("d", {"column": column, "grain": grain, "mode": "files"}, [text]) as db:
        found = publication_violations(db, table, NAME)
    assert found == ([f"I5 p changed files of {[other]}, outside its scope"] if planted else [])


def test_a_bucket_says_nothing_of_a_partition_and_rows_do(tmp_path: Path) -> None:
    """Files of a bucket are in no one partition, so that rows decide; they are placed by their values."""
    lake = Lake(Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/warehouse"))
    table = lake.create("t", ("n", BucketTransform(4)))
    numbers = Partitions(table, {"column": "n", "grain": "value"})
    assert numbers.of_file(table.spec().spec_id, (3,)) is None
    assert [numbers.of_value(value) for value in (3, -3, None)] == ["3", "-3", "null"]
    hours = Partitions(table, {"column": "at", "grain": "hour"})
    assert [hours.of_value(micros) for micros in (-1, 0, None)] == ["1969-12-31T23", "1970-01-01T00", "null"]
    months = Partitions(table, {"column": "day", "grain": "month"})
    assert [months.of_value(days) for days in (-1, 2_932_897)] == ["1969-12", "+10000-01"]
    texts = Partitions(table, {"column": "region", "grain": "value"})
    assert [texts.of_value(value) for value in ("", "null", None, '"', "EU")] == ['""', '"null"', "null", r'"\""', "EU"]


def test_a_row_outside_the_scope_of_a_rewrite_is_noticed(tmp_path: Path) -> None:
    """Where files are shared, a row of another partition that came or went is a violation, one of the scope is not."""
    pa = pytest.importorskip("pyarrow")
    lake = Lake(Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/warehouse"))
    table = lake.create("t")
    kinds = table.schema().as_arrow()
    rows = [{"day": 0, "at": 0, "region": "EU", "n": 1}]
    table.append(pa.Table.from_pylist(rows, schema=kinds))
    said = {"errata.publication": "p", "errata.manifest": "d", "errata.run": "r"}
    more = [{"day": 1, "at": 1, "region": "US", "n": 2}]
    table.append(pa.Table.from_pylist(more, schema=kinds), snapshot_properties=said)
    for scope, problems in (["1970-01-02"], 0), (["1970-01-01"], 1):
        with ledger("d", {"column": "day", "grain": "day", "mode": "rewrite"}, scope) as db:
            assert len(publication_violations(db, table, NAME)) == problems
