"""The connection to a real PostgreSQL server breaks during the commit of a delivery: rows and markers exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from errata.delivery.payment import pay
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from support.clock import Clock, stopped_clock
from support.commit_proxy import CommitProxy, Loss
from support.copy_world import CopyWorld
from support.postgres import PostgresServer

Make = Callable[..., CopyWorld]
ACTOR = Actor("ana", "ana", "host")


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CommitProxy]:
    with CommitProxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def clock() -> Iterator[Clock]:
    with stopped_clock() as stopped:
        yield stopped


def pay_until_it_ends(world: CopyWorld, clock: Clock) -> None:
    while owed := [one for one in world.items() if one.state is ItemState.OWED]:
        clock.move(max(0.0, min(one.not_before for one in owed) / 1000 - clock.at.timestamp()))
        pay(world.lake.workspace, ACTOR, seconds=60)


@pytest.mark.parametrize("loss", ["before", "after", "late"])
def test_the_marker_tells_what_became_of_a_swap(make_world: Make, proxy: CommitProxy, clock: Clock, loss: Loss) -> None:
    """A commit that never came is repeated; one that landed, even after its client was gone, is not."""
    world = make_world(days=2, port=proxy.port)
    world.accept()

    def lose() -> None:
        if not proxy.lost:
            proxy.losses.append(loss)

    with arm("copy.before_commit", lose):
        world.lake.to("published")
        pay_until_it_ends(world, clock)
    assert proxy.lost == 1
    assert world.rows() == world.lake.expected()
    [item] = world.items()
    assert (item.state, item.attempts) == (ItemState.PAID, 2 if loss == "before" else 1)
    states = [state for publication, _, state in world.markers() if not publication.startswith("baseline")]
    assert states == (["void", "done"] if loss == "before" else ["done"])
    assert world.staging() == []


@pytest.mark.parametrize(
    "point, loss",
    [
        ("copy.after_load", "late"),
        *(
            pytest.param(point, loss, marks=pytest.mark.slow)
            for point in ("copy.after_load", "copy.after_open")
            for loss in ("before", "after", "late")
            if (point, loss) != ("copy.after_load", "late")
        ),
    ],
)
def test_any_other_lost_commit_is_followed_by_another_attempt(
    make_world: Make, proxy: CommitProxy, clock: Clock, point: str, loss: Loss
) -> None:
    """Of the marker, or of the rows: the next attempt has its own marker and its own staging table."""
    world = make_world(days=1, port=proxy.port)
    world.accept()
    lost: list[str] = []

    def lose() -> None:
        # the commit that comes next: of the marker after loading, of the swap after opening it
        if not lost:
            lost.append(point)
            proxy.losses.append(loss)

    with arm(point, lose):
        world.lake.to("published")
        pay_until_it_ends(world, clock)
    assert proxy.lost == 1
    assert world.rows() == world.lake.expected()
    assert [one.state for one in world.items()] == [ItemState.PAID]
    states = [state for publication, _, state in world.markers() if not publication.startswith("baseline")]
    assert states.count("done") == 1
    assert "open" not in states
    assert world.staging() == []
