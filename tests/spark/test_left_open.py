"""Publications that were left open: what the table says counts, nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.failpoints import arm
from errata.model.refs import pub_tag
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]


class _Died(BaseException):
    """The process ends here, as far as the command can tell."""


def _die() -> None:
    raise _Died


def test_a_publication_whose_traces_have_expired_is_known_by_its_files(world_at: WorldAt) -> None:
    """Died after the commit, and nobody came for weeks: tag and snapshot are gone, and it can still be rolled back."""
    world, run = world_at("validated", days=2)
    with arm("publish.after_commit", _die), pytest.raises(_Died):
        world.client.publish(run, as_="bo")
    world.live("2026-02-01")
    world.sql(f"ALTER TABLE {TABLE} DROP TAG `{pub_tag(world.publication(run))}`")
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => TIMESTAMP '2099-01-01 00:00:00', "
        "retain_last => 1)"
    )
    assert world.client.publish(run, as_="bo").already
    assert world.rows()[:-1] == world.expected()
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows()[:-1] == world.wrong()


@pytest.mark.slow
def test_an_open_publication_on_a_table_that_is_gone_does_not_stop_other_commands(world_at: WorldAt) -> None:
    """Nobody can tell what became of it; cleanup says so and sees to the rest."""
    world, run = world_at("validated", days=1)
    with arm("publish.after_intent", _die), pytest.raises(_Died):
        world.client.publish(run, as_="bo")
    world.sql(f"DROP TABLE {TABLE}")
    world.client.cleanup(as_="ana")
    assert f"WARNING: publish {world.publication(run)} was left open" in world.said[-1]
    assert world.client.status(run).state == "publishing"
    world.create("day", {})
    world.client.cleanup(as_="ana")
    assert world.client.status(run).state == "validated"
