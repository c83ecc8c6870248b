"""Publication in waves in every mode, on real tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark import test_modes as modes
from support.clock import later
from support.waves import seen
from support.world import World

Make = Callable[..., World]


def in_two(text: str) -> str:
    """A product of another mode, two partitions at a time."""
    return text.replace("publish: {", "publish: {waves: {size: 2, pause: 1h}, ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "product", [modes.BESIDE, modes.VERSION, modes.SWAP, modes.ALONE], ids=["beside", "version", "swap_view", "alone"]
)
def test_every_mode_goes_in_waves(make_world: Make, product: str) -> None:
    """What stands beside the target, and the view of it, grow wave by wave."""
    world = make_world(days=3, product=in_two(product))
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    with later(hours=2):
        last = world.client.publish(run, as_="bo")
    assert (last.state, last.partitions) == ("published", world.days[:1])
    if product == modes.BESIDE:
        assert seen(world, world.days)
    if product in (modes.BESIDE, modes.ALONE):
        told = [row for n in (1, 2) for row in modes.told(world, world.publication(run, n))]
        assert sorted(told) == sorted(modes.corrected(world, world.days))
    if product == modes.VERSION:
        assert modes.accepted(world) == world.expected()
