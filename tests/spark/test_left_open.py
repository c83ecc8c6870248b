"""Publications that were left open, and ledgers that were set back: what the table says counts, nothing is guessed."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

import errata
from errata.errors import PublishConflict
from errata.failpoints import arm
from support.world import TABLE, World

Make = Callable[..., World]


class _Died(BaseException):
    """The process ends here, as far as the command can tell."""


def _die() -> None:
    raise _Died


def test_a_publication_whose_traces_have_expired_is_known_by_its_files(make_world: Make) -> None:
    """Died after the commit, and nobody came for weeks: tag and snapshot are gone, and it can still be rolled back."""
    world = make_world(days=2)
    run = world.to("validated")
    with arm("publish.after_commit", _die), pytest.raises(_Died):
        world.client.publish(run, as_="bo")
    world.live("2026-02-01")
    world.sql(f"ALTER TABLE {TABLE} DROP TAG `errata_{run}-p1_pub`")
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => TIMESTAMP '2099-01-01 00:00:00', "
        "retain_last => 1)"
    )
    assert world.client.publish(run, as_="bo").already
    assert world.rows()[:-1] == world.expected()
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows()[:-1] == world.wrong()


@pytest.mark.slow
def test_a_ledger_that_was_set_back_does_not_take_another_publication_for_its_own(make_world: Make) -> None:
    """One day was published and forgotten with the ledger; the other day is published under an id of its own."""
    world = make_world(days=2)
    run = world.to("validated")
    world.client.close()
    ledger, copy = world.root / ".errata/ledger.db", world.root / "copy.db"
    shutil.copy(ledger, copy)
    world.client = errata.open(str(world.root), spark=world.spark, narrate=world.said.append)
    world.client.publish(run, partitions=world.days[0], as_="bo")
    world.client.close()
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()
    shutil.copy(copy, ledger)
    world.client = errata.open(str(world.root), spark=world.spark, narrate=world.said.append)
    with pytest.raises(PublishConflict, match="older copy"):
        world.client.publish(run, partitions=world.days[1], as_="bo")
    assert world.rows() == sorted([*world.expected(world.days[:1]), *world.wrong(world.days[1:])])
    with pytest.raises(PublishConflict, match="written by someone else"):
        world.client.publish(run, as_="bo")
    assert world.client.publish(run, partitions=world.days[1], as_="bo").publication_id.endswith("-p2")
    assert world.rows() == world.expected()
    # the checker finds what the older copy does not know; that is told, and was the point
    world.sql(f"DROP TABLE {TABLE}")
    world.create("day", {})


@pytest.mark.slow
def test_an_open_publication_on_a_table_that_is_gone_does_not_stop_other_commands(make_world: Make) -> None:
    """Nobody can tell what became of it; cleanup says so and sees to the rest."""
    world = make_world(days=1)
    run = world.to("validated")
    with arm("publish.after_intent", _die), pytest.raises(_Died):
        world.client.publish(run, as_="bo")
    world.sql(f"DROP TABLE {TABLE}")
    world.client.cleanup(as_="ana")
    assert f"WARNING: publish {run}-p1 was left open" in world.said[-1]
    assert world.client.status(run).state == "publishing"
    world.create("day", {})
    world.client.cleanup(as_="ana")
    assert world.client.status(run).state == "validated"
