"""Tables made of plain Parquet files: corrected, rolled back and copied like any other, with values from folders."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.delivery.copies.declared_copies import open_copy
from support.world import World

if TYPE_CHECKING:
    from support.postgres import PostgresServer

NAME, DAYS = "lake.raw.events", ("2026-01-01", "2026-01-02", "2026-01-03")
PRODUCT = """
product: raw.events
owner: finance
target:
  table: lake.raw.events
  partition: {column: day, grain: day}
  key: [day, account]
  copies: [{warehouse: pg, table: events}]
transform: {sql: transforms/events.sql, version: 1.0.0}
inputs:
  raw: {files: "raw/day={day}/*.parquet", partition: day}
publish: {mode: replace_partitions, rollback_window: 30d}
checks: [{metric: nullValues, column: day, mustBe: 0}]
lineage_columns: false
"""
QUERY = "SELECT day, account, cast(sum(amount) as decimal(12,2)) AS gross FROM raw GROUP BY day, account\n"


@pytest.fixture
def world(make_world: Callable[..., World], postgres: PostgresServer) -> World:
    """A lake whose second table is made of files that do not have their day, and an empty copy of it."""
    pytest.importorskip("adbc_driver_postgresql")
    name = f"events_{token_hex(4)}"
    uri = postgres.create_database(name).replace("+psycopg", "")
    postgres.execute("CREATE TABLE events (day date, account text, gross numeric(12,2))", database=name)
    world = make_world(days=3, project=f'warehouses: {{pg: {{type: postgres, uri: "{uri}"}}}}\n')
    for n, day in enumerate(DAYS):
        place = world.root / f"events/day={day}/part-0.parquet"
        place.parent.mkdir(parents=True)
        gross = pa.array([Decimal(n + 1), Decimal("0.50")], pa.decimal128(12, 2))
        pq.write_table(pa.table({"account": ["a0", "old"], "gross": gross}), place)
    (world.root / "products/events.yaml").write_text(PRODUCT)
    (world.root / "transforms/events.sql").write_text(QUERY)
    world.client.adopt_parquet(NAME, "events", as_="ana")
    world.client.close()
    world.open()
    return world


def rows(world: World) -> list[tuple[Any, ...]]:
    """The table as Spark reads it."""
    return [tuple(row) for row in world.sql(f"SELECT day, account, gross FROM {NAME} ORDER BY day, account")]


def test_a_day_of_adopted_files_is_corrected_and_comes_back(world: World, postgres: PostgresServer) -> None:
    """Spark reads the days from the folders; a correction replaces one of them; the files of before come back.

    The copy gets the days as well, although no file has them.
    """
    before = rows(world)
    assert before == [
        (date.fromisoformat(day), account, gross)
        for n, day in enumerate(DAYS)
        for account, gross in (("a0", Decimal(n + 1)), ("old", Decimal("0.50")))
    ]
    files = sorted((world.root / "events").rglob("*.parquet"))
    run = world.client.plan("raw.events", partitions=DAYS[1], reason="wrong", as_="ana").id
    world.client.approve(run, digest=world.client.show(run).digest, as_="bo")
    world.client.run(run, as_="ana")
    assert world.client.validate(run, as_="ana").passed
    world.client.publish(run, as_="bo")
    after = rows(world)
    assert [row for row in after if str(row[0]) != DAYS[1]] == [row for row in before if str(row[0]) != DAYS[1]]
    assert {row[1] for row in after if str(row[0]) == DAYS[1]} == {"a0", "a1", "a2"}
    world.client.rollback(run, reason="it was right", as_="bo")
    assert rows(world) == before
    assert sorted((world.root / "events").rglob("*.parquet")) == files
    product = world.workspace.project.products["raw.events"]
    copy = open_copy(world.workspace, product, product.target.copies[0])
    found = world.workspace.engines.copies("pg").read_rows(copy, [DAYS[1]])
    assert sorted((one["day"], one["account"], one["gross"]) for one in found) == [
        row for row in before if str(row[0]) == DAYS[1]
    ]
