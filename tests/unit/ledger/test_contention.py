"""Several processes on one ledger: nothing is done twice, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from errata.errors import EngineError
from errata.ledger import Ledger, current_owner, is_owner_dead
from errata.ledger.db.database import Database, Tx
from errata.model.run import AttemptState, RunState
from support.chaos import amount
from support.forks import FORKS
from support.ids import numbered
from unit.ledger import contenders
from unit.ledger.steps import ANA, actions, adopt, bring, claim, must_claim, plan, run_in


def together(count: int, target: Callable[..., None], url: str) -> list[Any]:
    """Run ``target`` in ``count`` processes that start at the same moment."""
    start, results = FORKS.Barrier(count), FORKS.Queue()
    processes = [FORKS.Process(target=target, args=(url, start, results)) for _ in range(count)]
    for process in processes:
        process.start()
    found = [results.get(timeout=7200) for _ in processes]  # the test has its own end
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    results.close()
    results.join_thread()
    return found


@pytest.mark.parametrize(
    "processes, chunks",
    [
        (16, 96),
        pytest.param(16, 1000, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
        pytest.param(16, amount("CHUNKS", 5000), marks=[pytest.mark.chaos, pytest.mark.timeout(7200)]),
    ],
)
def test_no_chunk_is_claimed_twice(ledger: Ledger, url: str, processes: int, chunks: int):
    """Processes that start together share the chunks: each is computed by exactly one, once."""
    plan(ledger, chunks=chunks)
    bring(ledger, "bf-1", RunState.RUNNING)
    taken = together(processes, contenders.work, url)
    attempts = [attempt for one in taken for attempt in one]
    assert len(attempts) == len(set(attempts)) == chunks
    counts = ledger.progress.counts("bf-1")
    assert (counts.done, counts.recomputed, counts.rows) == (chunks, 0, chunks)
    assert ledger.audit.verify().ok
    shares = sorted(len(one) for one in taken)
    assert shares[0] or chunks < 1000, "a process got nothing"
    print(f"\n{chunks} chunks, {processes} processes: none twice; {shares[0]} to {shares[-1]} each")  # noqa: T201


def test_two_reapers_spend_one_attempt(ledger: Ledger, url: str):
    """Everyone sees the same expired lease at the same moment; one takes over, and one attempt is spent."""
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    must_claim(ledger, lease=0)
    found = together(4, contenders.reap, url)
    assert sorted(found, key=str) == [2, None, None, None]
    assert [attempt.state for attempt in ledger.progress.attempts("bf-1")] == [AttemptState.LOST, AttemptState.RUNNING]
    assert ledger.progress.chunks("bf-1")[0].tries == 2
    assert actions(ledger).count("attempt.lost") == 1


def test_a_new_ledger_is_created_and_a_plan_recorded_once(new_url: str):
    """Four processes that all find nothing make one ledger and one run."""
    found = together(4, contenders.create_and_plan, new_url)
    assert len({(ledger_id, digest) for ledger_id, digest, _ in found}) == 1
    assert sorted(already for _, _, already in found) == [False, True, True, True]
    with Ledger.open(new_url, create=False) as ledger:
        assert actions(ledger) == ["run.planned"]
        assert ledger.missing_triggers() == ()


def test_a_run_is_published_once(ledger: Ledger, url: str):
    """Four publishers at once: one intent, one outcome, three refusals on the record."""
    run_in(ledger, RunState.VALIDATED)
    found = together(4, contenders.publish, url)
    assert sorted(map(numbered, found)) == ["bf-1-p1", "state", "state", "state"]
    assert actions(ledger).count("publish.committed") == 1
    assert actions(ledger).count("refused") == 3


def test_a_killed_worker_is_taken_over_at_once(ledger: Ledger, url: str, tmp_path: Path):
    """A process that is gone loses its chunk long before its lease ends; a living one does not."""
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    said = tmp_path / "said"
    process = FORKS.Process(target=contenders.claim_and_hang, args=(said, url))
    process.start()
    until = time.monotonic() + 60
    while not said.exists() or not said.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert ledger.chunks.claim("bf-1", current_owner(), lease_seconds=60, actor=ANA) is None
    process.kill()
    process.join(60)
    attempt = ledger.chunks.claim("bf-1", current_owner(), lease_seconds=60, actor=ANA)
    assert attempt is not None
    assert attempt.fence == 2
    assert not is_owner_dead(attempt.owner)
    adopt(ledger, attempt)


def test_a_lock_held_for_long_is_waited_for(database: Database, url: str):
    """A busy database is tried again as a whole transaction; for ever is not waited."""
    soon = "timeout=0.01" if url.startswith("sqlite") else "options=-c lock_timeout=10ms"
    with closing(Database(f"{url}?{soon}", busy_seconds=0.5)) as other:
        other.read(other.clock)  # it is open; an error while opening would be another one
        calls: list[int] = []

        def work(tx: Tx) -> int:
            calls.append(tx.head_seq)
            return tx.head_seq

        def hold(_: Tx) -> None:
            with pytest.raises(EngineError, match="lock"):
                other.write(work)

        database.write(hold)
        assert calls == []
        assert other.write(work) == 0


@pytest.mark.parametrize("skew", [-600, 600])
def test_a_worker_s_own_clock_decides_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, skew: int):
    """Ten minutes wrong either way: no lease is taken early, none is given longer, and an expired one is taken."""
    plan(ledger, chunks=1)
    bring(ledger, "bf-1", RunState.RUNNING)
    theirs = must_claim(ledger, lease=60)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + skew)
    monkeypatch.setattr(time, "time_ns", lambda: int((real() + skew) * 1e9))
    assert claim(ledger) is None
    assert ledger.chunks.heartbeat(theirs, 0)
    mine = must_claim(ledger, lease=60)
    assert mine.fence == 2
    assert abs(mine.lease_until - (real() + 60) * 1000) < 30_000
    assert abs(ledger.now_ms() - real() * 1000) < 30_000
