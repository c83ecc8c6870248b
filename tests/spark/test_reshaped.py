"""The promise of rollback outlives changes of the table's partition spec and of its columns."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]

CHANGES = [
    "ADD PARTITION FIELD bucket(4, account)",
    "DROP PARTITION FIELD day",
    "REPLACE PARTITION FIELD day WITH months(day)",
    "RENAME COLUMN day TO business_day",
    "ADD COLUMN extra string",
    "DROP COLUMN n",
]


def grosses(world: World) -> list[tuple[str, ...]]:
    """Every row by position, because columns were renamed and dropped."""
    return sorted((str(row[0]), str(row["account"]), str(row["gross"])) for row in world.sql(f"SELECT * FROM {TABLE}"))


@pytest.mark.parametrize("change", CHANGES)
def test_a_rollback_works_after_the_table_was_reshaped(world_at: WorldAt, change: str) -> None:
    """Nothing of the scope was written since, so the files of before are put back, also under another spec or name."""
    world, run = world_at("published", days=2)
    before = [(day, account, str(gross)) for day, account, gross, _ in world.wrong()]
    world.sql(f"ALTER TABLE {TABLE} {change}")
    # a live write to another day, under the new shape
    columns = len(world.table().schema().fields)
    rest = ["cast(7 as decimal(12,2))", *["null"] * (columns - 3)]
    world.sql(f"INSERT INTO {TABLE} SELECT date'2026-03-01', 'live', {', '.join(rest)}")
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert grosses(world) == sorted([*before, ("2026-03-01", "live", "7.00")])
    assert world.client.status(run).state == "rolled_back"


def test_a_rollback_over_files_of_another_spec_is_refused_with_the_command_that_works(world_at: WorldAt) -> None:
    """Rows of several days in one file cannot be taken out by file; the hint, typed as it is, puts the rows back."""
    world, run = world_at("published", days=2)
    before = world.wrong()
    world.sql(f"ALTER TABLE {TABLE} DROP PARTITION FIELD day")
    days = ", ".join(f"(date'{day}', 'late', 1.00, 1, null, null)" for day in world.days)
    world.sql(f"INSERT INTO {TABLE} SELECT /*+ COALESCE(1) */ * FROM VALUES {days}")
    with pytest.raises(PublishConflict, match="written since under another partition spec") as refused:
        world.client.rollback(run, reason="undo", as_="bo")
    words = shlex.split(refused.value.hint.partition(": ")[2])
    assert words[:3] == ["errata", "plan", "fin.sales"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    world.to("published", options["--partitions"], restore=options["--restore"], reason="put back")
    assert world.rows() == before


def test_a_run_planned_before_the_partition_column_was_renamed_is_not_published(world_at: WorldAt) -> None:
    """One sentence names both columns and the way on."""
    world, run = world_at("validated", days=2)
    world.sql(f"ALTER TABLE {TABLE} RENAME COLUMN day TO business_day")
    with pytest.raises(PublishConflict, match="expected partition column day, found business_day") as refused:
        world.client.publish(run, as_="bo")
    assert f"--supersede {run}" in refused.value.hint


def test_a_rollback_by_a_dropped_column_is_one_sentence(world_at: WorldAt) -> None:
    """The rows cannot be placed any more, and the error says so instead of Java."""
    world, run = world_at("published", days=2)
    world.sql(f"ALTER TABLE {TABLE} DROP PARTITION FIELD day")
    world.sql(f"ALTER TABLE {TABLE} DROP COLUMN day")
    with pytest.raises(PublishConflict, match=r"partition column day of lake\.fin\.sales was dropped"):
        world.client.rollback(run, reason="undo", as_="bo")
