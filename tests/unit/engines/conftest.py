from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import Transform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IcebergType, LongType, NestedField, StringType, TimestampType
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros

from errata.engines.iceberg.catalogs import pyiceberg_properties
from errata.engines.iceberg.metadata.tables import IcebergMetadata, TableLoader
from errata.model.product import Catalog

TYPES: dict[str, IcebergType] = {"day": DateType(), "at": TimestampType(), "region": StringType(), "n": LongType()}


@dataclass(frozen=True)
class Lake:
    """A SQLite catalog with tables made of columns day, at, region, n."""

    catalog: Catalog

    @property
    def tables(self) -> TableLoader:
        return TableLoader({"lake": self.catalog})

    @property
    def reader(self) -> IcebergMetadata:
        return IcebergMetadata(self.tables)

    def create(
        self, name: str, *fields: tuple[str, Transform[Any, Any]], rows: list[Mapping[str, Any]] | None = None
    ) -> Table:
        names = list(TYPES)
        schema = Schema(*[NestedField(i, column, TYPES[column]) for i, column in enumerate(names, 1)])
        parts = [
            PartitionField(names.index(column) + 1, 1000 + i, transform, f"p{i}")
            for i, (column, transform) in enumerate(fields)
        ]
        catalog = load_catalog("lake", **pyiceberg_properties(self.catalog))
        catalog.create_namespace_if_not_exists("fin")
        table = catalog.create_table(f"fin.{name}", schema, partition_spec=PartitionSpec(*parts))
        return append(table, *rows) if rows else table


def append(table: Table, *rows: Mapping[str, Any]) -> Table:
    """Commit one data file per partition of these rows; the files are never written, only their metadata is."""
    spec, schema = table.spec(), table.schema()
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(_partition_value(part, schema, row) for part in spec.fields), []).append(row)
    with table.transaction() as tx, tx.update_snapshot().fast_append() as update:
        for value, held in groups.items():
            path = f"{table.location()}/data/{uuid4()}.parquet"
            update.append_data_file(data_file(path, value, len(held), spec.spec_id, **_metrics(schema, held)))
    return table


def data_file(
    path: str,
    partition: tuple[Any, ...],
    rows: int,
    spec_id: int,
    *,
    content: DataFileContent = DataFileContent.DATA,
    **metrics: Any,
) -> DataFile:
    made = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=rows,
        file_size_in_bytes=1000 + rows,
        **metrics,
    )
    made.spec_id = spec_id
    return made


def _metrics(schema: Schema, rows: list[Mapping[str, Any]]) -> dict[str, dict[int, Any]]:
    """Counts and bounds of every column, as writers leave them."""
    found: dict[str, dict[int, Any]] = {
        name: {} for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    }
    for field in schema.fields:
        values = [_raw(row[field.name]) for row in rows if row.get(field.name) is not None]
        found["value_counts"][field.field_id] = len(rows)
        found["null_value_counts"][field.field_id] = len(rows) - len(values)
        for name, end in (("lower_bounds", min), ("upper_bounds", max)) if values else ():
            found[name][field.field_id] = to_bytes(field.field_type, end(values))  # type: ignore[arg-type]
    return found


def _raw(value: Any) -> Any:
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    return date_to_days(value) if isinstance(value, date) else value


def _partition_value(part: PartitionField, schema: Schema, row: Mapping[str, Any]) -> Any:
    field = schema.find_field(part.source_id)
    return part.transform.transform(field.field_type)(_raw(row[field.name]))


def on(text: str, n: int = 1, region: str | None = "EU") -> dict[str, Any]:
    """A row of one day or hour."""
    at = datetime.fromisoformat(text)
    return {"day": date(at.year, at.month, at.day), "at": at, "region": region, "n": n}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/warehouse"))
