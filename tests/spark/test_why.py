"""Why a number changed: rows by key, as they are printed elsewhere, each by itself, with everyone who wrote them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import UsageError
from protocol import test_why
from support.terminal import text
from support.world import PRODUCT_FILE, TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]

KEY = ["day", "account", "seen", "local", "price", "is_open"]
TYPED = PRODUCT_FILE.replace("key: [day, account]", f"key: [{', '.join(KEY)}]").replace(
    "columns: [day, account]", f"columns: [{', '.join(KEY)}]"
)
TYPED_TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    return raw.groupBy("day", "account").agg(gross, F.count("*").alias("n")).select(
        "*",
        F.expr("timestamp'2026-01-01 03:04:05.5Z'").alias("seen"),
        F.expr("timestamp_ntz'2026-01-01 03:04:05'").alias("local"),
        F.expr("cast(-1204.5 as decimal(9,2))").alias("price"),
        F.expr("account = 'a0'").alias("is_open"),
    )
"""


@pytest.mark.slow
def test_a_key_is_accepted_as_the_diff_prints_it(make_world: Make) -> None:
    """Instants, times without zone, decimals, booleans and days of a sample row lead to that row, in JSON and text."""
    world = make_world(days=1, product=TYPED, transform=TYPED_TRANSFORM, history=False)
    for new in ("seen timestamp", "local timestamp_ntz", "price decimal(9,2)", "is_open boolean"):
        world.sql(f"ALTER TABLE {TABLE} ADD COLUMN {new}")
    run = world.to("published")
    sample = next(row for row in world.client.diff(run).diff.sample if row.key["account"] == "a1")
    printed = {name: str(value) for name, value in sample.key.items()}
    assert printed["seen"] == "2026-01-01T03:04:05.500000+00:00"
    (found,) = [e for e in world.client.why(TABLE, world.days[0], key=printed).history if e.action == "published"]
    assert (found.after or {})["account"] == "a1"
    changed = {"price": "−1,204.50", "is_open": "false", "seen": "2026-01-01 03:04:05.5"}
    (found,) = [
        e for e in world.client.why(TABLE, world.days[0], key=printed | changed).history if e.action == "published"
    ]
    assert (found.after or {})["account"] == "a1"
    for wrong in ("seen=noon", "price=much", "is_open=perhaps"):
        code, told = text(world, f"errata why {TABLE} {world.days[0]} --key {wrong}")
        assert (code, told.startswith(f"error[usage]: --key {wrong.partition('=')[0]}=")) == (2, True), told
    with pytest.raises(UsageError):
        world.client.why(TABLE, world.days[0], key={"day": "17.01.2026"})


def test_a_live_write_is_told_of_the_row_that_it_changed_and_of_no_other(world_at: WorldAt) -> None:
    """With a key, a job's write to another row of the partition is left out."""
    world, _ = world_at("published", days=1)
    world.sql(f"UPDATE {TABLE} SET gross = 7.77 WHERE account = 'a0'")
    changed = world.client.why(TABLE, world.days[0], key={"account": "a0"}).history
    assert [one.action for one in changed] == ["live", "published", "live"]
    assert (changed[-1].after or {})["gross"] == "7.77"
    assert changed[-1].before == changed[1].after
    same = world.client.why(TABLE, world.days[0], key={"account": "a1"}).history
    assert [one.action for one in same] == ["live", "published"]


@pytest.mark.slow
def test_a_part_of_the_key_shows_each_row_by_itself(make_world: Make) -> None:
    """Two rows of one account are two histories, also when only one of them is left; none is made of both."""
    world = make_world(days=1, product=test_why.TWO_CURRENCIES)
    day = world.days[0]
    world.sql(f"INSERT INTO {TABLE} VALUES (date'{day}', 'a1', 50.00, bigint(7), null, null)")
    world.to("published")
    test_why.assert_rows_told_apart(world, day)


def test_what_cannot_name_a_row_is_refused(world_at: WorldAt) -> None:
    """A column that is no part of the key would find other rows before than after."""
    world, _ = world_at("published", days=1)
    code, told = text(world, f"errata why {TABLE} {world.days[0]} --key gross=1.00")
    assert (code, "expected columns of the key of fin.sales: day, account" in told) == (2, True), told


@pytest.mark.slow
def test_a_rollback_is_told_with_its_own_people_and_live_writes_are_told_too(make_world: Make) -> None:
    """As on tables in memory: who did what, in the order of main."""
    test_why.test_a_rollback_is_told_with_its_own_people_and_live_writes_are_told_too(make_world)
