"""The state of recovery follows from the items of a run."""

from __future__ import annotations

from itertools import product

import pytest

from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.recovery_state import RecoveryItem, RecoveryState, derive_recovery

S, R = ItemState, RecoveryState
DAYS = frozenset({"2026-01-03", "2026-01-04"})


def item(
    state: ItemState, seq: int = 1, effect: Effect = Effect.RECOVER, consumer: str = "bi", days: frozenset[str] = DAYS
) -> RecoveryItem:
    return RecoveryItem(seq, effect, consumer, days, state)


@pytest.mark.parametrize("states", list(product(ItemState, repeat=2)))
def test_recovered_means_that_everything_is_paid(states: tuple[ItemState, ItemState]) -> None:
    """A failed item counts most, then one that is owed or not decided, then one that was waived."""
    items = [item(states[0]), item(states[1], 2, Effect.WATERMARK, "ml")]
    left = {state for state in states if state is not S.VOID}
    expected = (
        None if not left
        else R.FAILED if S.FAILED in left
        else R.PENDING if left & {S.OWED, S.CONDITIONAL}
        else R.WAIVED if S.WAIVED in left
        else R.RECOVERED
    )  # fmt: skip
    assert derive_recovery(items) is expected


@pytest.mark.parametrize("effect", [one for one in Effect if not one.reaches_consumer])
def test_what_does_not_reach_a_consumer_does_not_count(effect: Effect) -> None:
    """A message that was not sent is no reason to call a dashboard wrong."""
    assert derive_recovery([item(S.FAILED, effect=effect)]) is None
    assert derive_recovery([item(S.FAILED, effect=effect), item(S.PAID)]) is R.RECOVERED


def test_a_waived_item_counts_until_a_newer_one_is_paid_for_the_same() -> None:
    """For the same consumer and all its partitions, and only where paying brings about what is accepted now."""
    waived = item(S.WAIVED, 5)
    assert derive_recovery([waived, item(S.PAID, 6)]) is R.RECOVERED
    assert derive_recovery([waived, item(S.PAID, 4)]) is R.WAIVED
    assert derive_recovery([waived, item(S.PAID, 6, consumer="ml")]) is R.WAIVED
    assert derive_recovery([waived, item(S.PAID, 6, days=frozenset({"2026-01-03"}))]) is R.WAIVED
    assert derive_recovery([item(S.WAIVED, 5, Effect.WATERMARK), item(S.PAID, 6, Effect.WATERMARK)]) is R.WAIVED
