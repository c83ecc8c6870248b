"""``kill -9`` where a publication concerns two tables: what follows the commit is done once, by the next command."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from spark import test_modes as modes
from support.attached import start
from support.world import World
from support.worlds import WorldAt

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        "corrections.before_commit",
        "publish.after_record",
        "deliver.after_pay",
    ],
)
def test_killed_before_the_correction_rows_the_next_command_writes_them_once(world_at: WorldAt, point: str) -> None:
    """The publication stands; its corrections are there once, whichever step was cut off."""
    world, run = world_at("validated", days=1, product=modes.BESIDE)
    _killed(world, point, "publish", run, "--yes", person="bo")
    assert world.rows() == world.expected()
    assert any("still owed after " in warning for warning in world.client.status(run).warnings)
    world.client.deliver(as_="ana")
    assert modes.told(world, world.publication(run)) == modes.corrected(world, world.days)
    assert world.ledger.outbox.list_open() == ()
    assert world.client.publish(run, as_="bo").already
    assert modes.told(world, world.publication(run)) == modes.corrected(world, world.days)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["rollback.after_record", "corrections.before_commit", "deliver.after_pay"])
def test_killed_before_the_reverse_rows_the_next_command_writes_them_once(world_at: WorldAt, point: str) -> None:
    """A rollback owes the opposite of what was told."""
    world, run = world_at("published", days=1, product=modes.BESIDE)
    _killed(world, point, "rollback", run, "--reason", "undo", "--yes", person="bo")
    assert world.rows() == world.wrong()
    world.client.deliver(as_="ana")
    assert len(modes.told(world, world.publication(run, 2))) == len(modes.corrected(world, world.days))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["publish.after_intent", "publish.before_commit", "publish.after_commit"])
@pytest.mark.parametrize("product", [modes.ALONE, modes.VERSION], ids=["corrections", "version"])
def test_killed_around_an_append_beside_the_target_it_lands_once(make_world: Make, product: str, point: str) -> None:
    """The same command again: what had landed is found, what had not is closed behind a fence and done anew."""
    world = make_world(days=1, product=product)
    before, run = world.rows(), world.to("validated")
    _killed(world, point, "publish", run, "--yes", person="bo")
    view = world.client.publish(run, as_="bo")
    assert view.already == (point == "publish.after_commit")
    assert world.rows() == before
    if product == modes.VERSION:
        assert modes.accepted(world) == world.expected()
        assert len(modes.versions(world)) == len(world.expected())
    else:
        assert modes.told(world, view.publication_id) == modes.corrected(world, world.days)
        assert len(world.sql(f"SELECT * FROM {modes.CORRECTIONS}")) == len(world.expected())


@pytest.mark.slow
def test_killed_before_the_view_was_replaced_the_next_command_replaces_it(world_at: WorldAt) -> None:
    """The version is accepted; readers of the view see it when any command has looked."""
    world, run = world_at("validated", days=1, product=modes.VERSION)
    _killed(world, "publish.after_record", "publish", run, "--yes", person="bo")
    assert not modes.is_there(world, modes.VIEW)
    world.client.deliver(as_="ana")
    assert modes.accepted(world) == world.expected()


def _killed(world: World, point: str, *arguments: str, person: str) -> None:
    process = start(
        world.spark, "-C", str(world.root), "--as", person, *arguments, ERRATA_FAILPOINTS=f"{point}=kill"
    )  # fmt: skip
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"
