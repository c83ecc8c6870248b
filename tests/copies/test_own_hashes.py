"""PostgreSQL recognises rows by a hash of its own, while the copy is locked; what it does not recognise is compared by
the hash that all engines have."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from errata.model.consumer.outbox import ItemState
from support.copy_world import CopyWorld

Make = Callable[..., CopyWorld]
STEPS = ("copy", "read_back")
EDITS = {
    "the sign of an amount": "UPDATE shop.sales SET gross = -gross",
    "amounts of two rows exchanged": "UPDATE shop.sales a SET gross = b.gross FROM shop.sales b,"
    " (SELECT min(account) low, max(account) high FROM shop.sales) e"
    " WHERE (a.account, b.account) IN ((low, high), (high, low))",
    "a number that lost its sign": "UPDATE shop.sales SET n = 4294967295 WHERE n = -1",
    "the last cent of one row": "UPDATE shop.sales SET gross = gross + 0.01 WHERE n = -1",
}
"""Edits that keep the number of rows; the first three also keep the sum of PostgreSQL's hashes of the row itself."""


def run_sql(world: CopyWorld, *statements: str) -> list[Any]:
    return world.server.execute(*statements, database=world.database)


def read_contents(world: CopyWorld) -> dict[str, Any]:
    """The partitions of the newest receipt."""
    result = world.items()[-1].result
    return dict(json.loads(world.lake.ledger.parts.get(result["contents"])))


def read_hashes(world: CopyWorld) -> list[str | None]:
    return [row[0] for row in run_sql(world, "SELECT own_hash FROM shop.errata_delivered_sales ORDER BY partition")]


def test_rows_are_hashed_for_all_engines_once_in_staging(make_world: Make) -> None:
    """The receipt says so: copy and later look have the own hash of what was compared with the lake in staging."""
    world = make_world(days=2, history=False)
    run = world.lake.to("published")
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    for one in read_contents(world).values():
        assert "by" not in one["staged"]
        for step in STEPS:
            assert one[step] == one["staged"] | {"by": "own_hash"}
        assert one["staged"]["own_hash"].startswith("postgres-")
    assert read_hashes(world) == [one["copy"]["own_hash"] for _, one in sorted(read_contents(world).items())]
    assert world.rows() == world.lake.wrong()


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_an_edit_that_keeps_the_number_of_rows_is_found_under_the_lock(make_world: Make, edit: str) -> None:
    """Values are compared, not counts: nothing is written, and the partition is named."""
    world = make_world(days=1, history=False)
    run = world.lake.to("published")
    # as if this had been delivered: a row with -1, which a hash for hash tables takes for 4294967295
    day = world.lake.days[0]
    run_sql(world, "UPDATE shop.sales SET n = -1 WHERE account = (SELECT min(account) FROM shop.sales)")
    world.lake.client.baseline("fin.sales", partitions=day, reason="known", as_="bo")
    before = world.rows()
    run_sql(world, edit)
    edited = world.rows()
    assert (edited != before, len(edited)) == (True, len(before))
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    item = world.items()[-1]
    assert (item.state, item.progress["partitions"]) == (ItemState.FAILED, [day])
    assert world.rows() == edited


RECORDS = {
    "another server version": "UPDATE shop.errata_delivered_sales SET own_hash = 'postgres-9' || substr(own_hash, 12)",
    "other columns": "UPDATE shop.errata_delivered_sales SET own_hash = regexp_replace(own_hash, ':.*:', ':00:')",
    "no own hash": "UPDATE shop.errata_delivered_sales SET own_hash = NULL",
    "a table of an earlier version": "ALTER TABLE shop.errata_delivered_sales DROP COLUMN own_hash",
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=list(RECORDS))
@pytest.mark.parametrize("is_edited", [False, True], ids=["same", "edited"])
def test_without_a_usable_own_hash_the_common_hash_decides(make_world: Make, record: str, is_edited: bool) -> None:
    """Rows that are there are found to be the delivered ones, or not, and the next record has an own hash again."""
    world = make_world(days=2, history=False)
    run = world.lake.to("published")
    run_sql(world, record)
    if is_edited:
        run_sql(world, "UPDATE shop.sales SET gross = -gross")
    held = world.rows()
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    item = world.items()[-1]
    assert item.state is (ItemState.FAILED if is_edited else ItemState.PAID), item.last_error
    assert world.rows() == (held if is_edited else world.lake.wrong())
    if not is_edited:
        assert all(one and one.startswith("postgres-") for one in read_hashes(world))


def test_a_role_that_may_not_change_the_record_delivers_without_own_hashes(make_world: Make) -> None:
    """Tables of an earlier version that an administrator made stay as they are."""
    world = make_world(days=1, history=False)
    run = world.lake.to("published")
    role = f"weak_{world.database}"
    run_sql(
        world,
        "ALTER TABLE shop.errata_delivered_sales DROP COLUMN own_hash",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE, CREATE ON SCHEMA shop TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shop TO {role}",
    )
    world.connect(world.lake.engines, world.server.url(world.database, role=role).replace("+psycopg", ""))
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    assert world.items()[-1].state is ItemState.PAID, world.items()[-1].last_error
    assert world.rows() == world.lake.wrong()
    run_sql(world, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
