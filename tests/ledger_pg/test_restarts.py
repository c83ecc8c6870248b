"""The database goes away while workers work: they wait, nothing is lost and nothing happens twice."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from typing import Any

import pytest

from errata.errors import LedgerUnavailable
from errata.ledger import Ledger
from errata.model.run import RunState
from ledger_pg import workers
from support.chaos import amount
from support.postgres import PostgresServer
from unit.ledger.steps import ANA, actions, bring, plan

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["pytest", "tenacity", "sqlalchemy.dialects.postgresql.psycopg", "errata.ledger"])


@pytest.fixture
def own(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that may be stopped; the one that all tests share may not."""
    server = PostgresServer.start()
    yield server
    server.remove()


@pytest.mark.parametrize(
    "chunks, every",
    [
        (40, 1.0),
        pytest.param(200, 2.0, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param(amount("RESTARTED", 2000), 5.0, marks=[pytest.mark.chaos, pytest.mark.timeout(7200)]),
    ],
)
def test_a_run_survives_restarts(own: PostgresServer, chunks: int, every: float):
    """Four workers, a server that is stopped or crashes every few seconds: each chunk is adopted once, all verifies."""
    url = own.create_database("ledger")
    with Ledger.open(url) as ledger:
        plan(ledger, chunks=chunks)
        bring(ledger, "bf-1", RunState.RUNNING)
        results: Any = SERVER.Queue()
        processes = [SERVER.Process(target=workers.finish_chunks, args=(url, 0.05, results)) for _ in range(4)]
        for process in processes:
            process.start()
        downs = 0
        while any(process.is_alive() for process in processes) and results.qsize() < 4:
            time.sleep(every)
            (own.stop if downs % 2 else own.kill)()
            time.sleep(0.3 * (downs % 3))
            own.start_again()
            downs += 1
        taken = [attempt for _ in processes for attempt in results.get(timeout=60)]
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        assert downs >= 3
        counts = ledger.progress.counts("bf-1")
        assert (counts.done, counts.total, counts.rows, counts.recomputed) == (chunks, chunks, chunks, 0)
        assert len(taken) == len(set(taken)) == chunks
        log = actions(ledger)
        assert (log.count("chunk.claimed"), log.count("chunk.adopted"), log.count("attempt.lost")) == (
            chunks,
            chunks,
            0,
        )
        assert ledger.audit.verify().ok
        assert ledger.missing_triggers() == ()
        print(f"\n{chunks} chunks, {downs} restarts: each adopted once")  # noqa: T201


def test_a_server_that_stays_away_is_told(own: PostgresServer):
    """Patience ends; the error says that nothing was changed, and the same ledger goes on when the server is back."""
    with Ledger.open(own.create_database("ledger") + "?errata_patience=1") as ledger:
        plan(ledger)
        own.stop()
        for act in (ledger.runs.list, lambda: ledger.audit.note(None, ANA, "note")):
            with pytest.raises(LedgerUnavailable) as gone:
                act()
            assert "nothing was changed" in str(gone.value.state)
            assert gone.value.retryable
        own.start_again()
        ledger.audit.note(None, ANA, "note")
        assert actions(ledger) == ["run.planned", "note"]
