"""Figures of a ledger with ten thousand runs, on both databases."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from statistics import median
from typing import Any

import pytest

from errata.ledger import Ledger
from errata.ledger.db.database import Database
from errata.ledger.schema.definition import attempt, audit, chunk, manifest, metadata, outbox_item, publication, run
from errata.monitoring.exposition import render_text
from errata.monitoring.samples import list_samples
from unit.ledger.shell import Shell
from unit.ledger.steps import TABLE

RUNS, ACTIVE, CHUNKS, LIMIT_SECONDS = 10_000, 100, 12, 1.0
_BATCH = 500
AT = "2026-01-{:02d}T{:02d}:00:00.000Z"
DAYS = json.dumps([f"day-{n:05d}" for n in range(365)])
COST = json.dumps(
    {"jobs": 3, "tasks": 40, "core_ms": 90_000, "input_rows": 5_000, "rows_quarantined:raw": 2, "write_ms": 4_000}
)


@pytest.mark.slow
def test_a_scrape_of_a_ledger_with_ten_thousand_runs_takes_at_most_a_second(
    ledger: Ledger, database: Database, shell: Shell
):
    """What the ledger has collected over years does not slow a scrape down, first or later ones."""
    _fill(database, shell)
    took = []
    for _ in range(4):
        started = time.monotonic()
        text = render_text(lambda: list_samples(ledger.figures.collect(20), ledger.readings.list(), str))
        took.append(time.monotonic() - started)
    print(f"{ledger.database().split(' at ')[0]}: {[round(one, 3) for one in took]} s, {len(text.splitlines())} lines")  # noqa: T201
    assert text.count("errata_run_state{") == ACTIVE + 20
    assert sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("errata_runs{")) == RUNS
    assert median(took) <= LIMIT_SECONDS


def _fill(database: Database, shell: Shell) -> None:
    """Rows as runs leave them; one by one through the store would take an hour."""
    shell.disarm(*metadata.tables)
    for start in range(0, RUNS, _BATCH):
        made = [_rows_of(n) for n in range(start, start + _BATCH)]
        for table in (manifest, run, chunk, attempt, audit, publication, outbox_item):
            if rows := [row for one in made for row in one[table.name]]:
                database.bare(lambda conn, rows=rows, table=table: conn.execute(table.insert(), rows))
    if shell.is_postgres:
        shell.execute("ANALYZE")


def _rows_of(n: int) -> dict[str, Iterable[dict[str, Any]]]:
    is_active, run_id, at = n >= RUNS - ACTIVE, f"bf-{n:06d}", AT.format(1 + n % 28, n % 24)
    state = "running" if is_active else "published"
    chunks = [f"c{m:04d}" for m in range(CHUNKS)]
    seq = n * 40
    return {
        "manifest": [{"digest": f"m{n}", "content": b"{}", "at": at}],
        "run": [
            {"run_id": run_id, "manifest_digest": f"m{n}", "product": f"fin.p{n % 20}", "table_name": TABLE,
             "partitions": DAYS, "planned_by": "errata", "reason": "r", "planned_at": at, "state": state,
             "updated_at": at, "audit_seq": seq, "kind": "restate"}
        ],
        "chunk": [
            {"run_id": run_id, "chunk_id": name, "position": m, "partitions": json.dumps([f"day-{m:05d}"]), "rows": 10,
             "bytes": 100, "state": "pending" if is_active and m > 8 else "done", "fence": 1, "tries": 1,
             "output_rows": 9, "audit_seq": seq}
            for m, name in enumerate(chunks)
        ],
        "attempt": [
            {"run_id": run_id, "chunk_id": name, "fence": 1, "owner": "w", "host": "h", "pid": 1,
             "process_started": "p", "state": "adopted", "started_at": at, "heartbeat_at": at, "lease_until": 0,
             "ended_at": at, "seconds": 42.0, "cost": COST, "audit_seq": seq}
            for name in chunks
        ],
        "audit": [
            {"seq": 1 + seq + m, "previous": "p", "hash": f"h{n}-{m}", "at": at, "person": "p", "os_user": "o",
             "host": "h", "single_user": 0, "action": "run.planned" if m == 0 else "chunk.claimed", "run_id": run_id,
             "body": json.dumps({"estimated_usd": "1.50", "verdicts": []})}
            for m in range(25)
        ],
        "publication": [] if is_active else [
            {"pub_id": f"{run_id}-p1", "run_id": run_id, "n": 1, "kind": "publish", "state": "committed",
             "table_name": TABLE, "partitions": DAYS, "person": "errata", "reason": "", "undo_branch": "u",
             "release": "{}", "previous_run_state": "validated", "intended_at": at, "settled_at": at, "lease_until": 0,
             "audit_seq": seq}
        ],
        "outbox_item": [
            {"item_id": n * 4 + m, "key": f"{run_id}/{m}", "queue": "q", "effect": "tell", "event": "published",
             "consumer": f"c{m}", "run_id": run_id, "table_name": f"{TABLE}{n % 20}", "partitions": "[]",
             "payload": "{}", "state": "owed" if is_active else "paid", "seq": n * 4 + m, "at": at, "audit_seq": seq}
            for m in range(4)
        ],
    }  # fmt: skip
