"""Wait for an unavailable ledger, so that a worker loses no computed output and leaves no finished work unrecorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from errata.errors import LedgerUnavailable
from errata.workspace import Workspace

T = TypeVar("T")

MAX_WAIT_SECONDS = 1800.0
_PAUSE_SECONDS = 5.0


def retry_ledger_call(act: Callable[[], T], workspace: Workspace) -> T:
    """Retry ``act`` until the ledger answers; raise its ``LedgerUnavailable`` after half an hour."""
    ends, said = time.monotonic() + MAX_WAIT_SECONDS, False
    while True:
        try:
            return act()
        except LedgerUnavailable as error:
            if time.monotonic() > ends:
                raise
            if not said:
                workspace.narrate(f"the ledger does not answer, waiting: {error.message}")
                said = True
            workspace.sleep(_PAUSE_SECONDS)
