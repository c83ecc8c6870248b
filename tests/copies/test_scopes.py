"""Partitions of every grain and type are the same rows in Python, in PostgreSQL and in an Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from errata.engines.copies.batch_checksums import BatchChecksums
from errata.engines.copies.postgres_copies import PostgresCopies
from errata.engines.iceberg.metadata.lake_rows import IcebergLakeReader
from errata.errors import EngineError
from errata.model.copy.column_types import to_postgres_type
from errata.model.copy.measure import measure_rows
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import NULL, Grain, name_partition
from errata.testing.copies.lake_rows import Rows, to_arrow_type
from support.postgres import PostgresServer

MOMENTS = [
    datetime.fromisoformat(text)
    for text in (
        "0001-01-01", "1969-12-31T23:59:59.999999", "1970-01-01", "2026-01-31T23:00", "2026-02-01",
        "2026-02-01T00:00:00.000001", "2026-02-01T01:00", "2026-03-29T02:30", "2026-12-31T23:59:59", "2027-01-01",
        "9999-12-31T23:59:59.999999",
    )
]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "date": sorted({moment.date() for moment in MOMENTS}),
    "timestamp": MOMENTS,
    "timestamptz": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "string": ["EU", "it's", "a, b", "null", '"quoted"', "\\", "%s {x}", "é", "e\u0301", " ", "$1"],
    "int": [-(2**31), -1, 0, 1, 9, 10, 2**31 - 1],
    "long": [-(2**63), -1, 0, 1, 9, 10, 2**63 - 1],
}
CASES = [
    *(("date", grain) for grain in (Grain.DAY, Grain.MONTH, Grain.YEAR, Grain.VALUE)),
    *((kind, grain) for kind in ("timestamp", "timestamptz") for grain in Grain if grain.is_time),
    *((kind, Grain.VALUE) for kind in ("string", "int", "long")),
]


def build_copy(kind: str, grain: Grain) -> CopyTable:
    columns = (CopyColumn("p", "P", kind), CopyColumn("n", "n", "long"))
    return CopyTable("pg", "t", columns, columns[0], grain)


def build_rows(kind: str) -> list[dict[str, Any]]:
    values = [*VALUES[kind], *VALUES[kind][::2], None]
    return [{"P": value, "n": n} for n, value in enumerate(values)]


def split(rows: Sequence[dict[str, Any]], grain: Grain) -> tuple[list[str], list[str]]:
    """All partitions, and every second of them."""
    names = sorted({name_partition(row["P"], grain) for row in rows})
    return names, names[::2]


@pytest.fixture
def copies(postgres: PostgresServer, database: str) -> PostgresCopies:
    return PostgresCopies({"pg": postgres.url(database)})


@pytest.mark.parametrize("kind, grain", CASES)
def test_postgres_finds_the_rows_of_partitions(
    copies: PostgresCopies, postgres: PostgresServer, database: str, kind: str, grain: Grain
) -> None:
    """All of them by name, and exactly the rows of those that are asked for."""
    import psycopg

    copy, rows = build_copy(kind, grain), build_rows(kind)
    postgres.execute(f'CREATE TABLE t ("P" {to_postgres_type(kind)}, n bigint)', database=database)
    with psycopg.connect(postgres.url(database).replace("+psycopg", "")) as conn:
        conn.execute("SET TIME ZONE 'Asia/Kolkata'")
        conn.cursor().executemany("INSERT INTO t VALUES (%s, %s)", [(row["P"], row["n"]) for row in rows])
    names, some = split(rows, grain)
    assert NULL in names
    assert copies.measure(copy, None) == measure_rows(copy, rows)
    wanted = [row for row in rows if name_partition(row["P"], grain) in some]
    assert copies.measure(copy, some) == measure_rows(copy, wanted)
    assert sorted(row["n"] for row in copies.read_rows(copy, some)) == sorted(row["n"] for row in wanted)


@pytest.mark.parametrize("kind, grain", CASES)
def test_batches_are_counted_like_rows(kind: str, grain: Grain) -> None:
    """Whatever their size, and where a batch is a part of a larger one."""
    copy, rows = build_copy(kind, grain), build_rows(kind)
    for size in (1, 3, 100):
        counted = BatchChecksums(copy)
        for batch in Rows(copy, rows, size).batches():
            counted.add(batch)
        assert counted.checksums == measure_rows(copy, rows)
    [whole] = Rows(copy, rows, 100).batches()
    counted = BatchChecksums(copy)
    counted.add(whole.slice(2, 5))
    assert counted.checksums == measure_rows(copy, rows[2:7])


@dataclass
class OneTable:
    """A loader that has one table."""

    table: Any

    def load(self, _table: str) -> Any:
        return self.table


@pytest.mark.parametrize("kind, grain", CASES)
def test_iceberg_gives_the_rows_of_partitions(tmp_path: Path, kind: str, grain: Grain) -> None:
    """Exactly those that are asked for, at the snapshot that is asked for."""
    from pyiceberg.catalog.sql import SqlCatalog

    copy, rows = build_copy(kind, grain), build_rows(kind)
    if any(isinstance(row["P"], date) and row["P"].year == 1 for row in rows):
        rows = [row for row in rows if row["P"] is None or row["P"].year > 1]
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("fin")
    schema = pa.schema([("p", to_arrow_type(kind)), ("n", pa.int64())])
    table = catalog.create_table("fin.t", schema)
    given = [{"p": row["P"], "n": row["n"]} for row in rows]
    table.append(pa.Table.from_pylist(given[::2], schema=schema))
    table.append(pa.Table.from_pylist(given[1::2], schema=schema))
    snapshot = str(table.metadata.current_snapshot_id)
    table.append(pa.Table.from_pylist(given, schema=schema))
    _, some = split(rows, grain)
    reader = IcebergLakeReader(OneTable(catalog.load_table("fin.t")))  # type: ignore[arg-type]
    found = reader.read(copy, "c.fin.t", snapshot, some)
    wanted = [row for row in rows if name_partition(row["P"], grain) in some]
    assert sorted(row["n"] for batch in found.batches() for row in batch.to_pylist()) == sorted(r["n"] for r in wanted)
    assert found.measure() == measure_rows(copy, wanted)
    catalog.close()


def test_a_day_that_no_partition_can_be_named_after_is_an_error(
    copies: PostgresCopies, postgres: PostgresServer, database: str
) -> None:
    """Years beyond 9999 and infinity are in no partition of the lake."""
    postgres.execute('CREATE TABLE t ("P" date, n bigint)', "INSERT INTO t VALUES ('infinity', 1)", database=database)
    with pytest.raises(EngineError):
        copies.measure(build_copy("date", Grain.DAY), None)
