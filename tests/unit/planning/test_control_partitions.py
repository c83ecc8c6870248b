"""Control partitions are chosen while planning and sealed; what other runs hold is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.product import Control
from errata.planning.build import Plan
from errata.ports.tables import ActiveRun, PartitionSize
from unit.planning.worlds import PRODUCT, TARGET, ask, plan

CONTROLLED = replace(PRODUCT, control=(Control("rows", "count(*)", reach=2), Control("gross", "sum(gross)", reach=3)))


def _controls(made: Plan) -> dict[str, tuple[str, ...]]:
    assert made.manifest is not None, made.verdicts
    return dict(made.manifest.control_partitions)


def _other(made: Plan, run_id: str = "bf-other") -> ActiveRun:
    return ActiveRun(run_id, made.digest, "planned", TARGET.table, frozenset(made.partitions))


def test_controls_exist_and_lie_outside_the_scope() -> None:
    """The same weekdays as far as the widest rule reaches, without those of the scope and those that never were."""
    made = plan(ask(partitions="2026-01-14..2026-01-15,2026-01-21"), product=CONTROLLED)
    assert _controls(made) == {
        "2026-01-14": ("2026-01-07", "2026-01-28"),
        "2026-01-15": ("2026-01-01", "2026-01-08", "2026-01-22", "2026-01-29"),
        "2026-01-21": ("2026-01-07", "2026-01-28"),
    }


def test_a_partition_without_rows_is_no_control() -> None:
    """An empty Wednesday is not a usual one."""
    target = replace(TARGET, partitions={**TARGET.partitions, "2026-01-07": PartitionSize(0, 0, 0)})
    made = plan(ask(partitions="2026-01-14"), product=CONTROLLED, target=target)
    assert _controls(made) == {"2026-01-14": ("2026-01-21", "2026-01-28")}


def test_what_another_active_run_holds_is_no_control() -> None:
    """It is about to be replaced, so nobody trusts it."""
    other = _other(plan(ask(partitions="2026-01-07..2026-01-08"), product=CONTROLLED))
    made = plan(ask(partitions="2026-01-14"), product=CONTROLLED, active_runs=[other])
    assert _controls(made) == {"2026-01-14": ("2026-01-21", "2026-01-28")}


@pytest.mark.parametrize("first", ["alone", "beside"])
def test_the_same_plan_finds_its_own_run_whoever_came_first(first: str) -> None:
    """A run that was planned later does not turn a repeated plan into another."""
    request = ask(partitions="2026-01-14")
    other = _other(plan(ask(partitions="2026-01-07"), product=CONTROLLED))
    made = plan(request, product=CONTROLLED, active_runs=[other] if first == "beside" else [])
    again = plan(request, product=CONTROLLED, active_runs=[other, _other(made, "bf-mine")])
    assert (again.same_as, again.digest) == ("bf-mine", made.digest)


def test_products_without_controls_seal_none() -> None:
    """Nothing is looked for that no rule asks for."""
    assert _controls(plan()) == {}
