"""A frozen scope beside live writers that ask, and beside one that does not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

import errata.live
from errata.errors import Frozen, PublishConflict
from errata.failpoints import arm
from support.attached import start
from support.waves import in_waves
from support.world import PRODUCT_FILE, TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
FREEZES = PRODUCT_FILE.replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: freeze")


def test_live_jobs_that_ask_are_held_off_until_the_publication_and_then_write(world_at: WorldAt) -> None:
    """From the first run to the commit; the live row that waited stands on the corrected day."""
    world, run = world_at("approved", days=2, product=FREEZES)
    assert errata.live.frozen(world.client, TABLE) == ()
    world.client.run(run, as_="ana")
    for step in (lambda: world.client.validate(run, as_="ana"), lambda: world.client.publish(run, as_="bo")):
        (freeze,) = errata.live.frozen(world.client, TABLE, [world.days[0]])
        assert (freeze.run_id, freeze.partitions) == (run, world.days[:1])
        assert world.client.status(run).freeze is not None
        with pytest.raises(Frozen), errata.live.writing(world.client, TABLE, [world.days[0]]):
            pytest.fail("the body ran")
        step()
    with errata.live.writing(world.client, TABLE, [world.days[0]]):
        world.live(world.days[0])
    assert [row for row in world.rows() if row[1] != "live"] == world.expected()
    assert len([row for row in world.rows() if row[1] == "live"]) == 1
    assert world.client.status(run).freeze is None


def test_a_live_write_between_plan_and_freeze_is_told_before_anything_is_computed(world_at: WorldAt) -> None:
    """Exit 5 with the conflict's own words; live jobs are not held off for a run that cannot publish."""
    world, run = world_at("approved", days=2, product=FREEZES)
    world.live(world.days[1])
    with pytest.raises(PublishConflict) as conflict:
        world.client.run(run, as_="ana")
    assert conflict.value.fields["partitions"] == [world.days[1]]
    assert "--supersede" in (conflict.value.hint or "")
    assert world.client.status(run).state == "approved"
    assert world.ledger.progress.attempts(run) == ()
    assert errata.live.frozen(world.client, TABLE) == ()


def test_each_wave_is_frozen_from_its_first_chunk_to_its_publication(world_at: WorldAt) -> None:
    """A live job writes the day of the next wave meanwhile, and that wave is refused before it is computed."""
    world, run = world_at("approved", days=2, chunk_bytes="1", product=in_waves("size: 1", FREEZES))
    world.client.run(run, max_chunks=1, as_="ana")
    assert [one.partitions for one in errata.live.frozen(world.client, TABLE)] == [world.days[1:]]
    with errata.live.writing(world.client, TABLE, [world.days[0]]):
        world.live(world.days[0])
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert errata.live.frozen(world.client, TABLE) == ()
    with pytest.raises(PublishConflict, match=world.days[0]) as refused:
        world.client.run(run, as_="ana")
    assert str(refused.value.state).startswith("wave 2 is not computed")
    assert errata.live.frozen(world.client, TABLE) == ()
    assert [row for row in world.rows() if row[0] == world.days[1]] == world.expected([world.days[1]])


@pytest.mark.slow
def test_a_writer_that_does_not_ask_is_a_conflict_as_ever(world_at: WorldAt) -> None:
    """A freeze saves time and replaces no check; the error says that someone did not ask."""
    world, run = world_at("validated", days=1, product=FREEZES)
    with arm("publish.before_commit", lambda: world.live(world.days[0])), pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [world.days[0]]
    assert "does not ask" in (conflict.value.hint or "")
    assert len([row for row in world.rows() if row[1] == "live"]) >= 1


def test_a_run_that_starts_while_a_live_job_writes_waits_and_finds_what_it_wrote(world_at: WorldAt) -> None:
    """No window in which both go: the row is there before the freeze holds, and the run is refused for it."""
    world, run = world_at("approved", days=1, product=FREEZES)
    refused: list[BaseException] = []

    def correct() -> None:
        try:
            world.client.run(run, as_="ana")
        except PublishConflict as error:
            refused.append(error)

    with errata.live.writing(world.client, TABLE, world.days, name="daily"):
        other = threading.Thread(target=correct)
        other.start()
        while not any("waiting for live jobs" in line for line in world.said):
            threading.Event().wait(0.02)
        world.live(world.days[0])
    other.join(60)
    assert len(refused) == 1


def test_killed_right_after_the_freeze_opened_the_same_command_goes_on(world_at: WorldAt) -> None:
    """Live jobs are held off meanwhile, for freeze.idle at most; the run is published once."""
    world, run = world_at("approved", days=1, product=FREEZES)
    place = ("-C", str(world.root), "--as", "ana")
    process = start(world.spark, *place, "run", run, ERRATA_FAILPOINTS="freeze.after_open=kill")
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, error
    assert [one.run_id for one in errata.live.frozen(world.client, TABLE)] == [run]
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    assert errata.live.frozen(world.client, TABLE) == ()
