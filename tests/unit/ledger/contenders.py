"""What the processes of ``test_contention`` do; importable by a fresh interpreter."""

from __future__ import annotations

from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from errata.errors import ErrataError
from errata.ledger import Ledger, current_owner
from unit.ledger.steps import ANA, BO, adopt, intend, manifest_bytes, settle


def work(url: str, start: Barrier, results: Any) -> None:
    """Claim and finish chunks until none is left."""
    taken: list[str] = []
    with Ledger.open(url) as ledger:
        owner = current_owner()
        start.wait(60)
        while (attempt := ledger.chunks.claim("bf-1", owner, lease_seconds=600, actor=ANA)) is not None:
            taken.append(attempt.attempt_id)
            adopt(ledger, attempt, str(len(taken)), rows=1)
    results.put(taken)


def reap(url: str, start: Barrier, results: Any) -> None:
    """Take over what somebody lost; says the fence that was got, if any."""
    with Ledger.open(url) as ledger:
        start.wait(60)
        attempt = ledger.chunks.claim("bf-1", current_owner(), lease_seconds=600, actor=ANA)
        results.put(attempt and attempt.fence)
        # Whoever got it must not be found dead by a slower one.
        start.wait(60)


def create_and_plan(url: str, start: Barrier, results: Any) -> None:
    """Open a ledger that is not there yet and record the same plan as everyone else."""
    start.wait(60)
    with Ledger.open(url) as ledger:
        run, already = ledger.runs.record(
            "bf-1", manifest_bytes("bf-1"), product="p", table="t", partitions=("a",), chunks=(), parts={}, actor=ANA,
            body={},
        )  # fmt: skip
        results.put((ledger.ledger_id, run.manifest_digest, already))


def publish(url: str, start: Barrier, results: Any) -> None:
    """Try to publish the same run as everyone else."""
    with Ledger.open(url) as ledger:
        days = ledger.runs.get("bf-1").partitions
        start.wait(60)
        try:
            pub = intend(ledger, "bf-1", days)
        except ErrataError as error:
            results.put(error.code)
            return
        settle(ledger, pub)
        results.put(pub.pub_id)


def claim_and_hang(path: Path, url: str) -> None:
    """Claim, say so, and wait to be killed."""
    with Ledger.open(url) as ledger:
        attempt = ledger.chunks.claim("bf-1", current_owner(), lease_seconds=600, actor=BO)
        assert attempt is not None
        path.write_text(attempt.attempt_id)
        while True:
            ledger.chunks.heartbeat(attempt, 600)
