"""What depends on some partitions: `errata impact`, the same part of a plan, and wrong projects."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errata.errors import NotFound, UsageError
from errata.wiring.check import check_workspace
from support.graph_world import PRODUCTS, GraphWorld

REAL = Path(__file__).parents[1] / "support/dbt/manifest.json"
DBT = "dbt: {manifest: analytics/target/manifest.json}\n"
Make = Callable[..., GraphWorld]


@pytest.fixture
def make_graph(tmp_path: Path) -> Iterator[Make]:
    """Makes a project of four products, with dbt's manifest in its place."""
    made: list[GraphWorld] = []

    def make(**options: Any) -> GraphWorld:
        root = tmp_path / f"graph{len(made)}"
        (root / "analytics/target").mkdir(parents=True)
        shutil.copy(REAL, root / "analytics/target/manifest.json")
        made.append(GraphWorld.make(root, **options))
        return made[-1]

    yield make
    for world in made:
        world.client.close()


def test_an_hour_is_followed_to_months_models_dashboards_and_people(make_graph: Make) -> None:
    """Every product with the partitions that its table has, and everything of dbt that reads one of the tables."""
    world = make_graph(project=DBT)
    view = world.client.impact("ops.hourly", partitions="2026-02-01T23,2026-02-02T00")
    found = {one.product: one for one in view.products}
    assert {name: one.partitions for name, one in found.items()} == {
        "ops.daily": ("2026-02-01", "2026-02-02"),
        "ops.monthly": ("2026-02",),
        "ops.rolling": ("2026-02-01", "2026-02-02"),
    }
    assert found["ops.rolling"].absent == ("2026-02-03", "2026-02-04")
    assert [one.name for one in view.dbt] == ["stg_daily", "fct_load", "rpt_week"]
    assert view.dbt[1].event_time == "day"
    assert {(one.name, one.owner) for one in view.exposures} == {
        ("Load dashboard", "Ops analytics"), ("board_deck", "board@example.org"),
    }  # fmt: skip
    assert view.consumers == ("status page", "board report")
    assert view.notes == ()


def test_an_input_that_is_read_whole_touches_every_partition_that_is_there(make_graph: Make) -> None:
    """All is a list of partitions and a reason."""
    whole = PRODUCTS["rolling"].replace("partition: day, lookback: 2d", "reference: current")
    world = make_graph(products={"rolling": whole})
    view = world.client.impact("ops.daily", "2026-02-01", "2026-02-02")
    (rolling,) = (one for one in view.products if one.product == "ops.rolling")
    assert (rolling.all, rolling.partitions) == (True, ("2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"))
    assert rolling.reads[0].because == "input days is read whole"


def test_own_output_touches_the_later_partitions_that_are_there(make_graph: Make) -> None:
    """The corrected partitions themselves are the change, not its impact."""
    own = PRODUCTS["rolling"].replace("lookback: 2d}", "lookback: 2d}\n  before: {own: true, lookback: 1d}")
    world = make_graph(products={"rolling": own})
    view = world.client.impact("ops.rolling", "2026-01-31", "2026-02-01")
    (rolling,) = view.products
    assert (rolling.since, rolling.partitions) == ("2026-02-01", ("2026-02-01", "2026-02-02"))


def test_a_plan_says_what_it_touches_and_seals_nothing_of_it(make_graph: Make) -> None:
    """Another product that reads the table changes the answer and not the digest that is approved."""
    world = make_graph(products={"rolling": ""}, project=DBT)
    plan = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana")
    assert plan.touches is not None
    assert [one.product for one in plan.touches.products] == ["ops.monthly"]
    world.write("products/rolling.yaml", PRODUCTS["rolling"])
    again = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana")
    assert again.touches is not None
    assert [one.product for one in again.touches.products] == ["ops.monthly", "ops.rolling"]
    assert (again.already, again.digest) == (True, plan.digest)
    shown = world.client.show(plan.id)
    assert shown.touches == again.touches
    assert [one.name for one in again.touches.dbt] == ["stg_daily", "fct_load", "rpt_week"]


