"""Columns that a table gets after a plan: what live writes into them is not lost; empty ones are in nobody's way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
COPY_ON_WRITE = {f"write.{verb}.mode": "copy-on-write" for verb in ("delete", "update", "merge")}


@pytest.mark.parametrize("shape", [pytest.param("partitioned, history cut", marks=pytest.mark.slow), "shared files"])
def test_a_rollback_does_not_take_along_what_live_wrote_into_a_column_added_since(
    world_at: WorldAt, shape: str
) -> None:
    """Rows are compared over the planned columns; the new one must be empty there, or it is a live write."""
    shares = shape == "shared files"
    world, run = world_at("published", days=2, spec="" if shares else "day", properties=COPY_ON_WRITE)
    hit, other = world.days
    world.sql(f"ALTER TABLE {TABLE} ADD COLUMN region string")
    world.sql(f"UPDATE {TABLE} SET region = 'EU' WHERE day = date'{hit}'")
    if not shares:
        cut_history(world)
    before = _regions(world)
    with pytest.raises(PublishConflict) as conflict:
        world.client.rollback(run, reason="undo", as_="bo")
    assert conflict.value.fields["partitions"] == [hit]
    (line,) = [line for line in conflict.value.message.splitlines() if hit in line]
    assert "column region, added since, holds values" in line
    assert _regions(world) == before
    world.client.rollback(run, partitions=other, reason="the other day holds nothing there", as_="bo")
    assert [row for row in world.rows() if row[0] == other] == world.wrong([other])
    assert _regions(world) == before


@pytest.mark.parametrize(
    "change",
    ["ADD COLUMN region string", pytest.param("RENAME COLUMN gross TO net", marks=pytest.mark.slow)],
    ids=["empty", "renamed"],
)
def test_a_column_that_is_empty_or_only_renamed_is_no_write(world_at: WorldAt, change: str) -> None:
    """Files were rewritten and history is cut, so content decides: the rows are the same."""
    world, run = world_at("published", days=1)
    world.sql(f"ALTER TABLE {TABLE} {change}")
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    cut_history(world)
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    name = "net" if "net" in change else "gross"
    found = world.sql(f"SELECT string(day), account, {name}, n FROM {TABLE} WHERE account != 'elsewhere'")
    assert sorted(tuple(row) for row in found) == world.wrong()


@pytest.mark.slow
def test_the_default_of_a_new_column_is_no_write_and_another_value_is(world_at: WorldAt) -> None:
    """Format 3: what comes back reads as the default too, so only other values would be lost."""
    world, run = world_at("published", days=2, properties=COPY_ON_WRITE | {"format-version": "3"})
    hit, other = world.days
    java = world.engines.java
    iceberg = java.jvm.org.apache.iceberg
    text, literal = iceberg.types.Types.StringType.get(), iceberg.expressions.Expressions.lit("EU")
    java.load(TABLE).updateSchema().addColumn("region", text, literal).commit()
    world.sql(f"UPDATE {TABLE} SET region = 'US' WHERE day = date'{hit}' AND account = 'a0'")
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    cut_history(world)
    with pytest.raises(PublishConflict) as conflict:
        world.client.rollback(run, reason="undo", as_="bo")
    assert conflict.value.fields["partitions"] == [hit]
    assert world.client.rollback(run, partitions=other, reason="undo", as_="bo").partitions == (other,)
    assert [row for row in world.rows() if row[0] == other] == world.wrong([other])
    (counted,) = world.sql(f"SELECT count_if(region = 'US'), count_if(region = 'EU') FROM {TABLE} WHERE account != 'x'")
    assert tuple(counted) == (1, len(world.rows()) - 1)


def _regions(world: World) -> dict[str, int]:
    return {str(row[0]): row[1] for row in world.sql(f"SELECT day, count(region) FROM {TABLE} GROUP BY 1")}


def cut_history(world: World) -> None:
    """What a week and a nightly expiry leave: main's head, the guard and the undo set."""
    for ref in [name for name in world.refs() if name.endswith(("_pre", "_pub", "_c1"))]:
        kind = "BRANCH" if world.table().metadata.refs[ref].snapshot_ref_type == "branch" else "TAG"
        world.sql(f"ALTER TABLE {TABLE} DROP {kind} `{ref}`")
    world.sql(f"INSERT INTO {TABLE} (day, account, n) VALUES (date'2026-03-01', 'elsewhere', bigint(1))")
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
