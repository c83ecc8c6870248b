"""How often an effect is tried before it is failed, and how long it waits between two attempts. Pure."""

from __future__ import annotations

from errata.model.consumer.outbox import Effect

_USUAL = 8
_LIMITS = {Effect.CORRECTIONS: 12, Effect.VIEW: 12, Effect.ALARM: 12, Effect.LINEAGE: 100}
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 600.0


def count_attempts(effect: Effect) -> int:
    """Attempts after which an item is failed, until a person retries it."""
    return _LIMITS.get(effect, _USUAL)


def compute_wait(attempts: int) -> float:
    """Seconds until the next attempt, after this many."""
    from tenacity import RetryCallState, Retrying, wait_exponential

    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = attempts
    return wait_exponential(multiplier=_FIRST_SECONDS, max=_LONGEST_SECONDS)(state)
