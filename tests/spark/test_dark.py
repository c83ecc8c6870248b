"""A candidate readable by name on a real catalog: by Spark, by pyiceberg and through the view of old and new."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException

from errata.errors import ValidationRejected
from spark import test_modes as modes
from spark import test_new_columns as columns
from support.world import PRODUCT_FILE, TABLE, World

Make = Callable[..., World]
MASKED = PRODUCT_FILE + "classified: [gross]\n"


def by_name(world: World, statement: str) -> list[tuple[str, str, Decimal, int]]:
    rows = world.sql(statement)
    return sorted((str(r.day), r.account, r.gross, r.n) for r in rows)


def compared(world: World, view: str, condition: str = "true") -> dict[tuple[str, str], tuple[str, object, object]]:
    rows = world.sql(f"SELECT * FROM {view} WHERE {condition}")
    return {(str(r.day), r.account): (r.change, r.old_gross, r.new_gross) for r in rows}


def test_a_candidate_is_read_by_name_and_beside_what_it_replaces(make_world: Make) -> None:
    """Before the cut-over and after it: the name, the view, and main are told apart; cleanup takes both away."""
    world = make_world(days=3, rows=4)
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'{world.days[1]}' AND account = 'a1'")
    world.live(world.days[1], account="ghost")
    before = world.rows()
    run = world.to("validated", f"{world.days[1]}..{world.days[2]}")
    view = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert view.warnings == ()
    right = sorted([*world.wrong(world.days[:1]), *world.expected(world.days[1:])])
    assert world.rows() == before
    assert by_name(world, view.reads["Spark"]) == by_name(world, view.reads["Spark, as a table"]) == right
    assert world.rows(world.table().snapshot_by_name("preview").snapshot_id) == right
    assert view.view == "lake.fin.errata_compare_sales_preview"
    found = compared(world, view.view)
    assert found[world.days[1], "a1"][:2] == ("added", None)
    assert found[world.days[1], "ghost"] == ("removed", Decimal("1.00"), None)
    changed = {key: (old, new) for key, (change, old, new) in found.items() if change == "changed"}
    assert len(changed) == 7
    assert all(old == 2 * new for old, new in changed.values())
    assert compared(world, view.view, f"day = date'{world.days[2]}'").keys() == {
        (world.days[2], f"a{n}") for n in range(4)
    }
    again = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert again.already
    world.client.publish(run, as_="bo")
    assert compared(world, view.view) == found
    removed = {(item["table"], item["ref"]) for item in world.client.cleanup(as_="ana").removed}
    assert {(TABLE, "preview"), (TABLE, "preview_before"), (view.view, "the view itself")} <= removed
    assert not modes.is_there(world, view.view)
    assert "preview" not in world.refs()
    assert world.client.cleanup(as_="ana").removed == ()


def test_a_key_that_is_there_twice_is_paired_copy_by_copy(make_world: Make) -> None:
    """A live job that wrote a day twice: each copy is told once, and classified values are not."""
    world = make_world(days=1, rows=2, product=MASKED)
    world.write_history(world.days)
    run = world.to("validated")
    view = world.client.dark(run, as_="bo")
    rows = world.sql(view.comparison or "")
    assert sorted((r.account, r.change) for r in rows) == [
        ("a0", "changed"), ("a0", "removed"), ("a1", "changed"), ("a1", "removed"),
    ]  # fmt: skip
    assert {r.old_gross for r in rows} == {"•••"}
    assert {r.new_gross for r in rows} == {"•••", None}
    assert {r.new_n for r in rows} == {2, None}


@pytest.mark.slow
def test_a_rejected_candidate_has_a_name_that_says_so_until_it_passes(make_world: Make) -> None:
    """It is readable to find out why; once accepted, the name that says rejected is gone."""
    product = PRODUCT_FILE.replace("checks:", "compare:\n  - {metric: sum(gross), warn: 5%}\nchecks:")
    world = make_world(days=2, product=product)
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    view = world.client.dark(run, rejected=True, compare=True, as_="bo")
    assert view.name.endswith("_dark_rejected")
    assert by_name(world, view.reads["Spark"]) == world.expected()
    world.client.validate(run, accept={"sum(gross)": "the bug doubled it"}, as_="bo")
    assert view.name not in world.refs()
    with pytest.raises(AnalysisException):
        world.sql(f"SELECT * FROM {view.view}")


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
