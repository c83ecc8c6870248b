"""`errata record` on an emulator of Snowflake: one statement, all digits, recorded like a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import errata
from copies.snowflake_subject import make_key
from errata.errors import EngineError

if TYPE_CHECKING:
    from errata.client import Client
    from support.fakesnow import FakeSnowflake

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {{lake: {{type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}}}
people: single-user
warehouses:
  snow: {{type: snowflake, account: fakesnow, user: errata, private_key: snow.pem, role: R, warehouse: W,
          database: {database}, schema: PUBLIC, host: "http://127.0.0.1:{port}"}}
sources:
  orders:
    format: parquet
    duplicates: correction
    sql:
      warehouse: snow
      query: >-
        {query}
"""
QUERY = (
    'SELECT id AS "id", amount AS "amount", booked AS "at" FROM orders '
    "WHERE booked >= {start} AND booked < {end} ORDER BY id"
)


@pytest.fixture
def open_project(tmp_path: Path, fakesnow: FakeSnowflake, snowflake_database: str) -> Callable[..., Client]:
    """Opens a project with this query over three orders."""
    (tmp_path / "snow.pem").write_text(make_key(), "utf-8")
    fakesnow.execute(
        "create table orders (id int, amount number(30, 12), booked timestamp_tz)",
        "insert into orders select 1, 0.123456789012, '2026-01-03 00:00:00+00'",
        "insert into orders select 2, 123456789012345.5, '2026-01-03 23:59:00+00'",
        "insert into orders select 3, 3, '2026-01-04 00:00:00+00'",
        database=snowflake_database,
        schema="PUBLIC",
    )

    def open_it(query: str = QUERY) -> Client:
        text = PROJECT.format(database=snowflake_database, port=fakesnow.port, query=query)
        (tmp_path / "errata.yaml").write_text(text)
        return errata.open(str(tmp_path))

    return open_it


def test_a_window_of_snowflake_is_recorded_with_all_digits(open_project: Callable[..., Client], tmp_path: Path):
    """The end is excluded, times have microseconds, and the mark is the id of the query; again, it is the same file."""
    with open_project() as client:
        (done,) = client.record("orders", "2026-01-03", "2026-01-04").files
        assert client.record("orders", "2026-01-03", "2026-01-04").files[0].already
        (held,) = client.recordings("orders").files
        assert client.record("orders", "2025-01-03", "2025-01-04").files[0].rows == 0
    rows = pq.read_table(tmp_path / "recordings" / held.place).to_pylist()
    assert [(int(row["id"]), Decimal(row["amount"])) for row in rows] == [
        (1, Decimal("0.123456789012")),
        (2, Decimal("123456789012345.5")),
    ]
    assert rows[0]["at"].astimezone(UTC) == datetime(2026, 1, 3, tzinfo=UTC)
    assert (done.rows, str(held.manifest_id)[:6]) == (2, "query ")


def test_a_query_that_snowflake_refuses_records_nothing(open_project: Callable[..., Client]):
    """The error has its number, and nothing is on record."""
    with open_project(QUERY.replace("FROM orders", "FROM nowhere")) as client:
        with pytest.raises(EngineError, match="Snowflake refused a statement"):
            client.record("orders", "2026-01-03", "2026-01-04")
        assert client.recordings(every=True).files == ()
