"""`errata copies check`: which partitions of a copy hold what the lake has accepted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from errata.delivery.copies.declared_copies import open_copy
from errata.errors import NotFound, PlanRefused
from errata.ledger import current_owner
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect
from errata.model.copy.delivery import WarehouseColumn
from errata.testing.copies import MemoryCopy
from errata.views.copies import CheckedCopy
from support.copy_world import build_product
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]
PROJECT = """
warehouses:
  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}
  old: {type: postgres, uri: "postgresql://errata@127.0.0.1/old"}
"""
ACTOR = Actor("ana", "ana", "host")
COLUMNS = {"day": "date", "account": "text", "gross": "numeric(12,2)", "n": "bigint"}


@pytest.fixture
def make(make_world: Make) -> Make:
    """Makes lakes with an empty copy in memory."""

    def _make(*, copy: str = "{warehouse: pg, table: shop.sales}", **options: Any) -> World:
        world = make_world(product=build_product(copy), project=PROJECT, **options)
        columns = [WarehouseColumn(name, kind) for name, kind in COLUMNS.items()]
        world.engines.warehouses.create("pg", "shop.sales", columns)
        return world

    return _make


def table(world: World) -> MemoryCopy:
    found: MemoryCopy = world.engines.warehouses.tables["pg", "shop.sales"]
    return found


def check(world: World, **options: Any) -> CheckedCopy:
    view = world.client.check_copies("fin.sales", **options)
    assert view.ok is not (bool(view.copies[0].differing) or view.copies[0].error is not None)
    found: CheckedCopy = view.copies[0]
    return found


def edit(world: World, day: str) -> None:
    """Somebody changes a row of the copy by hand; the number of rows stays."""
    row = next(one for one in table(world).rows if one["day"] == date.fromisoformat(day))
    row["account"] = "edited"


def test_a_copy_that_was_delivered_is_as_the_lake(make: Make) -> None:
    """After a publication, after a rollback, and after a compaction, which changes files and no rows."""
    world = make(days=3)
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    assert check(world) == CheckedCopy("pg", "shop.sales", 2)
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    world.compact()
    assert check(world) == CheckedCopy("pg", "shop.sales", 2)


def test_a_row_that_was_edited_by_hand_is_found_by_its_partition(make: Make) -> None:
    """The number of rows is the same; the checksum tells. Nothing is changed, and the repair is named."""
    world = make(days=3)
    world.to("published")
    edit(world, world.days[1])
    before = [dict(row) for row in table(world).rows]
    found = check(world)
    assert [(one.partition, one.lake_rows, one.copy_rows, one.why) for one in found.differing] == [
        (world.days[1], 3, 3, "changed")
    ]
    assert (found.checked_count, found.moved_on) == (3, ())
    assert table(world).rows == before
    assert world.client.check_copies("fin.sales").next == (
        'errata plan fin.sales --kind repair --copies --partitions 2026-01-02 --reason "…"',
    )
    assert check(world, partitions=world.days[0]).differing == ()


def test_what_live_jobs_wrote_in_the_lake_has_moved_on(make: Make) -> None:
    """It is no mismatch: the live job brings its rows to the warehouse later."""
    world = make(days=2)
    world.to("published")
    world.live(world.days[0], "late")
    found = check(world)
    assert (found.checked_count, found.moved_on, found.differing) == (1, (world.days[0],), ())


def test_a_copy_that_was_waived_is_still_reported(make: Make) -> None:
    """Waiving ends the attempts, not the difference."""
    world = make(days=2)
    world.engines.warehouses.down = "pg cannot be reached"
    world.to("published", world.days[0])
    world.engines.warehouses.down = ""
    [item] = [one for one in world.ledger.outbox.list() if one.effect is Effect.COPY]
    world.client.waive_outbox(str(item.item_id), reason="switched off", as_="bo")
    found = check(world)
    assert [(one.partition, one.why) for one in found.differing] == [(world.days[0], "undelivered")]
    assert found.waived_by == "bo"


def test_a_copy_that_is_behind_differs(make: Make) -> None:
    """An earlier delivery is there, the newest is not: that is a difference, and no move of the lake."""
    world = make(days=1)
    run = world.to("published")
    world.engines.warehouses.down = "pg cannot be reached"
    world.client.rollback(run, reason="wrong", as_="bo")
    world.engines.warehouses.down = ""
    found = check(world)
    assert ([one.why for one in found.differing], found.moved_on) == (["undelivered"], ())


def test_a_partition_that_was_never_delivered_is_not_judged(make: Make) -> None:
    """Its rows are those of another job."""
    world = make(days=2)
    world.to("published", world.days[0])
    found = check(world, partitions=f"{world.days[0]}..{world.days[1]}")
    assert (found.checked_count, found.unknown) == (1, (world.days[1],))


def test_what_only_a_baseline_covers_has_not_moved_on_in_the_lake(make: Make) -> None:
    """A person accepted that the copy has other rows than the lake: neither is compared with the other."""
    world = make(days=2)
    table(world).rows.append({"day": date.fromisoformat(world.days[0]), "account": "a", "gross": None, "n": 1})
    world.client.baseline("fin.sales", partitions=world.days[0], reason="loaded by a job", as_="bo")
    found = check(world)
    assert (found.checked_count, found.baseline, found.moved_on) == (0, (world.days[0],), ())


def test_an_edit_of_what_only_a_baseline_covers_is_accepted_again_and_not_repaired(make: Make) -> None:
    """Nothing was accepted that a repair could bring back, and a plan of one says so."""
    world = make(days=2)
    workspace, day = world.workspace, world.days[1]
    product = workspace.product("fin.sales")
    copy = open_copy(workspace, product, product.target.copies[0])
    for batch in world.engines.lake_rows.read(copy, product.target.table, world.snapshot(), [day]).batches():
        table(world).rows += batch.to_pylist()
    world.client.baseline("fin.sales", partitions=day, reason="loaded by a job", as_="bo")
    assert check(world) == CheckedCopy("pg", "shop.sales", 1)
    edit(world, day)
    assert [(one.partition, one.why) for one in check(world).differing] == [(day, "changed")]
    assert world.client.check_copies("fin.sales").next == (f"errata deliver fin.sales --baseline --partitions {day}",)
    with pytest.raises(PlanRefused, match="only a baseline covers"):
        world.client.plan("fin.sales", partitions=day, reason="edited", kind="repair", copies=(), as_="ana")


def test_a_copy_to_which_nothing_was_delivered_is_as_nothing(make: Make) -> None:
    """No copy is praised for what it was not compared with."""
    world = make(days=1)
    assert check(world) == CheckedCopy("pg", "shop.sales", 0)


def test_a_failed_delivery_is_tried_again_by_the_next_command(make: Make) -> None:
    """`deliver` alone would leave it as it is; and one that was waived is planned as a repair."""
    world = make(days=1)
    world.engines.warehouses.down = "pg cannot be reached"
    world.to("published")
    [item] = [one for one in world.ledger.outbox.list() if one.effect is Effect.COPY]
    assert world.client.check_copies("fin.sales").next == ()
    world.engines.warehouses.down = ""
    assert world.client.check_copies("fin.sales").next == ("errata deliver fin.sales",)
    world.ledger.outbox.retry([item.item_id], ACTOR)
    claimed = world.ledger.outbox.claim(item.queue, current_owner("payer"), lease_seconds=60)
    assert claimed is not None
    world.ledger.outbox.record_failed(claimed, "gone", ACTOR)
    assert world.client.check_copies("fin.sales").next == (f"errata outbox retry {item.item_id}",)
    world.client.waive_outbox(str(item.item_id), reason="switched off", as_="bo")
    [step] = world.client.check_copies("fin.sales").next
    assert step == f'errata plan fin.sales --kind repair --copies --partitions {world.days[0]} --reason "…"'


def test_a_delivery_during_the_check_is_no_mismatch(make: Make) -> None:
    """What was read before and after it cannot be compared."""
    world = make(days=1)
    run = world.to("published")
    engine, once = world.engines.warehouses, [run]
    measure = engine.measure

    class Overtaken(type(engine)):  # type: ignore[misc]
        """A rollback is delivered just before the copy is measured."""

        def measure(self, *args: Any, **options: Any) -> Any:
            while once:
                world.client.rollback(once.pop(), reason="wrong", as_="bo")
            return measure(*args, **options)

    world.engines.warehouses = Overtaken(engine.tables)
    found = check(world)
    assert (found.moved_on, found.differing) == ((world.days[0],), ())


def test_a_warehouse_that_does_not_answer_hides_no_other(make: Make) -> None:
    """Its copy has an error; the other one is compared."""
    world = make(days=1, copy="{warehouse: pg, table: shop.sales}, {warehouse: old, table: gone}")
    world.to("published")
    view = world.client.check_copies("fin.sales")
    assert [(one.warehouse, one.checked_count, bool(one.error)) for one in view.copies] == [
        ("pg", 1, False),
        ("old", 0, True),
    ]
    assert "there is no table gone in old" in (view.copies[1].error or "")
    assert not view.ok


def test_a_product_without_copies_is_refused(make_world: Make) -> None:
    """There is nothing to compare."""
    with pytest.raises(NotFound, match="has no copy"):
        make_world(days=1).client.check_copies("fin.sales")
