"""A run is recovered when everything that reaches its consumers is paid; the clock starts with the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from errata.delivery.payment import pay
from errata.delivery.recovery_breaches import LATE
from errata.model.audit import Actor
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import to_json
from errata.model.consumer.outbox import Effect, ItemState
from errata.views import StatusView
from support.clock import Clock, stopped_clock
from support.memory_world import MemoryWorld as World
from support.world import TABLE

Make = Callable[..., World]
ACTOR = Actor("ana", "ana", "host")
PROJECT = """
channels:
  finance: {file: messages.jsonl}
warehouses:
  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}
consumers:
  exec-dashboard:
    reads: [fin.sales]
    tell: {channel: finance, on: [recovered, failed]}
    refresh: [{sql: "REFRESH MATERIALIZED VIEW mv", on: pg}]
    verify: {sql: "SELECT sum(gross) FROM mv WHERE day = '{partition}'", on: pg, equals: sum(gross)}
    recover_within: 30min
  features:
    reads: [fin.sales]
    kind: watermark
    state: {on: pg, table: etl_state, key: {job: features}, column: high_water}
  auditors:
    reads: [fin.sales]
    tell: {channel: finance, on: [recovered]}
"""


@pytest.fixture
def clock() -> Iterator[Clock]:
    with stopped_clock() as stopped:
        yield stopped


@pytest.fixture
def world(make_world: Make) -> World:
    made = make_world(days=2, project=PROJECT)
    made.engines.consumers.show = lambda day: _total(made, day)
    _set_watermark(made, "2026-01-20")
    return made


def _total(world: World, day: str) -> str:
    return str(sum((gross for name, _, gross, _ in world.rows() if name == day), Decimal(0)))


def _set_watermark(world: World, value: str) -> None:
    state = world.workspace.project.consumers["features"].state
    assert state is not None
    world.engines.watermarks.put(state, value)


def _status(world: World, run: str) -> StatusView:
    return world.client.status(run)


def _states(world: World, run: str) -> dict[str, str]:
    return {line.consumer: line.state for line in _status(world, run).recoveries}


def _messages(world: World) -> list[Message]:
    return world.engines.channels.sent.get("finance", [])


def _pay(world: World, clock: Clock, seconds: float = 60) -> None:
    clock.move(seconds)
    pay(world.workspace, ACTOR, seconds=60)


def test_a_run_is_recovered_when_every_consumer_is(world: World, clock: Clock) -> None:
    """Published is not recovered: here the job has to read again first. The same after a rollback."""
    run = world.to("published")
    assert (_status(world, run).state, _status(world, run).recovery) == ("published", "pending")
    assert _states(world, run) == {"exec-dashboard": "recovered", "features": "pending"}
    _set_watermark(world, "2026-01-20")
    _pay(world, clock)
    assert (_status(world, run).recovery, set(_states(world, run).values())) == ("recovered", {"recovered"})
    world.client.rollback(run, reason="wrong", as_="bo")
    assert (_status(world, run).state, _status(world, run).recovery) == ("rolled_back", "pending")
    _set_watermark(world, "2026-01-20")
    _pay(world, clock)
    assert _status(world, run).recovery == "recovered"


def test_everybody_who_wants_to_know_is_told_once_when_all_have_recovered(world: World, clock: Clock) -> None:
    """Also a consumer that needs no refresh itself."""
    world.to("published")
    _pay(world, clock)
    assert _messages(world) == []
    _set_watermark(world, "2026-01-20")
    for _ in range(3):
        _pay(world, clock)
    assert sorted((one.occasion.event, one.consumer) for one in _messages(world)) == [
        ("recovered", "auditors"),
        ("recovered", "exec-dashboard"),
    ]


def test_a_consumer_that_failed_is_named_and_told(world: World, clock: Clock) -> None:
    """The run stays published, its recovery is failed, and the message says what it shows."""
    wrong = _total(world, world.days[0])
    world.engines.consumers.show = lambda _: wrong
    run = world.to("published", world.days[0])
    for _ in range(20):
        _pay(world, clock)
    status = _status(world, run)
    assert (status.state, status.recovery) == ("published", "failed")
    (line,) = (one for one in status.recoveries if one.consumer == "exec-dashboard")
    right = _total(world, world.days[0])
    assert (line.state, line.error) == (
        "failed",
        f"exec-dashboard shows {wrong} for {world.days[0]}, expected {right}",
    )
    (message,) = _messages(world)
    assert (message.occasion.event, message.consumer) == ("failed", "exec-dashboard")
    assert message.title == "Not recovered: exec-dashboard does not show fin.sales, 1 day"
    assert f"What went wrong: it still differs after 8 attempts. {world.days[0]}: shows {wrong}, expected {right}." in (
        message.text
    )
    notice = to_json(message)["recovery"]
    shown = {"partition": world.days[0], "shown": wrong, "expected": right}
    assert (notice["differences"], notice["more_differences"]) == ([shown], 0)


def test_the_clock_starts_with_the_snapshot_and_a_breach_is_on_record_once(world: World, clock: Clock) -> None:
    """Status says how much time is left; afterwards that it is late, also once it has recovered."""
    world.engines.consumers.broken = "down"
    run = world.to("published")
    committed = next(one.at_ms for one in world.engines.history.find_commits(TABLE, [world.snapshot()]).values())
    clock.move(committed / 1000 + 600 - clock.at.timestamp())
    (line,) = (one for one in _status(world, run).recoveries if one.consumer == "exec-dashboard")
    assert (line.seconds_left, line.is_late) == (1200, False)
    for _ in range(4):
        _pay(world, clock, 3600)
    entries = [one for one in world.client.audit_log(run) if one.action == LATE]
    assert [(one.body["consumer"], one.body["within_seconds"]) for one in entries] == [("exec-dashboard", 1800)]
    (line,) = (one for one in _status(world, run).recoveries if one.consumer == "exec-dashboard")
    assert (line.is_late, (line.seconds_left or 0) < 0) == (True, True)
    assert [one.occasion.event for one in _messages(world)] == ["failed"]
    world.engines.consumers.broken = ""
    for _ in range(2):
        _pay(world, clock, 3600)
    (line,) = (one for one in _status(world, run).recoveries if one.consumer == "exec-dashboard")
    assert (line.state, line.seconds_left, line.is_late) == ("recovered", None, True)


def test_a_breach_of_an_item_that_has_failed_is_noticed(world: World, clock: Clock) -> None:
    """Nobody tries it any more, and the clock still runs."""
    world.engines.consumers.broken = "down"
    run = world.to("published")
    for _ in range(12):
        _pay(world, clock, 140)
    (item,) = (one for one in world.ledger.outbox.list() if (one.effect, one.consumer) == RECOVER)
    assert item.state is ItemState.FAILED
    assert not [one for one in world.client.audit_log(run) if one.action == LATE]
    _pay(world, clock, 600)
    assert len([one for one in world.client.audit_log(run) if one.action == LATE]) == 1


RECOVER = (Effect.RECOVER, "exec-dashboard")


def test_waiving_does_not_make_it_true(world: World, clock: Clock) -> None:
    """The run is not recovered and nobody is told that it is, until a later publication or rollback is paid."""
    world.engines.consumers.broken = "down"
    run = world.to("published")
    (item,) = (one for one in world.ledger.outbox.list() if (one.effect, one.consumer) == RECOVER)
    world.client.waive_outbox(str(item.item_id), reason="switched off", as_="bo")
    _set_watermark(world, "2026-01-20")
    _pay(world, clock)
    status = _status(world, run)
    (line,) = (one for one in status.recoveries if one.consumer == "exec-dashboard")
    assert (status.recovery, line.state, line.waived_by, line.waived_why) == ("waived", "waived", "bo", "switched off")
    assert _messages(world) == []
    world.engines.consumers.broken = ""
    world.client.rollback(run, reason="wrong", as_="bo")
    _set_watermark(world, "2026-01-20")
    _pay(world, clock)
    assert _status(world, run).recovery == "recovered"


def test_a_run_that_reaches_nobody_has_no_recovery(make_world: Make) -> None:
    """Most runs have no field at all."""
    world = make_world(days=1)
    status = _status(world, world.to("published"))
    assert (status.recovery, status.recoveries) == (None, ())
