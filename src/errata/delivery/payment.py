"""Pay what is owed: settle open intents, claim an item, call the handler of its effect, record the outcome.

Nothing is lost: an item stays owed until its payment is on record, and is paid again with the same key if a process
dies in between. An effect that fails waits longer after each attempt; when its attempts are used up it is failed, stops
its own queue only, and stays in ``errata status`` until a person retries or waives it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from errata import traces
from errata.delivery.attempts import compute_wait, count_attempts
from errata.delivery.handlers import Handler, load_handlers
from errata.delivery.recovery_breaches import note_breaches
from errata.delivery.recovery_messages import owe_failure, owe_recovery
from errata.errors import MissingCredentials, MissingDriver
from errata.failpoints import failpoint
from errata.ledger import OutboxItem, Owner, current_owner, is_owner_dead
from errata.model.audit import Actor
from errata.model.consumer.outbox import NEXT, WAITS, Effect, Failed, Later, Paid, TryAgain
from errata.publishing.recovery import recover_open_intents
from errata.text.exceptions import first_line
from errata.text.numbers import plural
from errata.worker.heartbeat import beating, write_lease
from errata.workspace import Workspace

COMMAND_SECONDS = 10.0
"""How long a command other than ``deliver`` starts payments."""
_TURN = 20
"""Items that are paid of one queue before the next queue has its turn."""


_POLL_SECONDS, _LONGEST_SLEEP_SECONDS = 0.2, 5.0

_active: set[str] = set()
"""Claims of this process that it is paying right now; others that the ledger names it for were interrupted."""


def _is_gone(owner: Owner) -> bool:
    if owner == current_owner(owner.name) and owner.name not in _active:
        return True
    return is_owner_dead(owner)


@dataclass(slots=True)
class PaymentReport:
    """What came of paying: the items that were paid, and a line for each that could not be."""

    paid: list[OutboxItem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_out_of_time: bool = False  # it ended because its time was over


def pay(
    workspace: Workspace,
    actor: Actor,
    *,
    table: str | None = None,
    run_id: str | None = None,
    settle: bool = True,
    lineage: bool = False,
    seconds: float = COMMAND_SECONDS,
    wait: bool = False,
    tell: Callable[[str], None] | None = None,
    handlers: Mapping[Effect, Handler] | None = None,
) -> PaymentReport:
    """Pay what is owed for a table or a run, or everything, until nothing can be paid now or the time is over.

    ``settle`` is False where open intents were settled just before. ``lineage`` is True where the work on the data is
    done, so that a collector that does not answer delays nothing. An item that was started is finished. With ``wait``
    it sleeps until the next attempt may start, as long as there is time. ``tell`` gets a line for each item. What
    cannot be paid is reported and stays owed; nothing is raised for it.
    """
    if settle:
        recover_open_intents(workspace, actor, workspace.ledger.runs.get(run_id).table if run_id else table)
    workspace.ledger.outbox.convert_notes(actor)
    note_breaches(workspace, actor, table=table, run_id=run_id)

    def find_queues() -> Collection[str]:
        found = workspace.ledger.outbox.queues(table=table, run_id=run_id)
        return [queue for queue in found if lineage or _read_effect(queue) is not Effect.LINEAGE]

    return pay_queues(workspace, actor, find_queues, seconds=seconds, wait=wait, tell=tell, handlers=handlers)


def pay_lineage(workspace: Workspace, actor: Actor, table: str, seconds: float) -> PaymentReport:
    """Send the lineage that is owed for a table, and nothing else; see :func:`pay`."""

    def find_queues() -> Collection[str]:
        found = workspace.ledger.outbox.queues(table=table)
        return [queue for queue in found if _read_effect(queue) is Effect.LINEAGE]

    return pay_queues(workspace, actor, find_queues, seconds=seconds)


def pay_queues(
    workspace: Workspace,
    actor: Actor,
    find_queues: Callable[[], Collection[str]],
    *,
    seconds: float = COMMAND_SECONDS,
    wait: bool = False,
    tell: Callable[[str], None] | None = None,
    handlers: Mapping[Effect, Handler] | None = None,
) -> PaymentReport:
    """Pay what is owed in these queues; see :func:`pay`."""
    if not (queues := find_queues()):
        return PaymentReport()
    payer = _Payer(workspace, actor, handlers or load_handlers(), time.monotonic() + seconds, tell)
    while True:
        if not payer.pay_round(queues) and not (wait and payer.sleep_until_due(queues)):
            payer.report.is_out_of_time = time.monotonic() >= payer.deadline
            return payer.report
        queues = find_queues()


@dataclass(slots=True)
class _Payer:
    workspace: Workspace
    actor: Actor
    handlers: Mapping[Effect, Handler]
    deadline: float
    tell: Callable[[str], None] | None = None
    report: PaymentReport = field(default_factory=PaymentReport)
    _left: set[str] = field(default_factory=set)  # queues that cannot be paid here

    def pay_round(self, queues: Collection[str]) -> bool:
        """Let each queue have its turn; False when none had anything to pay, or the time is over."""
        paid = False
        for queue in sorted(queues, key=_rank):
            for _ in range(_TURN):
                if queue in self._left or time.monotonic() >= self.deadline or not self._pay_next(queue):
                    break
                paid = True
        return paid

    def sleep_until_due(self, queues: Collection[str]) -> bool:
        """Sleep until an item may be tried; False when there is none, or not before the time is over."""
        outbox = self.workspace.ledger.outbox
        waited = [queue for queue in queues if queue not in self._left and _read_effect(queue).is_debt]
        due = min((at for queue in waited if (at := outbox.next_due(queue))), default=None)
        if due is None:
            return False
        seconds = max(_POLL_SECONDS, (due - self.workspace.ledger.now_ms()) / 1000)
        if time.monotonic() + seconds > self.deadline:
            return False
        self.workspace.sleep(min(seconds, _LONGEST_SLEEP_SECONDS))
        return True

    def _pay_next(self, queue: str) -> bool:
        """Pay one item of the queue; False when none can be paid now."""
        lease, outbox, name = write_lease(), self.workspace.ledger.outbox, f"payer-{secrets.token_hex(8)}"
        _active.add(name)
        try:
            item = outbox.claim(queue, current_owner(name), lease_seconds=lease, is_dead=_is_gone)
            if item is None:
                return False
            failpoint("deliver.after_claim")
            handler = self.handlers.get(item.effect)
            if handler is None:
                self._leave(item)
                return False
            if item.attempts > count_attempts(item.effect):
                self._record_failure(item, item.last_error or "its process ended in every attempt")
                return True
            with beating(lease, lambda: outbox.renew(item, lease), f"lease-{item.item_id}"):
                return self._call(handler, item)
        finally:
            _active.discard(name)

    def _call(self, handler: Handler, item: OutboxItem) -> bool:
        outbox = self.workspace.ledger.outbox
        failpoint("deliver.before_pay")
        try:
            with traces.span("delivery", run=item.run_id, effect=item.effect.value, consumer=item.consumer):
                payment = handler(self.workspace, self.actor, item)
        except (MissingCredentials, MissingDriver) as missing:
            self.report.warnings.append(f"item {item.item_id} ({_describe(item)}) is still owed: {missing.message}")
            self._leave(item)
            return False
        except Exception as error:  # noqa: BLE001  whatever it is, its cause has happened
            self._record_failure(item, first_line(error))
            return True
        # a crash from here on pays the item again, with the same key
        failpoint("deliver.after_pay")
        match payment:
            case Paid(result, owes):
                when_recovered = owe_recovery(self.workspace, self.actor, item)
                if outbox.record_paid(item, result, self.actor, owes, when_recovered=when_recovered):
                    self.report.paid.append(replace(item, result=result))
                    event = item.event.replace("_", " ")
                    self._say(f"✓ item {item.item_id}: {_describe(item)}, {event} of {item.run_id}")
                failpoint("deliver.after_record")
            case Later(seconds, progress, waits):
                kept = {name: value for name, value in progress.items() if name != WAITS}
                outbox.put_off(item, seconds, kept | ({WAITS: waits} if waits else {}))
                if waits and waits != item.waits:
                    self._say(f"▶ item {item.item_id}: {_describe(item)}: {waits}")
            case TryAgain(why, progress, seconds, told):
                self._record_failure(item, why, progress=progress, at_least=seconds, told=told)
            case Failed(why, progress, result):
                self._record_failure(item, why, is_last=True, progress=progress or None, result=result)
        return True

    def _record_failure(
        self,
        item: OutboxItem,
        error: str,
        *,
        is_last: bool = False,
        progress: Mapping[str, Any] | None = None,
        at_least: float = 0,
        told: Mapping[str, Any] | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        outbox, most = self.workspace.ledger.outbox, count_attempts(item.effect)
        line = f"item {item.item_id} ({_describe(item)}) of {item.run_id} is not paid: {error}"
        if is_last or item.attempts >= most:
            owes = owe_failure(self.workspace, item, {"problem": error} | dict(told or {}))
            outbox.record_failed(item, error, self.actor, owes, progress, result)
            line += f"; it failed after {plural(item.attempts, 'attempt')}"
            line += "" if NEXT in (progress or {}) else f", errata outbox retry {item.item_id}"
        else:
            outbox.record_attempt(item, error, max(at_least, compute_wait(item.attempts)), progress)
            line += "; it is tried again: errata deliver"
        self.report.warnings.append(line)
        self._say(f"✗ {line}")

    def _say(self, line: str) -> None:
        if self.tell is not None:
            self.tell(line)

    def _leave(self, item: OutboxItem) -> None:
        self._left.add(item.queue)
        self.workspace.ledger.outbox.give_back(item)


def _rank(queue: str) -> tuple[int, str]:
    """Order in which queues have their turn: tables of the lake first, messages and lineage last.

    A receiver that does not answer uses up the time of a command, and must not use up that of a cache.
    """
    return list(Effect).index(_read_effect(queue)), queue


def _read_effect(queue: str) -> Effect:
    return next((Effect(word) for word in queue.split("/")[1:] if word in set(Effect)), Effect.ALARM)


def _describe(item: OutboxItem) -> str:
    return " ".join(word for word in (item.effect.value, f"to {item.consumer}" if item.consumer else "") if word)
