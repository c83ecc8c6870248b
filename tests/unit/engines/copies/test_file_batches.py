"""Data files are read in small batches, with the same columns and rows as by a scan of pyiceberg."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import AlwaysTrue, EqualTo, GreaterThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StringType

from errata.engines.iceberg.metadata.file_batches import read_batches

DAY = date(2026, 1, 1)
SCHEMA = Schema(
    NestedField(1, "day", DateType()),
    NestedField(2, "n", IntegerType()),
    NestedField(3, "amount", DecimalType(9, 2)),
    NestedField(4, "rate", FloatType()),
    NestedField(5, "note", StringType()),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    made.create_namespace("fin")
    return made


def make_table(catalog: Catalog, rows: int = 5, groups: int = 2) -> Table:
    """One data file of one day, in this many row groups."""
    found = {"write.parquet.row-group-limit": str(-(-rows // groups))}
    table = catalog.create_table("fin.t", SCHEMA, partition_spec=BY_DAY, properties=found)
    numbers = pa.array(range(rows), pa.int32())
    columns = {
        "day": pa.repeat(pa.scalar(DAY, pa.date32()), rows),
        "n": numbers,
        "amount": pc.divide(numbers.cast(pa.float64()), 4).cast(pa.decimal128(9, 2)),
        "rate": pc.divide(numbers.cast(pa.float32()), 2),
        "note": pa.array([None if n % 3 == 2 else f"é {n}" for n in range(rows)]),
    }
    table.append(pa.table(columns))
    return table


def evolve(table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("n", LongType()).update_column("rate", DoubleType())
        update.update_column("amount", DecimalType(18, 2)).add_column("extra", LongType())
    with table.update_schema() as update:
        update.rename_column("note", "remark").rename_column("n", "number")


def swap_names(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("rate").rename_column("n", "old")
    with table.update_schema() as update:
        update.add_column("n", StringType()).add_column("rate", FloatType())


def drop_from_file(*names: str) -> Callable[[Table], None]:
    """The file is written again without these columns, as files of Hive have no partition column."""

    def rewrite(table: Table) -> None:
        (task,) = table.scan().plan_files()
        path = task.file.file_path.removeprefix("file://")
        pq.write_table(pq.ParquetFile(path).read().drop_columns(names), path, row_group_size=2)

    return rewrite


def drop_ids(table: Table) -> None:
    """The file is written again without ids, as before it was added to the table: the mapping of names has them."""
    (task,) = table.scan().plan_files()
    path = task.file.file_path.removeprefix("file://")
    found = pq.ParquetFile(path).read()
    pq.write_table(found.cast(pa.schema([one.remove_metadata() for one in found.schema])), path)
    mapping = table.schema().name_mapping.model_dump_json()
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": mapping})
    with table.update_schema() as update:
        update.rename_column("note", "remark")


def read_rows(table: Table, wanted: Any = AlwaysTrue()) -> list[dict[str, Any]]:  # noqa: B008
    tasks = table.scan().plan_files()
    return [
        row
        for task in tasks
        for batch in read_batches(table, task, wanted, table.schema())
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    "change", [evolve, swap_names, drop_from_file("day"), drop_from_file("note", "rate"), drop_ids, None]
)
def test_a_file_has_the_rows_that_pyiceberg_reads_from_it(
    catalog: Catalog, change: Callable[[Table], None] | None
) -> None:
    """Columns that were renamed, added, dropped, widened or left out of the file, with and without a filter."""
    table = make_table(catalog)
    if change is not None:
        change(table)
    table.refresh()
    number = table.schema().find_column_name(2)
    for wanted in (AlwaysTrue(), EqualTo("day", DAY), GreaterThan(number, 2), EqualTo("day", date(2026, 1, 2))):
        expected = table.scan(row_filter=wanted).to_arrow()
        assert read_rows(table, wanted) == expected.to_pylist()
        for task in table.scan(row_filter=wanted).plan_files():
            for batch in read_batches(table, task, wanted, table.schema()):
                assert batch.schema.names == expected.schema.names
                assert [one.type for one in batch.schema] == [one.type for one in expected.schema]


def test_old_files_have_the_columns_of_today(catalog: Catalog) -> None:
    """By their ids: a new name, a wider type, and NULL for a column that was added."""
    table = make_table(catalog, rows=3)
    evolve(table)
    table.refresh()
    told = [{"day": DAY, "number": n, "amount": Decimal(n) / 4, "rate": n / 2} for n in range(3)]
    remarks = ("é 0", "é 1", None)
    expected = [row | {"remark": one, "extra": None} for row, one in zip(told, remarks, strict=True)]
    assert read_rows(table) == expected


def test_a_default_fills_a_column_that_was_added(catalog: Catalog) -> None:
    """In the rows of files from before."""
    table = make_table(catalog, rows=3)
    added = NestedField(6, "extra", LongType(), initial_default=7)
    projected = Schema(*table.schema().fields, added)
    (task,) = table.scan().plan_files()
    batches = read_batches(table, task, AlwaysTrue(), projected)
    assert [row["extra"] for batch in batches for row in batch.to_pylist()] == [7, 7, 7]


def test_row_groups_without_a_wanted_row_are_not_read(catalog: Catalog, tmp_path: Path) -> None:
    """Their statistics say so."""
    table = make_table(catalog, rows=4, groups=2)
    (task,) = table.scan().plan_files()
    path = Path(task.file.file_path.removeprefix("file://"))
    group = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = group.dictionary_page_offset or group.data_page_offset
    content[start : start + group.total_compressed_size] = bytes(group.total_compressed_size)
    path.write_bytes(content)
    assert [row["n"] for row in read_rows(table, GreaterThan("n", 1))] == [2, 3]
    with pytest.raises(OSError, match=r"(?i)page|thrift|deserial"):
        read_rows(table)


_READ = """
import re, sys
from pyiceberg.table import StaticTable
from errata.engines.iceberg.metadata.lake_rows import IcebergRows
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain
table = StaticTable.from_metadata(sys.argv[1])
kinds = {"day": "date", "n": "int", "amount": "decimal(9, 2)", "rate": "float", "note": "string"}
columns = tuple(CopyColumn(name, name, kind) for name, kind in kinds.items())
copy = CopyTable("pg", "t", columns, columns[0], Grain.DAY)
rows = IcebergRows(table, copy, table.current_snapshot().snapshot_id, ("2026-01-01",))
# what getrusage says would include the process that started this one
found = rows.measure()["2026-01-01"].rows
print(found, int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


def measure_reading(table: Table) -> tuple[int, int]:
    """Rows and peak megabytes of a process that reads and hashes the table as a delivery does."""
    told = subprocess.run(
        [sys.executable, "-c", _READ, table.metadata_location], check=True, capture_output=True, text=True
    ).stdout.split()
    return int(told[0]), int(told[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("groups", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_file(catalog: Catalog, groups: int) -> None:
    """A file of many row groups, or of a large one, takes no more of it than a small file."""
    small, large = 150_000, 3_000_000
    few, low = measure_reading(make_table(catalog, small))
    catalog.drop_table("fin.t")
    many, high = measure_reading(make_table(catalog, large, groups))
    assert (few, many) == (small, large)
    assert high - low < 100, f"{low} MB for {few} rows, {high} MB for {many} rows"
