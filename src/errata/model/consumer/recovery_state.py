"""Whether consumers show what was published: the state of recovery of a run, and its clock. Pure.

A run that is published is not recovered before everything that reaches its consumers is paid.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from errata.model.consumer.outbox import Effect, ItemState


class RecoveryState(StrEnum):
    """What consumers of a run show."""

    PENDING = "pending"
    RECOVERED = "recovered"
    FAILED = "failed"
    WAIVED = "waived"  # not recovered, and a person decided to leave it at that


@dataclass(frozen=True, slots=True)
class RecoveryItem:
    """What decides: an item that reaches a consumer."""

    seq: int  # grows with every item that becomes owed; 0: not owed yet
    effect: Effect
    consumer: str
    partitions: frozenset[str]
    state: ItemState

    def replaces(self, other: RecoveryItem) -> bool:
        """Whether paying this one settled all that the other one, which a person waived, was about."""
        return (
            self.state is ItemState.PAID
            and self.seq > other.seq
            and (self.effect, self.consumer) == (other.effect, other.consumer)
            and self.effect.reads_acceptance
            and self.partitions >= other.partitions
        )


def derive_recovery(items: Collection[RecoveryItem]) -> RecoveryState | None:
    """The state of recovery of a run by its items; None if nothing of it reaches a consumer.

    >>> paid = RecoveryItem(2, Effect.RECOVER, "bi", frozenset({"2026-01-03"}), ItemState.PAID)
    >>> owed = RecoveryItem(3, Effect.WATERMARK, "ml", frozenset({"2026-01-03"}), ItemState.OWED)
    >>> print(derive_recovery([paid]), derive_recovery([paid, owed]), derive_recovery([]))
    recovered pending None
    """
    return derive_state([one for one in items if one.effect.reaches_consumer])


def derive_state(items: Collection[RecoveryItem]) -> RecoveryState | None:
    """The worst of what these items say; None if there are none. One that was waived counts until it is replaced."""
    mine = [one for one in items if one.state is not ItemState.VOID]
    if not mine:
        return None
    states = {one.state for one in mine}
    if ItemState.FAILED in states:
        return RecoveryState.FAILED
    if states & {ItemState.OWED, ItemState.CONDITIONAL}:
        return RecoveryState.PENDING
    waived = [one for one in mine if one.state is ItemState.WAIVED]
    if any(not any(other.replaces(one) for other in mine) for one in waived):
        return RecoveryState.WAIVED
    return RecoveryState.RECOVERED


@dataclass(frozen=True, slots=True)
class RecoveryClock:
    """How long a consumer has to show what was published; it starts with the snapshot, in milliseconds since 1970."""

    committed_ms: int
    within_seconds: int

    @property
    def until_ms(self) -> int:
        """When the time is over."""
        return self.committed_ms + self.within_seconds * 1000

    def seconds_left(self, now_ms: int) -> float:
        """Seconds that are left; negative once the time is over.

        >>> clock = RecoveryClock(0, 1800)
        >>> clock.seconds_left(600_000), clock.seconds_left(1_900_000)
        (1200.0, -100.0)
        """
        return (self.until_ms - now_ms) / 1000
