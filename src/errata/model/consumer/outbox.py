"""What is owed after a decision or a commit: its key, its states, and in which order it is paid. Pure.

An item is written in the transaction of its cause. An item of a publication is conditional until the publication is
settled, because its cause is a commit on a table, which no transaction of the ledger contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

APPROVED, BREAK_GLASS = "approved", "break_glass"
"""Events of decisions: the plan is approved, and one person decided alone."""
HOLDING = "holding"
"""The event of a hold that is opened."""


class Effect(StrEnum):
    """What paying an item does, in the order in which effects have their turn; messages must not hold up anything.

    Items wait for each other only within one consumer and effect.
    """

    CORRECTIONS = "corrections"  # rows in the table of corrections
    TOPIC = "topic"  # records for a topic: emitted rows, or events of corrections
    VIEW = "view"  # the view of current output
    COPY = "copy"  # make partitions of a copy in a warehouse equal to what is accepted
    WATERMARK = "watermark"  # move an incremental job back
    RECOVER = "recover"  # refresh what a consumer shows, and read it back
    CHECKPOINT = "checkpoint"  # prepare a repaired copy of a stream's checkpoint
    READY = "ready"  # the table of ready partitions
    WATCH = "watch"  # look at what live jobs write next to a publication
    ALARM = "alarm"  # break-glass was used
    TELL = "tell"  # a message
    LINEAGE = "lineage"  # events of lineage

    @property
    def reads_acceptance(self) -> bool:
        """Whether paying brings about what is accepted now, whatever caused the item; such items replace older ones."""
        return self in (Effect.VIEW, Effect.READY, Effect.RECOVER, Effect.COPY)

    @property
    def reaches_consumer(self) -> bool:
        """Whether a consumer has recovered only when this is paid."""
        return self in (Effect.RECOVER, Effect.WATERMARK, Effect.CHECKPOINT)

    @property
    def is_debt(self) -> bool:
        """Whether somebody waits for it; a watch only looks until its time is over."""
        return self is not Effect.WATCH

    @property
    def concerns_data(self) -> bool:
        """Whether the work on the data depends on it; lineage only reports that work."""
        return self is not Effect.LINEAGE

    @property
    def is_strict(self) -> bool:
        """Whether items wait for all older ones, whatever their partitions: receivers drop lower sequence numbers."""
        return self is Effect.TELL


class ItemState(StrEnum):
    """States of an item."""

    CONDITIONAL = "conditional"  # its publication is not settled
    VOID = "void"  # its publication did not land
    OWED = "owed"
    PAID = "paid"
    FAILED = "failed"  # all attempts are used up; a person retries or waives it
    WAIVED = "waived"


NEXT = "next"
"""In the progress of a failed item: the command with which a person decides."""
WAITS = "waits"
"""Key of an item's progress: what it waits for."""

ITEM_MOVES: dict[ItemState, frozenset[ItemState]] = {
    ItemState.CONDITIONAL: frozenset({ItemState.OWED, ItemState.VOID}),
    ItemState.VOID: frozenset(),
    ItemState.OWED: frozenset({ItemState.PAID, ItemState.FAILED, ItemState.WAIVED}),
    ItemState.PAID: frozenset(),
    # to paid: a newer item of an effect that reads the acceptance was paid for both
    ItemState.FAILED: frozenset({ItemState.OWED, ItemState.PAID, ItemState.WAIVED}),
    ItemState.WAIVED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Owed:
    """An item as its cause writes it."""

    effect: Effect
    event: str  # planned, approved, holding, published, rolled_back, recovered, failed, break_glass
    consumer: str = ""  # empty: the product itself
    partitions: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)

    def key(self, cause: str) -> str:
        """The idempotency key: the same for every attempt, and for no other item.

        >>> Owed(Effect.TELL, "published", "exec-dashboard").key("bf-1-p1")
        'bf-1-p1/published/tell/exec-dashboard'
        """
        return "/".join(word for word in (cause, self.event, self.effect.value, self.consumer) if word)

    def queue(self, table: str, key: str) -> str:
        """Items of one queue are paid in order.

        >>> Owed(Effect.RECOVER, "published", "exec-dashboard").queue("lake.t", "…")
        'exec-dashboard/recover/lake.t'
        >>> Owed(Effect.TELL, "published", "exec-dashboard").queue("lake.t", "…")
        'exec-dashboard/tell'
        """
        if self.effect is Effect.ALARM:
            return key  # each is sent by itself
        place = () if self.effect.is_strict else (table,)
        return "/".join((self.consumer, self.effect.value, *place))


@dataclass(frozen=True, slots=True)
class Paid:
    """The item is paid; ``result`` is put on the record, and ``owes`` follows from the payment."""

    result: Mapping[str, Any] = field(default_factory=dict)
    owes: tuple[Owed, ...] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """A step is done and the next one has to wait; ``progress`` is given to the next attempt. Not a failed attempt.

    ``waits`` says what it waits for, in words for people.
    """

    seconds: float
    progress: Mapping[str, Any]
    waits: str = ""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """A failed attempt that has come somewhere: the next one gets ``progress`` and waits at least so long.

    ``told`` is what a message says about it if it was the last attempt, in place of the error.
    """

    error: str
    progress: Mapping[str, Any]
    seconds: float = 0
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """No further attempt can help: a person decides. ``progress`` is kept with the item, ``result`` on the record."""

    error: str
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)


Payment = Paid | Later | TryAgain | Failed


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """What decides whether an open item of a queue may be paid now."""

    seq: int  # grows with every item that becomes owed
    effect: Effect
    partitions: frozenset[str]  # empty: the whole table
    state: ItemState  # owed or failed
    is_due: bool = True  # its time has come
    is_taken: bool = False  # someone is paying it right now

    def overlaps(self, other: QueuedItem) -> bool:
        """Whether the two concern a common partition."""
        if self.effect.is_strict or not self.partitions or not other.partitions:
            return True
        return not self.partitions.isdisjoint(other.partitions)

    def covers(self, other: QueuedItem) -> bool:
        """Whether paying this item pays the other one as well: both read the acceptance, and this is newer."""
        if not self.effect.reads_acceptance or self.seq <= other.seq:
            return False
        return not self.partitions or (bool(other.partitions) and self.partitions >= other.partitions)


def find_payable(queue: Sequence[QueuedItem]) -> QueuedItem | None:
    """The item of one queue to pay next; None while all have to wait.

    ``queue`` has the open items (owed or failed), oldest first. An item waits for older ones that share a partition.
    Items that read the acceptance do not wait for older ones: a newer one that has all their partitions pays for them.
    But no two items that share a partition are paid at the same time.
    """
    for n, item in enumerate(queue):
        if item.state is ItemState.OWED and item.is_due and not item.is_taken and not _has_to_wait(n, queue):
            return item
    return None


def _has_to_wait(n: int, queue: Sequence[QueuedItem]) -> bool:
    item, before, after = queue[n], queue[:n], queue[n + 1 :]
    if not item.effect.reads_acceptance:
        return any(older.overlaps(item) for older in before)
    taken = any(other.is_taken and other.overlaps(item) for other in (*before, *after))
    return taken or any(newer.covers(item) for newer in after)


def list_covered(item: QueuedItem, queue: Iterable[QueuedItem]) -> tuple[QueuedItem, ...]:
    """The open items of the queue that are paid, or waived, together with this one."""
    return tuple(other for other in queue if item.covers(other))
