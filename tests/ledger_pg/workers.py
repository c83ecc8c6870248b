"""What the processes of ``test_restarts`` do; importable by a fresh interpreter."""

from __future__ import annotations

import time
from typing import Any

from errata.ledger import Ledger, current_owner
from unit.ledger.steps import ANA, adopt


def finish_chunks(url: str, seconds: float, may_start: Any, results: Any) -> None:
    """Work on one chunk per permit of the semaphore until every chunk is done; report this worker's attempts."""
    done: list[str] = []
    with Ledger.open(url) as ledger:
        owner = current_owner()
        while ledger.progress.counts("bf-1").done < ledger.progress.counts("bf-1").total:
            if not may_start.acquire(timeout=0.05):
                continue
            attempt = ledger.chunks.claim("bf-1", owner, lease_seconds=120, actor=ANA)
            assert attempt is not None, "there is a permit for each chunk, and no chunk is given back"
            time.sleep(seconds)
            assert ledger.chunks.heartbeat(attempt, 120)
            adopt(ledger, attempt, f"s-{attempt.attempt_id}", rows=1)
            done.append(attempt.attempt_id)
    results.put(done)
