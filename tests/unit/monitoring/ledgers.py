"""Ledgers in states that somebody should be told about, each with the alert that says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from errata.ledger import Ledger, current_owner
from errata.ledger.figures.readings import Reading, ReadingName
from errata.model.chunk_outcome import ChunkOutcome
from errata.model.consumer.outbox import Effect, Owed
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState
from unit.ledger.shell import Shell
from unit.ledger.steps import (
    ANA,
    BO,
    DAYS,
    TABLE,
    adopt,
    bring,
    intend,
    manifest_bytes,
    must_claim,
    plan,
    publish,
    run_in,
)

Fabricate = Callable[[Ledger, Shell], None]


def ago(**time: float) -> str:
    """An instant as the ledger writes it."""
    return (datetime.now(UTC) - timedelta(**time)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def healthy(ledger: Ledger, _: Shell) -> None:
    """A run that goes on, one that is published and delivered, and looks that found nothing."""
    run_in(ledger, RunState.RUNNING, "bf-0", ["2026-03-01", "2026-03-02"])
    adopt(ledger, must_claim(ledger, "bf-0"))
    must_claim(ledger, "bf-0")
    _publish_and_owe(ledger)
    item = ledger.outbox.claim(Owed(Effect.VIEW, "published").queue(TABLE, ""), current_owner("p"), lease_seconds=60)
    assert item is not None
    ledger.outbox.record_paid(item, {}, BO)
    for name in (ReadingName.STALE, ReadingName.COPY_MISMATCH):
        ledger.readings.put(
            Reading(name, "fin.daily_revenue", 0.0, "" if name is ReadingName.STALE else "pg:fin.daily")
        )
    ledger.readings.put(Reading(ReadingName.LIVE_SIGNAL, "fin.daily_revenue", 3.0, "lag", "go"))


def stuck(ledger: Ledger, shell: Shell) -> None:
    run_in(ledger, RunState.RUNNING)
    _backdate(shell, "run", "updated_at", ago(hours=2))


def late(ledger: Ledger, _: Shell) -> None:
    _plan_with_deadline(ledger, ago(hours=1))


def too_slow(ledger: Ledger, shell: Shell) -> None:
    """One of three chunks in an hour, and half an hour is left."""
    _plan_with_deadline(ledger, ago(minutes=-30))
    adopt(ledger, must_claim(ledger))
    _backdate(shell, "attempt", "started_at", ago(minutes=59))


def failed(ledger: Ledger, _: Shell) -> None:
    run_in(ledger, RunState.RUNNING)
    attempt = must_claim(ledger)
    ledger.chunks.fail(
        attempt, error_code="transform", message="no", actor=ANA, fate=lambda _: ChunkOutcome(ChunkState.FAILED)
    )
    ledger.runs.move("bf-1", RunState.FAILED, actor=ANA)


def rejected(ledger: Ledger, _: Shell) -> None:
    run_in(ledger, RunState.REJECTED)


def forgotten(ledger: Ledger, shell: Shell) -> None:
    plan(ledger)
    _backdate(shell, "run", "updated_at", ago(days=2))


def abandoned(ledger: Ledger, _: Shell) -> None:
    run_in(ledger, RunState.RUNNING)
    must_claim(ledger, lease=-1.0)


def open_publication(ledger: Ledger, _: Shell) -> None:
    run_in(ledger, RunState.VALIDATED)
    intend(ledger, "bf-1", DAYS, lease=-1.0)


def undeliverable(ledger: Ledger, _: Shell) -> None:
    _publish_and_owe(ledger)
    item = ledger.outbox.claim(Owed(Effect.VIEW, "published").queue(TABLE, ""), current_owner("p"), lease_seconds=60)
    assert item is not None
    ledger.outbox.record_failed(item, "no answer", BO)


def undelivered(ledger: Ledger, shell: Shell) -> None:
    _publish_and_owe(ledger)
    _backdate(shell, "outbox_item", "owed_at", ago(hours=1))


def differing_copy(ledger: Ledger, _: Shell) -> None:
    ledger.readings.put(Reading(ReadingName.COPY_MISMATCH, "fin.daily_revenue", 2.0, "pg:fin.daily"))


def stale(ledger: Ledger, _: Shell) -> None:
    ledger.readings.put(Reading(ReadingName.STALE, "fin.daily_revenue", 4.0))


def held(ledger: Ledger, _: Shell) -> None:
    ledger.readings.put(Reading(ReadingName.LIVE_SIGNAL, "fin.daily_revenue", None, "lag", "pause"))


def visible_late(ledger: Ledger, shell: Shell) -> None:
    run_in(ledger, RunState.RUNNING)
    for _ in DAYS:
        adopt(ledger, must_claim(ledger))
    for state in (RunState.STAGED, RunState.VALIDATED):
        ledger.runs.move("bf-1", state, actor=ANA)
    publish(ledger, "bf-1")
    _backdate(shell, "attempt", "ended_at", ago(hours=1))


def screened(ledger: Ledger, _: Shell) -> None:
    run_in(ledger, RunState.RUNNING)
    ledger.chunks.adopt(
        must_claim(ledger), snapshot_id="9", rows=7, files=1, bytes=5, seconds=1.0, actor=ANA,
        cost={"input_rows": 100, "rows_quarantined:raw": 5},
    )  # fmt: skip


def unexported(ledger: Ledger, shell: Shell) -> None:
    run_in(ledger, RunState.VALIDATED)
    publish(ledger, "bf-1")
    _backdate(shell, "audit", "at", ago(hours=8))


CASES: dict[str, tuple[Fabricate, tuple[str, ...]]] = {
    "healthy": (healthy, ()),
    "no worker": (stuck, ("ErrataRunStuck",)),
    "after the deadline": (late, ("ErrataDeadlineAtRisk",)),
    "too slow for the deadline": (too_slow, ("ErrataDeadlineAtRisk",)),
    "failed": (failed, ("ErrataRunFailed",)),
    "rejected": (rejected, ("ErrataRunRejected",)),
    "nobody approves": (forgotten, ("ErrataWaitsForPerson",)),
    "a dead worker": (abandoned, ("ErrataChunkAbandoned",)),
    "a dead publisher": (open_publication, ("ErrataPublicationOpen",)),
    "a delivery that failed": (undeliverable, ("ErrataDeliveryFailed",)),
    "a delivery that waits": (undelivered, ("ErrataDeliveryLate",)),
    "a copy that differs": (differing_copy, ("ErrataCopyDiffers",)),
    "late data": (stale, ("ErrataStalePartitions",)),
    "a live pipeline that is behind": (held, ("ErrataHeldByLivePipeline",)),
    "a slow release": (visible_late, ("ErrataVisibleLate",)),
    "bad rows": (screened, ("ErrataRecordsRejected",)),
    "no exported head": (unexported, ("ErrataAuditHeadLate",)),
}
"""What is wrong, and the alerts that fire; exactly these."""


def _plan_with_deadline(ledger: Ledger, deadline: str) -> None:
    ledger.runs.record(
        "bf-1", manifest_bytes("bf-1"), product="fin.daily_revenue", table=TABLE, partitions=DAYS, parts={}, actor=ANA,
        chunks=[Chunk(f"c{n}", (day,), 10, 100) for n, day in enumerate(DAYS)], body={"deadline": deadline},
    )  # fmt: skip
    bring(ledger, "bf-1", RunState.RUNNING)


def _publish_and_owe(ledger: Ledger) -> None:
    run_in(ledger, RunState.VALIDATED)
    publish(ledger, "bf-1")
    ledger.outbox.owe("bf-1", "bf-1-p1", [Owed(Effect.VIEW, "published", partitions=DAYS)], ANA)


def _backdate(shell: Shell, table: str, column: str, at: str) -> None:
    """Time passes, which no ledger lets anybody write."""
    shell.disarm(table)
    shell.execute(f"UPDATE {table} SET {column} = ?", at)
