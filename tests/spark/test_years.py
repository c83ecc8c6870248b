"""Rows in years that no date can name, and the last day that one can."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from errata.errors import RunFailed
from spark.test_shapes import HIDDEN, HIDDEN_TRANSFORM
from support.world import TABLE, World, write_raw

Make = Callable[..., World]

MILLISECONDS = "timestamp_seconds(1767225600000)"  # a live job that reads milliseconds as seconds: the year 57971


def hidden(make_world: Make, kind: str, spec: str, transform: str = HIDDEN_TRANSFORM) -> World:
    """Two wrong days in a table that is partitioned by a transform of ``ts``."""
    world = make_world(days=2, product=HIDDEN, transform=transform, history=False)
    world.sql(f"DROP TABLE {TABLE}")
    world.sql(
        f"CREATE TABLE {TABLE} (ts {kind}, account string, gross decimal(12,2), n bigint, "
        f"produced_by_run_id string, restatement_reason string) USING iceberg PARTITIONED BY ({spec}) "
        "TBLPROPERTIES ('commit.retry.num-retries'='30')"
    )
    world.sql(f"INSERT INTO {TABLE} VALUES ({kind}'2026-01-01 00:00:00', 'a0', 9, 9, null, null)")
    return world


def rows(world: World) -> list[tuple[str, str, int]]:
    """As text, because Python has no such date."""
    found = world.sql(f"SELECT cast(ts as string) t, account, cast(gross * 100 as int) g FROM {TABLE}")
    return sorted((row["t"], row["account"], row["g"]) for row in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind, spec", [("timestamp", "days(ts)"), ("timestamp_ntz", "hours(ts)")])
def test_a_row_of_the_year_57971_blocks_nothing_but_itself(make_world: Make, kind: str, spec: str) -> None:
    """Publishing, rolling back and planning go on beside it; the plan names it, its file and how to remove it."""
    transform = HIDDEN_TRANSFORM.replace('F.to_timestamp("day")', f'F.to_timestamp("day").cast("{kind}")')
    world = hidden(make_world, kind, spec, transform)
    run = world.to("validated")
    world.sql(f"INSERT INTO {TABLE} SELECT cast({MILLISECONDS} as {kind}), 'bad', 1, 1, null, null")
    before = rows(world)
    assert world.client.publish(run, as_="bo").state == "published"
    assert any(account == "bad" for _, account, _ in rows(world))
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert rows(world) == before
    told = [verdict.message for verdict in world.plan(reason="again").verdicts if "57971" in verdict.message]
    (message,) = told
    assert ".parquet" in message
    delete = re.search(r"DELETE FROM .*", message)
    assert delete is not None
    world.sql(delete[0])
    assert rows(world) == [row for row in before if row[1] != "bad"]


@pytest.mark.slow
def test_a_transform_that_gives_such_a_row_fails_as_outside_its_partitions(make_world: Make) -> None:
    """The error names the row's partition and what was planned, and nothing of the chunk is adopted."""
    transform = HIDDEN_TRANSFORM.replace(
        'F.to_timestamp("day")',
        f'F.when(F.col("account") == "a1", F.expr("{MILLISECONDS}")).otherwise(F.to_timestamp("day"))',
    )
    world = hidden(make_world, "timestamp", "days(ts)", transform)
    run = world.to("approved")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    failure = failed.value.fields["run"].failures[0]
    assert failure["code"] == "foreign-partition"
    assert "produced rows for +57971-02-25; expected only 2026-01-01" in str(failure)


@pytest.mark.slow
def test_the_last_day_there_is_can_be_planned_run_and_undone(make_world: Make) -> None:
    """9999-12-31, a favourite for "never", is a partition like any other, and what comes after it is not in it."""
    world = make_world(days=1)
    write_raw(world.root, "9999-12-31", 3)
    world.sql(
        f"INSERT INTO {TABLE} VALUES (date'9999-12-31','a0', 1, 1, null, null), "
        "(date'+10000-01-01', 'late', 1, 1, null, null)"
    )

    def held() -> list[str]:
        found = world.sql(f"SELECT concat_ws(' ', day, account, gross) r FROM {TABLE} WHERE day > '9000-01-01'")
        return sorted(row["r"] for row in found)

    before = held()
    run = world.to("published", "9999-12-31")
    assert len(held()) == 4
    assert "+10000-01-01 late 1.00" in held()
    world.client.rollback(run, reason="undo", as_="bo")
    assert held() == before
