"""`errata record` on a real PostgreSQL: a window of one moment, streamed, recorded once, with its position."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import psycopg
import pyarrow.parquet as pq
import pytest

import errata
from errata.errors import EngineError, ProjectFileError, StateRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from errata.client import Client
    from support.postgres import PostgresServer

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {{lake: {{type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}}}
people: single-user
warehouses: {{shop: {{type: postgres, uri: "{uri}"}}}}
sources:
  files: {{format: json}}
  orders: {{format: parquet, duplicates: correction, sql: {{warehouse: shop, query: "{query}"}}}}
"""
QUERY = "SELECT id, amount, at FROM orders WHERE at >= {start} AND at < {end} ORDER BY id"
ROWS = """
CREATE TABLE orders (id bigint PRIMARY KEY, amount numeric(30, 12), at timestamptz);
INSERT INTO orders VALUES (1, 0.123456789012, '2026-01-03 00:00+00'), (2, 12345678901234567.5, '2026-01-03 23:59+00'),
  (3, 3, '2026-01-04 00:00+00');
"""


@pytest.fixture
def shop(postgres: PostgresServer) -> str:
    """A database with three orders."""
    pytest.importorskip("adbc_driver_postgresql")
    name = f"shop_{token_hex(4)}"
    uri = postgres.create_database(name).replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(uri, autocommit=True) as conn:
        conn.execute(ROWS)
    return uri


@pytest.fixture
def open_project(tmp_path: Path, shop: str) -> Callable[[str], Client]:
    """Opens a project with this query."""

    def open_it(query: str = QUERY) -> Client:
        (tmp_path / "errata.yaml").write_text(PROJECT.format(uri=shop, query=query))
        return errata.open(str(tmp_path))

    return open_it


def test_a_window_is_recorded_with_all_digits_and_its_position(open_project: Callable[..., Client], tmp_path: Path):
    """The end is excluded, numbers keep their digits, and no working file is left; again, it is the same file."""
    with open_project() as client:
        (done,) = client.record("orders", "2026-01-03", "2026-01-04").files
        (again,) = client.record("orders", "2026-01-03", "2026-01-04").files
        (held,) = client.recordings("orders").files
    rows = pq.read_table(tmp_path / "recordings" / held.place).to_pylist()
    assert [(row["id"], row["amount"]) for row in rows] == [
        (1, "0.123456789012"),
        (2, "12345678901234567.500000000000"),
    ]
    assert (done.start, done.end) == ("2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z")
    assert (again.already, again.file_id) == (True, done.file_id)
    assert "position" in str(held.manifest_id)
    assert list((tmp_path / ".errata/recording").iterdir()) == []


def test_a_window_that_changed_supersedes_the_earlier_one(open_project: Callable[..., Client], shop: str):
    """Both are on record, and only the new one counts."""
    with open_project() as client:
        (first,) = client.record("orders", "2026-01-03", "2026-01-04").files
        with psycopg.connect(shop, autocommit=True) as conn:
            conn.execute("UPDATE orders SET amount = 7 WHERE id = 1")
        (second,) = client.record("orders", "2026-01-03", "2026-01-04").files
        assert second.supersedes == first.file_id


def test_a_window_that_overlaps_another_one_is_refused(open_project: Callable[..., Client]):
    """Its rows would count twice; a window beside it is recorded."""
    with open_project() as client:
        client.record("orders", "2026-01-03", "2026-01-04")
        with pytest.raises(StateRefused, match="rows in both would count twice"):
            client.record("orders", "2026-01-03", "2026-01-05")
        assert client.record("orders", "2026-01-04", "2026-01-05").files[0].rows == 1


def test_a_query_that_fails_records_nothing_and_quotes_nothing(open_project: Callable[..., Client], shop: str):
    """The message has the state of the error, not the address or a value."""
    with open_project(QUERY.replace("amount", "amounts")) as client:
        with pytest.raises(EngineError, match="42703") as failed:
            client.record("orders", "2026-01-03", "2026-01-04")
        assert shop not in str(failed.value)
        assert client.recordings().files == ()


def test_a_query_writes_nothing(open_project: Callable[..., Client], shop: str):
    """The transaction is read-only, also for functions and CTEs that write."""
    query = "WITH gone AS (DELETE FROM orders WHERE at >= {start} AND at < {end} RETURNING *) SELECT * FROM gone"
    with open_project(query) as client, pytest.raises(EngineError, match=r"25006|0A000"):
        client.record("orders", "2026-01-03", "2026-01-04")
    with psycopg.connect(shop) as conn:
        assert conn.execute("SELECT count(*) FROM orders").fetchone() == (3,)


@pytest.mark.parametrize("query", ["SELECT 1", QUERY + "; DROP TABLE orders", "DELETE FROM orders WHERE at < {start}"])
def test_a_query_without_its_window_or_with_more_is_refused(open_project: Callable[..., Client], query: str):
    """When the project is opened, not when data is missing."""
    with pytest.raises(ProjectFileError, match=r"expected one SELECT|the ends of the window"):
        open_project(query)


def test_a_source_of_files_cannot_be_recorded(open_project: Callable[..., Client]):
    """The next command is in the message."""
    with open_project() as client, pytest.raises(UsageError, match="has no sql, http or kafka for it") as refused:
        client.record("files", "2026-01-03", "2026-01-04")
    assert refused.value.hint == "errata import PATH --source files"
