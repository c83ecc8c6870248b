"""Products of different grains that build on each other, from plan to publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errata.errors import PlanRefused, ValidationRejected
from errata.model.partition import Grain, expand_range
from support.graph_world import PRODUCTS, GraphWorld, daily
from support.memory_invariants import assert_memory_invariants

Make = Callable[..., GraphWorld]


@pytest.fixture
def make_graph(tmp_path: Path) -> Iterator[Make]:
    """Makes a project of four products; every invariant is checked in the end."""
    made: list[GraphWorld] = []

    def make(**options: Any) -> GraphWorld:
        made.append(GraphWorld.make(tmp_path / f"graph{len(made)}", **options))
        return made[-1]

    yield make
    for world in made:
        world.client.close()
        assert_memory_invariants(world.root, world.lake)


@pytest.mark.parametrize("text_days", [False, True])
def test_a_late_hour_is_corrected_through_day_and_month(make_graph: Make, text_days: bool) -> None:
    """A day is computed from its 24 hours, a month from its days, and the gate reconciles each with what it read."""
    world = make_graph(text_days=text_days)
    world.change("2026-01-31T05", 1000)
    assert not world.is_right("ops.hourly")
    world.correct("ops.hourly", "2026-01-31T05")
    plan = world.correct("ops.daily", "2026-01-31")
    assert plan.inputs[0].partitions == expand_range(Grain.HOUR, "2026-01-31T00", "2026-02-01T00")
    assert plan.inputs[0].grain == "hour"
    plan = world.correct("ops.monthly", "2026-01")
    assert plan.inputs[0].partitions == expand_range(Grain.DAY, "2026-01-01", "2026-02-01")
    if not text_days:
        world.correct("ops.rolling", "2026-01-31..2026-02-02")
        assert world.is_right("ops.rolling")
    assert all(world.is_right(name) for name in ("ops.hourly", "ops.daily", "ops.monthly"))


def test_a_look_back_of_hours_reaches_into_the_day_before(make_graph: Make) -> None:
    """Look-back is counted in partitions of the input, where those are narrower."""
    product = PRODUCTS["daily"].replace("grain: hour}\n", "grain: hour, lookback: 2h}\n")
    world = make_graph(products={"daily": product.replace("reconcile", "# reconcile")})
    plan = world.client.plan("ops.daily", partitions="2026-02-01", reason="late", as_="ana", dry_run=True)
    assert plan.inputs[0].partitions == expand_range(Grain.HOUR, "2026-01-31T22", "2026-02-02T00")


def test_a_missing_hour_is_named_and_a_day_without_any_hour_is_refused(make_graph: Make) -> None:
    """An hour without rows is ordinary; a day of which nothing is there would be emptied."""
    world = make_graph()
    hours = world.lake.table("lake.ops.hourly")
    hours.remove_where(lambda row: row["at"].isoformat() != "2026-01-31T05:00:00+00:00")
    plan = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana", dry_run=True)
    (said,) = (one for one in plan.verdicts if one.rule == "source-missing")
    assert (said.level, said.message) == ("warn", "hours: 1 of 24 hours missing: 2026-01-31T05")
    hours.remove_where(lambda row: row["at"].day != 31)
    with pytest.raises(PlanRefused, match="hours: 24 of 48 hours missing: 2026-01-31T00 … 2026-01-31T23;") as refused:
        world.client.plan("ops.daily", partitions="2026-01-31..2026-02-01", reason="late", as_="ana")
    assert "--partitions 2026-02-01 " in (refused.value.hint or "")


def test_a_lost_hour_is_found_by_the_reconciliation_of_the_day(make_graph: Make) -> None:
    """Rows of the input are grouped by the product's partition, whatever their own."""
    world = make_graph()
    world.transforms["ops.daily"] = lambda ctx, hours: daily(ctx, hours.slice(1))
    plan = world.client.plan("ops.daily", partitions="2026-01-31", reason="late", as_="ana")
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    with pytest.raises(ValidationRejected, match="total"):
        world.client.validate(plan.id, as_="ana")


def test_a_day_may_read_the_month_that_it_is_in(make_graph: Make) -> None:
    """A wider input is read once for all days of its month."""
    share = """
product: ops.rolling
owner: ops
target: {table: lake.ops.rolling, partition: {column: day, grain: day}}
transform: {call: "transforms.graph:rolling", version: 1.0.0}
inputs:
  days: {table: lake.ops.daily, partition: day}
  months: {table: lake.ops.monthly, partition: month, grain: month}
"""
    world = make_graph(products={"rolling": share})
    seen = {}

    def rolling(_ctx: Any, days: Any, months: Any) -> list[dict[str, Any]]:
        seen.update({row["month"]: row["amount"] for row in months.to_pylist()})
        return [{"day": row["day"], "amount": seen[str(row["day"])[:7]]} for row in days.to_pylist()]

    world.transforms["ops.rolling"] = rolling
    plan = world.correct("ops.rolling", "2026-01-31..2026-02-01")
    assert [one.partitions for one in plan.inputs] == [("2026-01-31", "2026-02-01"), ("2026-01", "2026-02")]
    totals = {row["month"]: row["amount"] for row in world.expect()["ops.monthly"]}
    assert seen == totals
    held = {str(row["day"]): row["amount"] for row in world.rows("ops.rolling")}
    assert (held["2026-01-31"], held["2026-02-01"]) == (totals["2026-01"], totals["2026-02"])
