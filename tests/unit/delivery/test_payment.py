"""Paying what is owed: once on the record, again after a crash, later after a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from errata.delivery.attempts import compute_wait, count_attempts
from errata.delivery.payment import PaymentReport, pay
from errata.errors import EngineError, MissingCredentials
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState, Later, Owed, Paid, Payment
from errata.workspace import Workspace
from support.clock import stopped_clock
from support.office import ANA, DAYS, WORKER, Office, office


@dataclass
class Receiver:
    """Takes payments as it is told to, and remembers them."""

    office: Office
    answer: Callable[[OutboxItem], Payment] = lambda _: Paid({"status": 200})
    heard: list[str] = field(default_factory=list)

    def take(self, _workspace: Workspace, _actor: Actor, item: OutboxItem) -> Payment:
        self.heard.append(item.key)
        return self.answer(item)

    def owe(self, cause: str, effect: Effect = Effect.TELL, consumer: str = "bi", days: tuple[str, ...] = ()) -> None:
        self.office.ledger.outbox.owe(self.office.run.run_id, cause, [Owed(effect, "published", consumer, days)], ANA)

    def pay(self, seconds: float = 60, *, wait: bool = False) -> PaymentReport:
        handlers = dict.fromkeys(Effect, self.take)
        return pay(self.office.workspace, ANA, seconds=seconds, wait=wait, handlers=handlers)

    def states(self) -> list[str]:
        return [item.state.value for item in self.office.ledger.outbox.list()]


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(office(tmp_path))


def refuse(error: Exception) -> Callable[[OutboxItem], Payment]:
    def answer(_item: OutboxItem) -> Payment:
        raise error

    return answer


def test_items_are_paid_in_the_order_in_which_they_became_owed(receiver: Receiver) -> None:
    """Each once, with its result on the record."""
    for cause in ("c1", "c2", "c3"):
        receiver.owe(cause)
    assert len(receiver.pay().paid) == 3
    assert receiver.heard == [f"{cause}/published/tell/bi" for cause in ("c1", "c2", "c3")]
    assert receiver.states() == ["paid"] * 3
    assert receiver.office.ledger.outbox.get(1).result == {"status": 200}
    receiver.pay()
    assert len(receiver.heard) == 3


def test_a_message_that_fails_holds_up_its_own_queue_only(receiver: Receiver) -> None:
    """The cache of the same consumer is refreshed, and other consumers are told."""
    receiver.owe("c1")
    receiver.owe("c2")
    receiver.owe("c1", Effect.RECOVER, days=DAYS)
    receiver.owe("c1", consumer="audit")
    down = refuse(EngineError("down"))
    receiver.answer = lambda item: down(item) if item.queue == "bi/tell" else Paid()
    (warning,) = receiver.pay().warnings
    assert "is not paid: down; it is tried again: errata deliver" in warning
    assert receiver.states() == ["owed", "owed", "paid", "paid"]


def test_attempts_wait_longer_each_time_and_end_as_failed(receiver: Receiver) -> None:
    """Until a person retries it; what came behind it waits."""
    receiver.owe("c1")
    receiver.owe("c2")
    receiver.answer = refuse(EngineError("410 Gone"))
    waits = []
    with stopped_clock() as clock:
        while receiver.states()[0] == "owed":
            receiver.pay()
            due = receiver.office.ledger.outbox.get(1).not_before
            waits.append(max(0, due - int(clock.at.timestamp() * 1000)) / 1000)
            clock.move(waits[-1])
    assert receiver.states() == ["failed", "owed"]
    assert waits[:-1] == [compute_wait(n) for n in range(1, count_attempts(Effect.TELL))]
    assert waits[:-1] == sorted(waits[:-1])
    item = receiver.office.ledger.outbox.get(1)
    assert (item.attempts, item.last_error) == (count_attempts(Effect.TELL), "410 Gone")
    receiver.answer = lambda _: Paid()
    assert receiver.pay().paid == []
    receiver.office.ledger.outbox.retry([1], ANA)
    receiver.pay()
    assert receiver.states() == ["paid", "paid"]


def test_missing_credentials_leave_an_item_as_it_is(receiver: Receiver) -> None:
    """A person without them must not use up the attempts of those who have them."""
    receiver.owe("c1")
    receiver.answer = refuse(MissingCredentials("SLACK_WEBHOOK is not set"))
    (warning,) = receiver.pay().warnings
    assert "SLACK_WEBHOOK is not set" in warning
    item = receiver.office.ledger.outbox.get(1)
    assert (item.state, item.attempts, item.not_before, item.last_error) == (ItemState.OWED, 0, 0, None)


def test_a_payment_in_steps_keeps_its_progress_and_counts_no_attempt(receiver: Receiver) -> None:
    """The next attempt continues when its time has come."""
    receiver.owe("c1", Effect.RECOVER, days=DAYS)
    receiver.answer = lambda item: Paid(item.progress) if item.progress else Later(60, {"deleted": 4})
    with stopped_clock() as clock:
        receiver.pay()
        receiver.pay()
        assert len(receiver.heard) == 1
        clock.move(61)
        receiver.pay()
    item = receiver.office.ledger.outbox.get(1)
    assert (item.state, item.result, item.attempts) == (ItemState.PAID, {"deleted": 4}, 1)


POINTS = ("deliver.after_claim", "deliver.before_pay", "deliver.after_pay", "deliver.after_record")


@pytest.mark.parametrize("point", POINTS)
def test_a_payer_that_dies_is_followed_by_another_with_the_same_key(receiver: Receiver, point: str) -> None:
    """Nothing is lost, and a receiver that keeps the keys sees each once."""
    receiver.owe("c1")
    receiver.owe("c2")

    def die() -> None:
        raise KeyboardInterrupt

    with arm(point, die), pytest.raises(KeyboardInterrupt):
        receiver.pay()
    receiver.pay()
    assert receiver.states() == ["paid", "paid"]
    assert list(dict.fromkeys(receiver.heard)) == ["c1/published/tell/bi", "c2/published/tell/bi"]
    assert len(receiver.heard) == (3 if point == "deliver.after_pay" else 2)
    assert receiver.office.ledger.audit.verify().ok


def test_a_payer_that_slept_through_its_lease_records_nothing(receiver: Receiver) -> None:
    """Another one took the item meanwhile; what that one recorded stays."""
    receiver.owe("c1")
    ledger = receiver.office.ledger

    def sleep(item: OutboxItem) -> Payment:
        with stopped_clock() as clock:
            clock.move(3600)
            other = ledger.outbox.claim(item.queue, WORKER, lease_seconds=60)
            assert other is not None
            ledger.outbox.record_paid(other, {"by": "another"}, ANA)
        return Paid({"by": "sleeper"})

    receiver.answer = sleep
    assert receiver.pay().paid == []
    assert ledger.outbox.get(1).result == {"by": "another"}


def test_what_follows_from_a_payment_is_owed_with_it(receiver: Receiver) -> None:
    """Such as the message that a consumer has recovered."""
    receiver.owe("c1", Effect.RECOVER, days=DAYS)
    told = Owed(Effect.TELL, "recovered", "bi")
    receiver.answer = lambda item: Paid(owes=(told,) if item.effect is Effect.RECOVER else ())
    receiver.pay()
    assert receiver.heard == ["c1/published/recover/bi", "c1/published/recover/bi/recovered/tell/bi"]


def test_waiting_goes_on_until_the_next_attempt_or_the_time_is_over(receiver: Receiver) -> None:
    """``errata deliver`` sleeps between attempts; other commands do not."""
    receiver.owe("c1")
    failures = [EngineError("down"), EngineError("down")]
    receiver.answer = lambda item: refuse(failures.pop())(item) if failures else Paid()
    receiver.pay(wait=True)
    assert (len(receiver.heard), receiver.states()) == (3, ["paid"])
