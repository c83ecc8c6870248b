"""A candidate readable by name on a real catalog: by Spark, by pyiceberg and through the view of old and new."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from spark import test_modes as modes
from spark import test_new_columns as columns
from support.world import PRODUCT_FILE, TABLE, World

Make = Callable[..., World]
MASKED = PRODUCT_FILE + "classified: [n]\n"


def by_name(world: World, statement: str) -> list[tuple[str, str, Decimal, int]]:
    rows = world.sql(statement)
    return sorted((str(r.day), r.account, r.gross, r.n) for r in rows)


def compared(world: World, view: str, condition: str = "true") -> list[tuple[object, ...]]:
    rows = world.sql(f"SELECT day, account, change, old_gross, new_gross FROM {view} WHERE {condition}")
    return sorted(((str(r.day), *tuple(r)[1:]) for r in rows), key=str)


def test_a_candidate_is_read_by_name_and_beside_what_it_replaces(make_world: Make) -> None:
    """Before the cut-over and after it the name, the view and main are told apart; a key that is there twice is paired
    copy by copy, classified values are masked, and cleanup takes it all away."""
    world = make_world(days=3, rows=3, product=MASKED)
    first, middle, last = world.days
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'{middle}' AND account = 'a1'")
    world.live(middle, account="ghost")
    world.write_history([last])
    before = world.rows()
    run = world.to("validated", f"{middle}..{last}")
    view = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert (view.warnings, view.view) == ((), "lake.fin.errata_compare_sales_preview")
    right = sorted([*world.wrong([first]), *world.expected([middle, last])])
    assert world.rows() == before
    assert by_name(world, view.reads["Spark"]) == by_name(world, view.reads["Spark, as a table"]) == right
    assert world.rows(world.table().snapshot_by_name("preview").snapshot_id) == right
    gross = {row[:2]: row[2] for row in world.expected([middle, last])}
    expected = [(*key, "changed", 2 * new, new) for key, new in gross.items() if key != (middle, "a1")]
    expected += [
        (middle, "a1", "added", None, gross[middle, "a1"]),
        (middle, "ghost", "removed", Decimal("1.00"), None),
    ]
    expected += [(*key, "removed", 2 * new, None) for key, new in gross.items() if key[0] == last]
    found = compared(world, view.view)
    assert found == sorted(expected, key=str)
    assert compared(world, view.view, f"day = date'{last}'") == [row for row in found if row[0] == last]
    (masked,) = world.sql(f"SELECT old_n, new_n FROM {view.view} WHERE account = 'ghost'")
    assert tuple(masked) == ("•••", None)
    assert world.client.dark(run, name="preview", compare=True, as_="bo").already
    world.client.publish(run, as_="bo")
    assert compared(world, view.view) == found
    removed = {(item["table"], item["ref"]) for item in world.client.cleanup(as_="ana").removed}
    assert {(TABLE, "preview"), (TABLE, "preview_before"), (view.view, "the view itself")} <= removed
    assert not modes.is_there(world, view.view)
    assert "preview" not in world.refs()
    assert world.client.cleanup(as_="ana").removed == ()


@pytest.mark.slow
def test_a_run_with_new_columns_is_named_on_its_shadow(make_world: Make) -> None:
    """The target has no such column yet; the old side of it is NULL."""
    world = make_world(days=2, product=columns.PRODUCT, transform=columns.BUILD)
    run = world.to("validated")
    view = world.client.dark(run, compare=True, as_="bo")
    assert (view.warnings, view.table) == ((), f"lake.fin.{columns.shadows(world)[0]}")
    rows = world.sql(f"SELECT * FROM {view.view}")
    assert {(r.change, r.old_events) for r in rows} == {("changed", None)}
    assert all(r.new_events for r in rows)
    assert columns.columns(world).isdisjoint(columns.NEW)
