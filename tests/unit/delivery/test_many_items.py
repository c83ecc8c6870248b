"""Ten thousand owed items drain: no transaction and no query grows with their number."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from errata.delivery.payment import pay
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState, Owed, Paid, Payment
from errata.workspace import Workspace
from support.office import ANA, DAYS, WORKER, Office, office

_STEP = 100


class Work:
    """Instructions that SQLite executed, in hundreds."""

    steps = 0

    def count(self) -> int:
        self.steps += 1
        return 0


@contextmanager
def counted_work() -> Iterator[Work]:
    """Count what every database of this process that is opened inside this block executes."""
    work = Work()

    def listen(connection: Any, _record: Any) -> None:
        connection.set_progress_handler(work.count, _STEP)

    event.listen(Engine, "connect", listen)
    try:
        yield work
    finally:
        event.remove(Engine, "connect", listen)


def owe(found: Office, items: int, effect: Effect, *, queues: int, apart: bool = False) -> None:
    """Owe so many items in so many queues; ``apart``: each of its own partition."""
    for first in range(0, items, 500):
        numbers = range(first, min(items, first + 500))
        days = {n: (f"d{n}",) if apart else DAYS[:1] for n in numbers}
        owes = [Owed(effect, f"published{n}", f"c{n % queues}", days[n]) for n in numbers]
        found.ledger.outbox.owe(found.run.run_id, "cause", owes, ANA)


def pay_some(found: Office, number: int) -> None:
    """Pay so many items, as a payer does."""
    outbox = found.ledger.outbox
    for n in range(number):
        queue = outbox.queues()[0]
        item = outbox.claim(queue, replace(WORKER, name=f"w{n}"), lease_seconds=60, is_dead=lambda _: False)
        assert item is not None
        assert outbox.renew(item, 60)
        assert outbox.record_paid(item, {}, ANA)
        outbox.next_due(queue)


CASES = [(Effect.TELL, False), (Effect.WATERMARK, False), (Effect.WATERMARK, True), (Effect.RECOVER, True)]


@pytest.mark.parametrize("effect, apart", CASES)
def test_paying_an_item_costs_the_same_however_many_are_owed(tmp_path: Path, effect: Effect, *, apart: bool) -> None:
    """Measured in instructions of the database, which do not depend on how busy the machine is."""
    costs = []
    for items in (400, 4000):
        (tmp_path / str(items)).mkdir()
        with counted_work() as work:
            found = office(tmp_path / str(items))
            owe(found, items, effect, queues=2, apart=apart)
            pay_some(found, 5)  # what is prepared once
            before = work.steps
            pay_some(found, 20)
            costs.append(work.steps - before)
            found.ledger.close()
    # trees of indexes are a level deeper
    assert costs[1] < 1.5 * costs[0], costs


def test_a_newer_item_is_paid_for_a_bounded_number_of_older_ones_at_a_time(tmp_path: Path) -> None:
    """The rest is paid with the next one, so that no transaction grows."""
    found = office(tmp_path)
    owe(found, 250, Effect.RECOVER, queues=1)
    calls: list[str] = []

    def count(_workspace: Workspace, _actor: Actor, item: OutboxItem) -> Payment:
        calls.append(item.key)
        return Paid()

    pay(found.workspace, ANA, handlers={Effect.RECOVER: count}, seconds=600)
    assert found.ledger.outbox.count() == {ItemState.PAID: 250}
    assert len(calls) == 3


@pytest.mark.slow
def test_ten_thousand_items_drain(tmp_path: Path) -> None:
    """In time that grows with their number and no faster."""
    found = office(tmp_path)
    owe(found, 10_000, Effect.TELL, queues=40)
    started, marks = time.monotonic(), []

    def note(_workspace: Workspace, _actor: Actor, _item: OutboxItem) -> Payment:
        marks.append(time.monotonic() - started)
        return Paid()

    pay(found.workspace, ANA, handlers={Effect.TELL: note}, seconds=3600)
    assert found.ledger.outbox.count() == {ItemState.PAID: 10_000}
    assert marks[-1] < 4 * marks[len(marks) // 2]
    assert found.ledger.audit.verify().ok
