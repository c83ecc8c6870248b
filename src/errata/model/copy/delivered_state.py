"""Whether copies hold what a run has published: derived, never stored. Pure.

The state of a run follows the lake alone. This is a second word beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from errata.model.consumer.outbox import Effect
from errata.model.consumer.recovery_state import RecoveryItem, RecoveryState, derive_state


class DeliveredState(StrEnum):
    """What the copies of a run hold."""

    YES = "yes"
    PENDING = "pending"
    FAILED = "failed"
    WAIVED = "waived"  # not delivered, and a person decided to leave it at that


_WORDS = {
    RecoveryState.RECOVERED: DeliveredState.YES,
    RecoveryState.PENDING: DeliveredState.PENDING,
    RecoveryState.FAILED: DeliveredState.FAILED,
    RecoveryState.WAIVED: DeliveredState.WAIVED,
}


def derive_delivered(items: Collection[RecoveryItem]) -> DeliveredState | None:
    """The state by the items of a run; None if it owes nothing to a copy.

    >>> from errata.model.consumer.outbox import ItemState
    >>> paid = RecoveryItem(2, Effect.COPY, "pg:sales", frozenset({"2026-01-03"}), ItemState.PAID)
    >>> owed = RecoveryItem(3, Effect.COPY, "snow:SALES", frozenset({"2026-01-03"}), ItemState.OWED)
    >>> print(derive_delivered([paid]), derive_delivered([paid, owed]), derive_delivered([]))
    yes pending None
    """
    found = derive_state([one for one in items if one.effect is Effect.COPY])
    return None if found is None else _WORDS[found]
