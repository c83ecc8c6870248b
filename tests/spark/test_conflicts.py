"""A table that was changed after planning is a conflict, on a real table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict
from support.world import TABLE, World

Make = Callable[..., World]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN extra string",
        "DROP COLUMN restatement_reason",
        "RENAME COLUMN gross TO net",
        "ALTER COLUMN gross TYPE decimal(14,2)",
        "ADD PARTITION FIELD bucket(4, account)",
    ],
    ids=["added", "dropped", "renamed", "retyped", "spec"],
)
def test_a_table_that_is_another_one_than_was_planned_is_a_conflict(make_world: Make, change: str) -> None:
    """Staged files of the old schema would be read under the new one, and nothing in the catalog would object."""
    world = make_world(days=1)
    run = world.to("validated")
    world.sql(f"ALTER TABLE {TABLE} {change}")
    head = world.snapshot()
    with pytest.raises(PublishConflict, match="changed after planning"):
        world.client.publish(run, as_="bo")
    assert world.snapshot() == head
    assert world.client.status(run).state == "validated"
