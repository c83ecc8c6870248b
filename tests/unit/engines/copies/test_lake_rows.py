"""Rows of the lake for a copy: files of different writers make one stream, which a driver takes as it begins."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestamptzType

from errata.engines.iceberg.metadata.lake_rows import IcebergRows
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain

DAYS = ("2026-01-01", "2026-01-02")
SCHEMA = Schema(
    NestedField(1, "day", DateType(), required=True),
    NestedField(2, "n", LongType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "note", StringType()),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A file for each day: the first as pyiceberg writes it, the second as Spark does, without types of Arrow."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("fin")
    made = catalog.create_table("fin.t", SCHEMA, partition_spec=BY_DAY)
    for day in DAYS:
        rows: list[dict[str, Any]] = [{"day": date.fromisoformat(day), "n": n, "note": f"é {n}"} for n in range(3)]
        made.append(pa.Table.from_pylist(rows, schema=made.schema().as_arrow()))
    (path,) = (one.file.file_path for one in made.scan(row_filter=f"day == '{DAYS[1]}'").plan_files())
    local = path.removeprefix("file://")
    found = pq.ParquetFile(local).read()
    plain = [one.with_type(pa.string()) if one.name == "note" else one for one in found.schema]
    pq.write_table(found.cast(pa.schema(plain)), local, store_schema=False)
    return made


def test_all_batches_have_one_schema(table: Table) -> None:
    """Whoever wrote the files: a driver reads the bytes of every batch by the types of the first."""
    kinds = {"day": "date", "n": "long", "at": "timestamptz", "note": "string"}
    columns = tuple(CopyColumn(name, name.upper(), kind) for name, kind in kinds.items())
    copy = CopyTable("pg", "t", columns, columns[0], Grain.DAY)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    batches = list(IcebergRows(table, copy, snapshot.snapshot_id, DAYS).batches())
    assert len({str(one.schema) for one in batches}) == 1
    assert len(batches) == len(DAYS)
    assert batches[0].schema.names == ["DAY", "N", "AT", "NOTE"]
    assert sorted(row["NOTE"] for one in batches for row in one.to_pylist()) == sorted([f"é {n}" for n in range(3)] * 2)
