"""Leases and the thread that renews them: for attempts at chunks, intents of publications, freezes and live jobs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from errata.errors import EngineError

_ATTEMPT_SECONDS, _WRITE_SECONDS = 60.0, 120.0


def attempt_lease() -> float:
    """Seconds for which an attempt holds its chunk without a heartbeat."""
    return float(os.environ.get("ERRATA_LEASE_SECONDS", _ATTEMPT_SECONDS))


def write_lease() -> float:
    """Seconds for which a publication or a live job holds its partitions without a heartbeat."""
    return float(os.environ.get("ERRATA_LEASE_SECONDS", _WRITE_SECONDS))


@contextmanager
def beating(lease_seconds: float, renew: Callable[[], bool], name: str) -> Iterator[None]:
    """Renew a lease four times as often as it needs, from a thread of its own, until the block ends.

    The thread also ends when ``renew`` returns False: the lease is lost. While the ledger cannot be reached it keeps
    trying. If the lease runs out meanwhile, the fence makes the ledger refuse what its former holder records.
    """
    over = threading.Event()

    def beat() -> None:
        while not over.wait(lease_seconds / 4):
            try:
                if not renew():
                    return
            except EngineError:
                continue

    thread = threading.Thread(target=beat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
