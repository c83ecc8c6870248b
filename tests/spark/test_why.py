"""Why a number changed: rows by key, as they are printed elsewhere, each by itself, with everyone who wrote them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import UsageError
from support.terminal import text
from support.world import PRODUCT_FILE, TABLE, World

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
    for changed in ({"price": "−1,204.50"}, {"is_open": "false"}, {"seen": "2026-01-01 03:04:05.5"}):
        (found,) = [
            e for e in world.client.why(TABLE, world.days[0], key=printed | changed).history if e.action == "published"
        ]
        assert (found.after or {})["account"] == "a1"
    for wrong in ("seen=noon", "price=much", "is_open=perhaps"):
        code, told = text(world, f"errata why {TABLE} {world.days[0]} --key {wrong}")
        assert (code, told.startswith(f"error[usage]: --key {wrong.partition('=')[0]}=")) == (2, True), told
    with pytest.raises(UsageError):
        world.client.why(TABLE, world.days[0], key={"day": "17.01.2026"})
