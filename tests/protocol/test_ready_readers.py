"""Readers that ask before they read, beside publications and rollbacks that are killed and repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import pytest

from errata.delivery.payment import pay
from errata.errors import NotFound
from errata.failpoints import arm
from errata.model.audit import Actor
from support.careful_reader import Answer, CarefulReader, find_answers
from support.clock import later
from support.memory_world import MemoryWorld as World
from support.waves import in_waves
from support.world import TABLE

Make = Callable[..., World]
READY = "lake.errata.ready"
PROJECT = f"""
ready: {{table: {READY}}}
consumers:
  dashboard: {{owner: ana, reads: [fin.sales], hold: {{on_timeout: go}}}}
"""
PUBLISHING = (
    "hold.after_open", "ready.before_commit", "ready.after_commit", "publish.after_intent", "publish.before_commit",
    "publish.after_commit", "publish.after_record",
)  # fmt: skip
UNDOING = ("ready.after_commit", "rollback.after_intent", "rollback.after_commit", "rollback.after_record")


class Killed(BaseException):
    """The process is gone; nothing catches it."""


def kill() -> None:
    raise Killed


@dataclass
class Room:
    """A world whose readers look whenever something happens, and one that never stops looking."""

    world: World
    readers: list[CarefulReader]
    busy: CarefulReader

    def look(self, act: Callable[[], None] | None = None) -> None:
        for one in self.readers:
            one.look()
        if act is not None:
            act()

    @contextmanager
    def looking(self, kill_at: str = "") -> Iterator[None]:
        """Read at every step, and kill the process at this one, once."""
        left = [kill_at]

        def act(place: str) -> None:
            if place == left[0]:
                left.clear()
                left.append("")
                raise Killed

        with ExitStack() as stack:
            for place in {*PUBLISHING, *UNDOING}:
                stack.enter_context(arm(place, partial(self.look, partial(act, place))))
            yield

    @contextmanager
    def reading_all_the_time(self) -> Iterator[None]:
        over, failed = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                while not over.wait(0.01):
                    self.busy.look()
            except BaseException as error:  # noqa: BLE001  raised in the test
                failed.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60)
        if failed:
            raise failed[0]


@pytest.fixture
def room(make_world: Make) -> Room:
    world = make_world(days=4, product=in_waves("size: 2, pause: 1s"), project=PROJECT)
    contents = {name: {day: rows([day]) for day in world.days}
                for name, rows in (("old", world.wrong), ("new", world.expected))}  # fmt: skip

    def ask_ledger() -> dict[str, Answer]:
        found = world.client.ready(TABLE, world.days).partitions
        return {one.partition: Answer(one.state, one.snapshot_id, one.run_id, one.since) for one in found}

    def ask_table() -> dict[str, Answer]:
        return find_answers(world.lake.ready.rows(READY), TABLE, world.days)

    def make(ask: Callable[[], dict[str, Answer]]) -> CarefulReader:
        return CarefulReader(ask, world.rows, contents)

    return Room(world, [make(ask_ledger), make(ask_table)], make(ask_table))


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(("ready.before_commit", "publish.after_commit"), id="some"),
        pytest.param(PUBLISHING, id="all", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_asks_never_reads_what_changes(room: Room, points: tuple[str, ...]) -> None:
    """Two waves, killed at a step of each and repeated; then rolled back, killed as well."""
    world = room.world
    with room.reading_all_the_time():
        for n, point in enumerate(points):
            run = world.to("validated", reason=f"round {n}")
            for _wave in range(2):
                with room.looking(point), suppress(Killed):
                    world.client.publish(run, as_="bo", early="no time")
                room.look()
                world.client.close()
                world.open()
                with room.looking():
                    world.client.publish(run, as_="bo", early="no time")
                room.look()
            assert [one.last for one in room.readers] == [dict.fromkeys(world.days, "new")] * 2
            with room.looking(UNDOING[n % len(UNDOING)]), suppress(Killed):
                world.client.rollback(run, reason="and back", as_="bo")
            room.look()
            world.client.close()
            world.open()
            with room.looking():
                world.client.rollback(run, reason="and back", as_="bo")
            room.look()
            assert [one.last for one in room.readers] == [dict.fromkeys(world.days, "old")] * 2
    for one in (*room.readers, room.busy):
        assert min(one.reads, one.waits) > 5, one


def test_a_hold_that_lapsed_lets_readers_go_and_the_next_try_holds_again(room: Room) -> None:
    """Killed before its intent, the publication changed nothing; the ready table says so when somebody pays."""
    world = room.world
    run = world.to("validated")
    with room.looking("ready.after_commit"), suppress(Killed):
        world.client.publish(run, as_="bo")
    assert [one.look() for one in room.readers] == ["waited", "waited"]
    with later(hours=5):
        assert [one.look() for one in room.readers] == ["read", "waited"], "ready may come late"
        pay(world.workspace, Actor("ana", "ana", "here"), seconds=5)
        assert [one.look() for one in room.readers] == ["read", "read"]
        with room.looking():
            world.client.publish(run, as_="bo")
    room.look()


def test_a_reader_that_asks_about_an_unknown_table_is_told(room: Room) -> None:
    """It is not told that it may read."""
    with pytest.raises(NotFound):
        room.world.client.ready("fin.unknown")
