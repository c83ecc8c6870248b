"""The database goes away while workers work: they wait, nothing is lost and nothing happens twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from errata.errors import LedgerUnavailable
from errata.ledger import Ledger
from errata.model.run import RunState
from ledger_pg import workers
from support.chaos import amount
from support.forks import FORKS
from support.postgres import PostgresServer
from unit.ledger.steps import ANA, actions, bring, plan


@pytest.fixture
def own(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that may be stopped; the one that all tests share may not."""
    server = PostgresServer.start()
    yield server
    server.remove()


@pytest.mark.parametrize(
    "chunks, restarts",
    [
        (40, 4),
        pytest.param(200, 10, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param(amount("RESTARTED", 2000), 20, marks=[pytest.mark.chaos, pytest.mark.timeout(7200)]),
    ],
)
def test_a_run_survives_restarts(own: PostgresServer, chunks: int, restarts: int):
    """Four workers, a server that is stopped or crashes while they work: each chunk is adopted once, all verifies."""
    url = own.create_database("ledger")
    with Ledger.open(url) as ledger:
        plan(ledger, chunks=chunks)
        bring(ledger, "bf-1", RunState.RUNNING)
        results: Any = FORKS.Queue()
        may_start: Any = FORKS.Semaphore(0)
        processes = [
            FORKS.Process(target=workers.finish_chunks, args=(url, 0.05, may_start, results)) for _ in range(4)
        ]
        for process in processes:
            process.start()
        # Chunks are handed out in portions, and the server goes away while each portion is being worked on.
        for number in range(restarts):
            finished = ledger.progress.counts("bf-1").done
            for _ in range(chunks * number // restarts, chunks * (number + 1) // restarts):
                may_start.release()
            while ledger.progress.counts("bf-1").done == finished:
                time.sleep(0.01)
            (own.stop if number % 2 else own.kill)()
            time.sleep(0.3 * (number % 3))
            own.start_again()
        # most chunks are still to be done: the server goes away as soon as one of each portion is finished
        patience = 60 + chunks / 4
        taken = [attempt for _ in processes for attempt in results.get(timeout=patience)]
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
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
        print(f"\n{chunks} chunks, {restarts} restarts: each adopted once")  # noqa: T201


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
