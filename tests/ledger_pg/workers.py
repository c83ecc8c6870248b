"""What the processes of ``test_restarts`` do; importable by a fresh interpreter."""

from __future__ import annotations

import time
from typing import Any

from errata.ledger import Ledger, current_owner
from unit.ledger.steps import ANA, adopt


def finish_chunks(url: str, seconds: float, results: Any) -> None:
    """Claim, heartbeat and adopt until every chunk is done; says which attempts were this worker's."""
    done: list[str] = []
    with Ledger.open(url) as ledger:
        owner = current_owner()
        while ledger.progress.counts("bf-1").done < ledger.progress.counts("bf-1").total:
            attempt = ledger.chunks.claim("bf-1", owner, lease_seconds=120, actor=ANA)
            if attempt is None:
                time.sleep(0.05)
                continue
            time.sleep(seconds)
            assert ledger.chunks.heartbeat(attempt, 120)
            adopt(ledger, attempt, f"s-{attempt.attempt_id}", rows=1)
            done.append(attempt.attempt_id)
    results.put(done)
