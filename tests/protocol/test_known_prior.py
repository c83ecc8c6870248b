"""Numbers of the prior output are taken from an earlier gate only where its very files are still there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from errata.ports.measure import PRIOR, ROW_COUNT
from errata.testing.metadata import Field
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

Make = Callable[..., World]
COMPARED = PRODUCT_FILE.replace("checks:", "compare:\n  - {name: count, metric: sum(n), warn: 500%}\nchecks:")


def _reused(world: World, run: str) -> dict[str, str]:
    """What the audit says was taken from elsewhere."""
    (entry,) = (one for one in world.client.audit_log(run) if one.action == "candidate.measured")
    found: dict[str, str] = entry.body.get("reused", {})
    return found


def _prior(world: World, run: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in world.ledger.candidates.measurements(run, 1):
        if one.scope == PRIOR:
            found.setdefault(one.partition, {})[one.name] = one.value
    return found


def _truth(world: World) -> dict[str, dict[str, Any]]:
    """Rows and the sum of n of each day, counted here."""
    rows = {day: [n for name, _, _, n in world.rows() if name == day] for day in world.days}
    return {day: {ROW_COUNT: str(len(held)), "compare.count": str(sum(held))} for day, held in rows.items()}


def test_a_second_correction_takes_the_numbers_of_the_first_as_its_prior(make_world: Make) -> None:
    """The first run's files are the prior output of the second, whose audit names the run the numbers come from."""
    world = make_world(days=3, product=COMPARED)
    first = world.to("published")
    assert _reused(world, first) == {}
    truth = _truth(world)
    second = world.to("validated", reason="again")
    assert _reused(world, second) == {first: f"{world.days[0]} … {world.days[-1]}"}
    assert _prior(world, second) == truth


def test_a_partition_that_anyone_wrote_since_is_measured_again(make_world: Make) -> None:
    """Live rows, a compaction and delete files each change the files of a partition, so its numbers are not known."""
    world = make_world(days=4, product=COMPARED)
    first = world.to("published")
    world.live(world.days[0])
    world.table.compact(world.days[1])
    world.table.delete(world.days[2], account=world.rows()[0][1])
    truth = _truth(world)
    second = world.to("validated", reason="again")
    assert _reused(world, second) == {first: world.days[3]}
    assert _prior(world, second) == truth


def test_numbers_of_another_rule_are_not_taken_for_this_one(make_world: Make) -> None:
    """A rule of the same name with other SQL measures something else."""
    world = make_world(days=2, product=COMPARED)
    world.to("published")
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("metric: sum(n)", "metric: sum(n + 0)"))
    world.open()
    truth = _truth(world)
    second = world.to("validated", reason="again")
    assert _reused(world, second) == {}
    assert _prior(world, second) == truth


def test_under_another_schema_the_prior_is_measured_again(make_world: Make) -> None:
    """A column that was dropped and added again has the same name, and is not the column that was measured."""
    world = make_world(days=2, product=COMPARED)
    world.to("published")
    world.table.change_columns(lambda fields: [Field(0, f.name, f.type) if f.name == "n" else f for f in fields])
    assert _reused(world, world.to("validated", reason="again")) == {}


def test_after_a_rollback_the_numbers_are_those_of_the_run_that_is_current_again(make_world: Make) -> None:
    """The rolled-back run's numbers are not the prior's, although it was the last to publish."""
    world = make_world(days=2, product=COMPARED)
    first = world.to("published")
    second = world.to("published", reason="again")
    world.client.rollback(second, reason="wrong", as_="bo")
    third = world.to("validated", reason="once more")
    assert _reused(world, third) == {first: f"{world.days[0]} … {world.days[-1]}"}
    assert _prior(world, third) == _truth(world)


def test_a_row_count_alone_needs_no_numbers_of_another_run(make_world: Make) -> None:
    """Without a comparison the prior is counted from table metadata, and nothing is reused."""
    world = make_world(days=2)
    world.to("published")
    assert _reused(world, world.to("validated", reason="again")) == {}
