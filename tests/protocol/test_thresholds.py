"""Thresholds that change after the gate has measured: what has to be accepted again, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import UsageError, ValidationRejected
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
COMPARED = PRODUCT_FILE + 'compare:\n  - {name: gross moved, metric: "sum(gross)", warn: 5%, block: 90%}\n'


def edit(world: MemoryWorld, old: str, new: str) -> None:
    """Change the product file and open the project again."""
    place = world.root / "products/sales.yaml"
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    world.configure("project: test", "project: test")


def test_an_acceptance_is_about_what_was_found_and_not_about_the_name_of_a_rule(make_world: Make) -> None:
    """Another threshold is another finding: the same warning has to be accepted again, by a person."""
    world = make_world(days=2, product=COMPARED)
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    assert world.client.validate(run, accept={"gross moved": "the fix halves it"}, as_="bo").passed
    assert [one["person"] for one in world.client.status(run).accepted] == ["bo"]
    edit(world, "warn: 5%", "warn: 1%")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, thresholds="stricter", as_="bo")
    assert (world.client.status(run).state, world.client.status(run).accepted) == ("needs_acceptance", ())
    assert world.client.validate(run, accept={"gross moved": "still right"}, as_="bo").passed


def test_thresholds_cannot_smuggle_in_another_measurement(make_world: Make) -> None:
    """A rule whose number would be another one is refused, and nothing changes."""
    world = make_world(days=1, product=COMPARED)
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    edit(world, 'metric: "sum(gross)"', 'metric: "count(*)"')
    with pytest.raises(UsageError, match="gross moved has another metric"):
        world.client.validate(run, thresholds="easier", as_="bo")
    assert world.client.status(run).state == "needs_acceptance"
