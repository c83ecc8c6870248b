"""What is owed after a decision or a commit: its key, its states, and in which order it is paid. Pure.

An item is written in the transaction of its cause. An item of a publication is conditional until the publication is
settled, because its cause is a commit on a table, which no transaction of the ledger contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """What paying an item does. Order is kept for each consumer and effect."""

    CORRECTIONS = "corrections"  # rows in the table of corrections
    VIEW = "view"  # the view of current output
    ALARM = "alarm"  # break-glass was used
    TELL = "tell"  # a message
    READY = "ready"  # the table of ready partitions
    RECOVER = "recover"  # refresh what a consumer shows, and read it back
    WATERMARK = "watermark"  # move an incremental job back
    CHECKPOINT = "checkpoint"  # prepare a repaired copy of a stream's checkpoint

    @property
    def reads_acceptance(self) -> bool:
        """Whether paying brings about what is accepted now, whatever caused the item; such items replace older ones."""
        return self in (Effect.VIEW, Effect.READY, Effect.RECOVER)


class ItemState(StrEnum):
    """States of an item."""

    CONDITIONAL = "conditional"  # its publication is not settled
    VOID = "void"  # its publication did not land
    OWED = "owed"
    PAID = "paid"
    FAILED = "failed"  # all attempts are used up; a person retries or waives it
    WAIVED = "waived"


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


@dataclass(frozen=True, slots=True)
class Paid:
    """The item is paid; ``result`` is put on the record."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Later:
    """A step is done and the next one has to wait; ``progress`` is given to the next attempt. Not a failed attempt."""

    seconds: float
    progress: Mapping[str, Any]


Payment = Paid | Later
