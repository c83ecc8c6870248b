"""New columns of a run with waves: the first wave adds them, later ones find exactly those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import PublishConflict
from errata.testing.metadata import Field
from support.memory_world import MemoryWorld as World
from support.memory_world import build
from support.waves import in_waves
from support.world import PRODUCT_FILE

Make = Callable[..., World]
ADDED = "  key: [day, account]\n  add_columns: {events: long}\n"


def with_events(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    """The transform with one more column."""
    return [{**row, "events": row["n"] * 10} for row in build(ctx, raw)]


def in_waves_with_events() -> str:
    return in_waves("size: 1", PRODUCT_FILE.replace("  key: [day, account]\n", ADDED))


def test_later_waves_find_the_columns_that_the_first_one_added(make_world: Make) -> None:
    """Days that have not gone show NULL there, as the plan says; a rollback of a wave takes no column out."""
    world = make_world(days=3, product=in_waves_with_events(), transform=with_events)
    assert world.plan().publish["waves"]["new_columns"] == ["events"]
    run = world.to("validated")

    def held() -> list[int | None]:
        found = {str(row["day"]): row["events"] for row in world.table.rows()}
        return [found[day] for day in world.days]

    world.client.publish(run, as_="bo")
    assert held() == [None, None, 20]
    world.client.publish(run, as_="bo")
    assert held() == [None, 20, 20]
    world.client.rollback(run, wave=1, reason="too early", as_="bo")
    assert held() == [None, 20, None]
    world.client.resume(run, as_="bo")
    world.client.publish(run, as_="bo")
    assert held() == [20, 20, None]


def test_a_column_that_others_add_between_waves_is_a_conflict(make_world: Make) -> None:
    """Later waves accept the schema that the first one made and no other."""
    world = make_world(days=2, product=in_waves_with_events(), transform=with_events)
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    world.table.change_columns(lambda fields: [*fields, Field(0, "foreign", "string")])
    with pytest.raises(PublishConflict, match="changed after planning"):
        world.client.publish(run, as_="bo")