def test_a_plan_does_not_depend_on_the_manifest_of_dbt(make_graph: Make) -> None:
    """Impact is advice: what is wrong with it is a note, and `errata impact` refuses."""
    world = make_graph(project=DBT)
    (world.root / "analytics/target/manifest.json").unlink()
    plan = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana", dry_run=True)
    assert plan.touches is not None
    assert [one.product for one in plan.touches.products] == ["ops.monthly", "ops.rolling"]
    assert "manifest.json was not found" in plan.touches.notes[0]
    with pytest.raises(NotFound, match=r"manifest\.json was not found"):
        world.client.impact("ops.daily", partitions="2026-01-31")


def test_a_table_that_cannot_be_read_is_a_note(make_graph: Make) -> None:
    """Its partitions are then those that would be touched, and the note says so."""
    world = make_graph()
    del world.lake.tables["lake.ops.rolling"]
    view = world.client.impact("ops.daily", partitions="2026-02-02")
    (rolling,) = (one for one in view.products if one.product == "ops.rolling")
    assert (rolling.located, rolling.partitions) == (False, ("2026-02-02", "2026-02-03", "2026-02-04"))
    assert "which partitions ops.rolling has is not known" in view.notes[0]


def test_an_unknown_product_and_a_missing_scope_are_refused(make_graph: Make) -> None:
    """With the nearest name, and the form that works."""
    world = make_graph()
    with pytest.raises(NotFound, match=r"product 'ops\.dayly' is not in this project") as refused:
        world.client.impact("ops.dayly", partitions="2026-01-31")
    assert refused.value.hint == "did you mean ops.daily?"
    with pytest.raises(UsageError, match="an impact without a scope was refused"):
        world.client.impact("ops.daily")


def test_a_cycle_of_products_is_refused_by_name(make_graph: Make) -> None:
    """`check` names the cycle and the input that closes it; impact refuses, and a plan notes it."""
    months = "  months: {table: lake.ops.monthly, partition: month, grain: month}\n"
    loop = PRODUCTS["hourly"].replace("  events:", f"{months}  events:")
    world = make_graph(products={"hourly": loop})
    problems = [one for one in check_workspace(world.workspace) if "is a cycle" in one.message]
    assert [(one.file, one.key) for one in problems] == [("products/daily.yaml", "inputs.hours.table")]
    assert "ops.daily → ops.monthly → ops.hourly → ops.daily is a cycle" in problems[0].message
    with pytest.raises(UsageError, match=r"ops\.daily → ops\.monthly → ops\.hourly → ops\.daily form a cycle"):
        world.client.impact("ops.daily", partitions="2026-01-31")
    plan = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana", dry_run=True)
    assert plan.touches is not None
    assert "form a cycle" in plan.touches.notes[0]


def test_days_as_text_need_their_grain_named(make_graph: Make) -> None:
    """A month of text days would match nothing, because the text of a day is not that of a month."""
    missing = PRODUCTS["monthly"].replace("partition: day, grain: day", "partition: day")
    world = make_graph(text_days=True, products={"monthly": missing, "rolling": ""})
    (problem,) = (one for one in check_workspace(world.workspace) if "as text" in one.message)
    assert (problem.file, problem.key) == ("products/monthly.yaml", "inputs.days.grain")
    assert "lake.ops.daily holds days as text; expected grain: day" in problem.message


def test_a_wrong_manifest_of_dbt_is_a_problem_of_the_project(make_graph: Make) -> None:
    """`check` reports it at its key."""
    world = make_graph(project=DBT)
    assert not [one for one in check_workspace(world.workspace) if one.key.startswith("dbt")]
    (world.root / "analytics/target/manifest.json").write_text("{}")
    (problem,) = (one for one in check_workspace(world.workspace) if one.key.startswith("dbt"))
    assert (problem.file, problem.key) == ("errata.yaml", "dbt.manifest")
    assert "has schema none; expected manifest v12" in problem.message
