"""Freezes of waves: each opens when its wave is computed, counts its own time, and ends with its wave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import errata.live
from errata.errors import Frozen, PublishConflict, ValidationRejected
from errata.failpoints import arm
from support.clock import later
from support.memory_world import MemoryWorld as World
from support.memory_world import build
from support.terminal import paste
from support.waves import ALONE, in_waves, seen
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., World]
ONE_DAY = "1"


def freezing(settings: str, product: str = PRODUCT_FILE) -> str:
    """The product in waves, which keep live jobs out."""
    found = in_waves(settings, product)
    return found.replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: freeze")


def frozen(world: World) -> set[str]:
    return {name for one in errata.live.frozen(world.client, TABLE) for name in one.partitions}


def test_a_freeze_opens_when_its_wave_starts_computing(make_world: Make) -> None:
    """Live jobs write the days of later waves meanwhile; what is computed stays frozen until it is out."""
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=freezing("size: 1"))
    run = world.to("approved")
    assert frozen(world) == set()
    world.client.run(run, max_chunks=1, as_="ana")
    assert frozen(world) == {world.days[2]}
    with errata.live.writing(world.client, TABLE, world.days[:2]):
        pass
    with pytest.raises(Frozen), errata.live.writing(world.client, TABLE, [world.days[2]]):
        pytest.fail("the body ran")
    world.client.run(run, max_chunks=1, as_="ana")
    assert frozen(world) == set(world.days[1:])
    shown = world.client.status(run).freeze
    assert shown is not None
    assert shown.partitions == world.days[1:]
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert frozen(world) == {world.days[1]}


def test_the_longest_time_of_a_freeze_counts_by_wave(make_world: Make) -> None:
    """The first wave has waited for a person longer than allowed; the second one is frozen all the same."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=freezing("size: 1"))
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    with later(hours=9):
        world.client.run(run, max_chunks=1, as_="ana")
        assert frozen(world) == {world.days[0]}
        assert any(f"the freeze of wave 1 of {run} expired" in line for line in world.said)
    opened = world.ledger.freezes.list(run)
    assert [one.wave for one in opened] == [1, 2]
    assert opened[1].most_until - opened[0].most_until >= 8 * 3_600_000


def test_every_command_of_the_run_renews_the_freezes_of_all_its_waves(make_world: Make) -> None:
    """A wave that waits for a person stays frozen while the next ones are computed."""
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=freezing("size: 1"))
    run = world.to("approved")
    for hours in (0, 0.9, 1.8):
        with later(hours=hours):
            world.client.run(run, max_chunks=1, as_="ana")
    with later(hours=2.5):
        assert frozen(world) == set(world.days)


def test_a_wave_that_live_jobs_wrote_before_its_freeze_is_not_computed(make_world: Make) -> None:
    """The waves before it go out; the command ends with the conflict, and its hint plans the rest again."""
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=freezing("size: 1, release: none", ALONE))
    run = world.to("approved")
    world.live(world.days[1])
    with pytest.raises(PublishConflict) as refused:
        world.client.run(run, publish=True, as_="cy")
    assert refused.value.fields["partitions"] == [world.days[1]]
    assert "wave 2 is not computed; waves that are out stay" in str(refused.value.state)
    assert [wave.state for wave in world.client.status(run).waves] == ["published", "computing", "computing"]
    assert frozen(world) == set()
    assert [one.partitions for one in world.ledger.progress.attempts(run)] == [world.days[2:]]
    hint = str(refused.value.hint)
    assert f"--partitions {world.days[0]}..{world.days[1]} --supersede {run}" in hint
    assert paste(world, hint.replace("errata", "errata --as ana", 1))[0] == 0


def test_chunks_in_flight_finish_when_the_next_wave_is_refused(make_world: Make) -> None:
    """Otherwise the same command would begin them again each time, and never end."""
    begun, refused = threading.Event(), threading.Event()

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        begun.set()
        assert refused.wait(60)
        return build(ctx, raw)

    world = make_world(days=2, chunk_bytes=ONE_DAY, product=freezing("size: 1"), transform=transform)
    run = world.to("approved")
    world.live(world.days[0])
    found: list[PublishConflict] = []

    def compute() -> None:
        with pytest.raises(PublishConflict) as error:
            world.client.run(run, parallel=2, as_="ana")
        found.append(error.value)

    worker = threading.Thread(target=compute)
    worker.start()
    assert begun.wait(60)
    while not any(entry.action == "refused" for entry in world.ledger.audit.entries(run)):
        threading.Event().wait(0.02)
    refused.set()
    worker.join(60)
    assert len(found) == 1
    assert [wave.state for wave in world.client.status(run).waves] == ["staged", "computing"]


def test_a_run_waits_for_a_live_job_when_the_wave_comes_that_it_writes(make_world: Make) -> None:
    """Not before: the waves ahead of it are computed while the job writes."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=freezing("size: 1"))
    run = world.to("approved")
    with errata.live.writing(world.client, TABLE, [world.days[0]], name="daily"):
        worker = threading.Thread(target=lambda: world.client.run(run, parallel=1, as_="ana"))
        worker.start()
        while not any("waiting for live jobs that write already: daily" in line for line in world.said):
            threading.Event().wait(0.02)
        assert [wave.state for wave in world.client.status(run).waves] == ["staged", "computing"]
        assert worker.is_alive()
    worker.join(60)
    assert world.client.status(run).state == "staged"


def test_a_rejected_wave_frees_all_of_the_run(make_world: Make) -> None:
    """A person decides, who may take days; nothing behind it goes before."""

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        wrong = -1 if ctx.partitions[0] == "2026-01-02" else 1
        return [{**row, "gross": row["gross"] * wrong, "n": row["n"] * wrong} for row in build(ctx, raw)]

    world = make_world(days=3, chunk_bytes=ONE_DAY, product=freezing("size: 1"), transform=transform)
    run = world.to("approved")
    world.client.run(run, max_chunks=2, as_="ana")
    assert frozen(world) == set(world.days[1:])
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    assert frozen(world) == set()


def test_two_workers_enter_a_wave_together(make_world: Make) -> None:
    """One freeze by wave, granted once, whoever opens it; everything is published."""
    world = make_world(days=4, chunk_bytes=ONE_DAY, product=freezing("size: 2, release: none", ALONE))
    run = world.to("approved")
    other = world.another_client()
    worker = threading.Thread(target=lambda: other.run(run, parallel=1, as_="ana"))
    worker.start()
    world.client.run(run, parallel=1, publish=True, as_="cy")
    worker.join(60)
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days)
    granted = [entry.body["wave"] for entry in world.ledger.audit.entries(run) if entry.action == "freeze.granted"]
    assert granted == [1, 2]
    assert frozen(world) == set()


class Killed(BaseException):
    """Ends the process as far as a test in the same process can."""


def test_killed_right_after_the_freeze_of_a_wave_opened_the_same_command_continues(make_world: Make) -> None:
    """The freeze outlives the process, and is granted by the next one."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=freezing("size: 1, release: none", ALONE))
    run = world.to("approved")

    def die() -> None:
        if len(world.ledger.freezes.list(run)) == 2:
            raise Killed

    with arm("freeze.after_open", die), pytest.raises(Killed):
        world.client.run(run, parallel=1, publish=True, as_="cy")
    world.client.close()
    world.open()
    assert world.days[0] in frozen(world)
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days)
    assert frozen(world) == set()
