"""Waiting for a ledger that does not answer: a worker neither loses what it computed nor finishes unrecorded work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from errata.errors import LedgerUnavailable

T = TypeVar("T")

MAX_WAIT_SECONDS = 1800.0
_PAUSE_SECONDS = 5.0


def retry_ledger_call(act: Callable[[], T], narrate: Callable[[str], None]) -> T:
    """Do this as soon as the ledger answers; its own error when it does not for half an hour."""
    ends, said = time.monotonic() + MAX_WAIT_SECONDS, False
    while True:
        try:
            return act()
        except LedgerUnavailable as error:
            if time.monotonic() > ends:
                raise
            if not said:
                narrate(f"the ledger does not answer, waiting: {error.message}")
                said = True
            time.sleep(_PAUSE_SECONDS)
