"""Repeat a call that a catalog may refuse for the moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

T = TypeVar("T")
TRIES = 8


def retry(
    act: Callable[[], T],
    may_pass: Callable[[BaseException], bool],
    *,
    tries: int = TRIES,
    longest_wait: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call ``act`` until it returns, raises what may not pass, or has had all its tries; raises its last exception.

    ``act`` must first look for its own effect, because a try that raised may have landed.
    """
    again = Retrying(
        stop=stop_after_attempt(tries),
        wait=wait_random_exponential(multiplier=0.05, max=longest_wait),
        retry=retry_if_exception(may_pass),
        sleep=sleep,
        reraise=True,
    )
    return again(act)
