"""Incremental jobs read corrected partitions again, once: their watermarks are moved back by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from errata.delivery.payment import pay
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.watermark import WatermarkType
from support.clock import Clock, stopped_clock
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]
ACTOR = Actor("ana", "ana", "host")
JOB = """
warehouses:
  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}
consumers:
  features:
    reads: [fin.sales]
    kind: watermark
    state: {on: pg, table: etl_state, key: {job: features}, column: high_water}
"""


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def clock() -> Iterator[Clock]:
    with stopped_clock() as stopped:
        yield stopped


def _make(make_world: Make, value: str | None, project: str = JOB, days: int = 4) -> World:
    world = make_world(days=days, project=project)
    _put(world, value)
    return world


def _put(world: World, value: str | None) -> None:
    state = world.workspace.project.consumers["features"].state
    assert state is not None
    world.engines.watermarks.put(state, value)


def _value(world: World) -> str | None:
    state = world.workspace.project.consumers["features"].state
    assert state is not None
    return world.engines.watermarks.read(state).value


def _on_hit(n: int, act: Callable[[], None]) -> Callable[[], None]:
    """Do this at the n-th hit; the first one is for the look at the watermark."""
    hits: list[int] = []

    def hit() -> None:
        hits.append(1)
        if len(hits) == n:
            act()

    return hit


def _item(world: World, effect: Effect = Effect.WATERMARK) -> OutboxItem:
    return [one for one in world.ledger.outbox.list() if one.effect is effect][-1]


def _pay(world: World) -> None:
    pay(world.workspace, ACTOR, seconds=60)


def test_a_watermark_is_moved_to_just_before_the_earliest_corrected_partition(make_world: Make) -> None:
    """Its old value is on record, and the same happens after a rollback."""
    world = _make(make_world, "2026-01-20")
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    assert (_value(world), _item(world).state) == ("2026-01-01", ItemState.PAID)
    assert {key: _item(world).result[key] for key in ("old", "new")} == {"old": "2026-01-20", "new": "2026-01-01"}
    _put(world, "2026-01-21")
    world.client.rollback(run, partitions=world.days[2], reason="wrong", as_="bo")
    assert (_value(world), _item(world).result["old"]) == ("2026-01-02", "2026-01-21")


def test_a_watermark_is_never_moved_forward(make_world: Make) -> None:
    """A job that has not come that far reads the corrected rows anyway."""
    world = _make(make_world, "2025-12-31")
    world.to("published", world.days[2])
    assert (_value(world), _item(world).state) == ("2025-12-31", ItemState.PAID)
    assert _item(world).result["new"] == "2025-12-31"


def test_a_job_that_has_read_on_is_not_moved_back_twice(make_world: Make) -> None:
    """The payer dies after the move; the job reads again and goes on; the item is paid without another move."""
    world = _make(make_world, "2026-01-20")

    def die() -> None:
        raise Killed

    with arm("deliver.after_pay", _on_hit(2, die)), pytest.raises(Killed):
        world.to("published", world.days[1])
    assert (_value(world), _item(world).state) == ("2026-01-01", ItemState.OWED)
    _put(world, "2026-01-21")
    _pay(world)
    assert (_value(world), _item(world).state) == ("2026-01-21", ItemState.PAID)
    assert _item(world).result["old"] == "2026-01-20"


def test_a_watermark_that_changed_since_the_first_attempt_is_left_to_a_person(make_world: Make) -> None:
    """Nothing is moved, the item is failed at once, and a retry takes the value of then."""
    world = _make(make_world, "2026-01-20")
    with arm("deliver.before_pay", _on_hit(2, lambda: _put(world, "2026-01-21"))):
        world.to("published", world.days[1])
    item = _item(world)
    assert (_value(world), item.state, item.attempts) == ("2026-01-21", ItemState.FAILED, 1)
    assert "it was 2026-01-20 when this began and is 2026-01-21 now" in (item.last_error or "")
    world.ledger.outbox.retry([item.item_id], ACTOR)
    _pay(world)
    assert (_value(world), _item(world).state) == ("2026-01-01", ItemState.PAID)


def test_a_column_with_other_names_than_partitions_is_not_moved(make_world: Make) -> None:
    """Their order is not known."""
    world = _make(make_world, "20260120")
    world.engines.watermarks.type = WatermarkType.TEXT
    world.to("published", world.days[1])
    item = _item(world)
    assert (_value(world), item.state) == ("20260120", ItemState.OWED)
    assert item.last_error == "partition '20260120' was refused; expected a day such as 2026-01-03"


def test_recovery_waits_until_the_job_has_read_again(make_world: Make, clock: Clock) -> None:
    """Moving a watermark is not enough."""
    world = _make(make_world, "2026-01-20")
    world.to("published", f"{world.days[1]}..{world.days[2]}")
    for value in ("2026-01-01", "2026-01-02"):
        _put(world, value)
        _pay(world)
        assert _item(world, Effect.RECOVER).state is ItemState.OWED
        clock.move(60)
    assert _item(world, Effect.RECOVER).attempts == 0
    status = world.client.status(_item(world).run_id)
    (line,), (item,) = status.recoveries, status.owed
    assert line.waits == item.waits
    assert line.waits == "its job has to read the corrected partitions again; the watermark is 2026-01-02"
    _put(world, "2026-01-03")
    _pay(world)
    assert _item(world, Effect.RECOVER).state is ItemState.PAID


def test_a_job_that_never_reads_again_is_failed(make_world: Make, clock: Clock) -> None:
    """After recover_within the attempts count."""
    world = _make(make_world, "2026-01-20", JOB + "    recover_within: 30min\n")
    world.to("published", world.days[1])
    clock.move(1700)
    _pay(world)
    assert _item(world, Effect.RECOVER).attempts == 0
    for _ in range(20):
        clock.move(3600)
        _pay(world)
    item = _item(world, Effect.RECOVER)
    assert item.state is ItemState.FAILED
    assert item.last_error == "features has not read the corrected partitions again: its watermark is 2026-01-01"


def test_a_command_gets_the_partitions_instead(make_world: Make) -> None:
    """With the key of the item, because it may be run again after a crash."""
    job = JOB[: JOB.index("    state:")] + '    rerun: ["./rerun.sh", "--days"]\n'
    world = make_world(days=3, project=job)
    world.to("published", f"{world.days[0]}..{world.days[1]}")
    (done,) = world.engines.consumers.done
    assert (done.kind, done.partitions, done.key) == ("rerun", world.days[:2], _item(world).key)
    assert _item(world).state is ItemState.PAID
    assert not [one for one in world.ledger.outbox.list() if one.effect is Effect.RECOVER]
