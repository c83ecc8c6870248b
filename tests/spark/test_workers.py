"""Workers of a long run: retries, control from elsewhere, canary, order, throttle, health, proof of determinism."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from errata.cli.app.failure import error_to_data
from errata.cli.app.session import to_json_text
from errata.errors import CostCapReached, ErrataError, Nondeterministic, RunFailed, ValidationRejected
from errata.views import ValidateView
from support.world import PRODUCT_FILE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own


def wrapped(body: str) -> str:
    """The transform with something done first; ``_build`` is the right one."""
    return TRANSFORM + f"\n_build = build\n\n\ndef build(ctx, raw):\n{body}\n    return _build(ctx, raw)\n"


def once(marker: Path, failure: str) -> str:
    """Fails the first time only."""
    return wrapped(
        f"    from pathlib import Path\n    mark = Path({str(marker)!r})\n"
        f"    if not mark.exists():\n        mark.touch()\n        {failure}\n"
    )


def actions(world: World, run: str) -> list[str]:
    return [entry.action for entry in world.client.audit_log(run)]


def until(met: Callable[[], Any], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < ends, "waited too long"
        time.sleep(0.05)


class Background:
    """A worker in a thread of its own."""

    def __init__(self, world: World, run: str, **options: Any) -> None:
        self.view: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(world, run, options), daemon=True)
        self._thread.start()

    def _work(self, world: World, run: str, options: dict[str, Any]) -> None:
        try:
            self.view = world.client.run(run, as_="ana", **options)
        except BaseException as error:  # noqa: BLE001 - shown by join
            self.error = error

    def join(self, seconds: float = 120.0) -> Any:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the worker did not stop"
        if self.error is not None:
            raise self.error
        return self.view


def finish(world: World, run: str) -> None:
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_what_may_pass_is_tried_again_by_itself(make_world: Make, tmp_path: Path, monkeypatch: Any) -> None:
    """A time-out costs one attempt and a pause; nobody has to say retry."""
    monkeypatch.setattr("errata.worker.chunk_failures.FIRST_WAIT", 0.1)
    world = make_world(
        days=1, transform=once(tmp_path / "mark", "raise TimeoutError('java.net.SocketTimeoutException')")
    )
    run = world.to("approved")
    view = world.client.run(run, as_="ana")
    assert (view.state, view.recomputed) == ("staged", 1)
    assert actions(world, run).count("chunk.again") == 1
    finish(world, run)


def test_a_chunk_that_never_works_is_quarantined_and_the_rest_goes_on(make_world: Make, monkeypatch: Any) -> None:
    """After its attempts it waits for a person; retry gives it new ones."""
    monkeypatch.setattr("errata.worker.chunk_failures.FIRST_WAIT", 0.01)
    body = "    if ctx.partitions[0] == '2026-01-02':\n        raise TimeoutError('java.net.ConnectException')"
    world = make_world(days=3, chunk_bytes=ONE_DAY, transform=wrapped(body))
    world.configure("chunk_bytes: 1", "chunks: {bytes: 1, attempts: 3}")
    run = world.to("approved")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    counts = failed.value.fields["run"].chunks
    assert (counts.done, counts.quarantined) == (2, 1)
    attempts = [a for a in world.ledger.progress.attempts(run) if a.error_code == "engine"]
    assert len(attempts) == 3
    assert world.client.retry(run, as_="ana").state == "running"


def test_out_of_memory_makes_chunks_smaller(world_at: WorldAt) -> None:
    """A chunk of four days that takes too much is computed in pieces, and the attempt says why."""
    body = "    if len(ctx.partitions) > 2:\n        raise MemoryError('java.lang.OutOfMemoryError: Java heap space')"
    world, run = world_at("approved", days=4, transform=wrapped(body))
    view = world.client.run(run, as_="ana")
    assert (view.state, view.chunks.total) == ("staged", 4)
    ledger = world.ledger
    assert [a.error_code for a in ledger.progress.attempts(run) if a.state.value == "failed"] == ["memory"]
    assert {chunk.origin for chunk in ledger.progress.chunks(run)} == {"c001"}
    finish(world, run)


def test_a_full_disk_parks_the_run_and_costs_the_chunk_nothing(world_at: WorldAt, tmp_path: Path) -> None:
    """The worker stops with a clear error; the same command goes on when there is room again."""
    world, run = world_at(
        "approved", days=2, chunk_bytes=ONE_DAY, transform=once(tmp_path / "mark", "raise OSError(28, 'full')")
    )
    with pytest.raises(ErrataError) as stopped:
        world.client.run(run, parallel=1, as_="ana")
    assert stopped.value.code == "storage"
    assert "free space" in (stopped.value.hint or "")
    assert world.client.status(run).state == "running"
    view = world.client.run(run, as_="ana")
    assert view.state == "staged"
    assert all(chunk.tries == 1 for chunk in world.ledger.progress.chunks(run))
    finish(world, run)


def test_pause_and_resume_from_elsewhere(world_at: WorldAt, tmp_path: Path) -> None:
    """Chunks in flight finish, nothing new starts, and the waiting worker goes on after resume."""
    gate = tmp_path / "gate"
    body = (
        "    import time\n    from pathlib import Path\n"
        f"    while not Path({str(gate)!r}).exists():\n        time.sleep(0.02)"
    )
    world, run = world_at("approved", days=3, chunk_bytes=ONE_DAY, transform=wrapped(body))
    worker = Background(world, run, parallel=1)
    until(lambda: world.client.status(run).chunks.running == 1)
    assert world.client.pause(run, as_="ana").state == "paused"
    gate.touch()
    until(lambda: world.client.status(run).chunks.done == 1)
    time.sleep(2.5)
    counts = world.client.status(run).chunks
    assert (counts.done, counts.running, counts.pending) == (1, 0, 2)
    world.client.resume(run, as_="ana")
    assert worker.join().state == "staged"
    finish(world, run)


def test_cancel_now_stops_the_spark_jobs_within_a_heartbeat(world_at: WorldAt, monkeypatch: Any) -> None:
    """The worker learns it from its lease, its jobs are cancelled, and nothing is adopted."""
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "2")
    slow = wrapped(
        "    import time\n    raw = raw.filter(F.udf(lambda a: time.sleep(20) or True, 'boolean')('account'))"
    )
    world, run = world_at("approved", days=1, transform=slow)
    worker = Background(world, run)
    until(lambda: world.client.status(run).chunks.running == 1)
    time.sleep(2)
    began = time.monotonic()
    assert world.client.cancel(run, reason="no longer needed", now=True, as_="ana").state == "cancelled"
    worker.join(15)
    assert time.monotonic() - began < 15
    assert world.client.status(run).chunks.done == 0
    assert world.rows() == world.wrong()


def test_the_rest_waits_for_the_canary(make_world: Make) -> None:
    """The declared days are computed and judged first; then the rest may start, and the estimate is refined."""
    world = make_world(days=4, chunk_bytes=ONE_DAY)
    run = world.to("approved", canary=1)
    view = world.client.run(run, parallel=4, as_="ana")
    assert view.state == "staged"
    log = actions(world, run)
    judged = log.index("fact.canary")
    assert log[:judged].count("chunk.claimed") == 1
    assert log[judged:].count("chunk.claimed") == 3
    fact = world.ledger.facts.list(run)["canary"]
    assert fact["partitions"] == ["2026-01-04"]
    assert "1 chunk of this run" in fact["basis"]
    finish(world, run)


def test_a_canary_that_does_not_pass_stops_the_rest(make_world: Make) -> None:
    """The run is rejected with the check's own words, and no other chunk was ever computed."""
    world = make_world(
        days=3, chunk_bytes=ONE_DAY, transform=TRANSFORM.replace('F.sum("amount")', '(F.sum("amount") + 1)')
    )
    run = world.to("approved", canary=1)
    for _ in range(2):
        with pytest.raises(ValidationRejected, match="canary did not pass: 2026-01-03"):
            world.client.run(run, as_="ana")
        status = world.client.status(run)
        assert (status.state, status.chunks.done, status.chunks.pending) == ("rejected", 1, 2)
    assert world.rows() == world.wrong()


def test_every_worker_of_a_run_that_its_canary_ended_answers_with_the_verdict(make_world: Make) -> None:
    """The JSON error has what ``errata validate`` puts into it: the whole view, under ``validation``."""
    wrong = TRANSFORM.replace('F.sum("amount")', '(F.sum("amount") + 1)')
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=wrong)
    run = world.to("approved", canary=1)
    told = []
    for _ in range(2):
        with pytest.raises(ValidationRejected) as refused:
            world.client.run(run, as_="ana")
        told.append(json.loads(to_json_text(error_to_data(refused.value)))["error"])
    assert told[0] == told[1]
    assert told[0].keys() == {"code", "message", "hint", "state", "validation"}
    view = told[0]["validation"]
    assert view.keys() == {field.name for field in fields(ValidateView)}
    assert (view["run_id"], view["state"], view["passed"]) == (run, "rejected", False)
    assert {check["level"] for check in view["checks"]} == {"ok", "block"}
    assert {check["partition"] for check in view["checks"]} <= {"2026-01-02", None}
    assert world.rows(int(view["snapshot_id"])), "the candidate can be looked at"


def test_a_canary_that_cannot_be_computed_stops_the_rest(make_world: Make) -> None:
    """What waits behind it is not computed; the run fails and waits for a person."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=wrapped("    raise ValueError('bad code')"))
    run = world.to("approved", canary=1)
    with pytest.raises(RunFailed, match="bad code"):
        world.client.run(run, as_="ana")
    assert world.client.status(run).chunks.pending == 1


OWN = PRODUCT_FILE.replace("publish: {", "  previous: {own: true, lookback: 1d}\npublish: {").replace(
    'reconcile:\n  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', ""
)
RUNNING_TOTAL = """
from pyspark.sql import functions as F


def build(ctx, raw, previous):
    today = raw.groupBy("day", "account").agg(F.sum("amount").alias("amount"), F.count("*").alias("n"))
    before = previous.select("account", F.col("gross").alias("before"))
    total = (F.col("amount") + F.coalesce("before", F.lit(0))).cast("decimal(12,2)")
    return today.join(before, "account", "left").select("day", "account", total.alias("gross"), "n")
"""


def test_a_sequential_product_sees_what_it_staged_before(make_world: Make) -> None:
    """Each day stands on the day before as this run computed it, and the first on the table as it was."""
    world = make_world(days=4, product=OWN, transform=RUNNING_TOTAL)
    run = world.to("approved", "2026-01-02..2026-01-04")
    view = world.client.run(run, parallel=4, as_="ana")
    assert (view.state, view.chunks.total) == ("staged", 3)
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    right = {(day, account): gross for day, account, gross, _ in world.expected()}
    total = {account: gross * 2 for (day, account), gross in right.items() if day == "2026-01-01"}
    expected = []
    for day in world.days[1:]:
        total = {account: total[account] + right[day, account] for account in total}
        expected += [(day, account, gross) for account, gross in total.items()]
    assert [row[:3] for row in world.rows() if row[0] != "2026-01-01"] == sorted(expected)


def test_the_proof_of_determinism_lets_a_pure_transform_run(make_world: Make) -> None:
    """Sample chunks are computed twice, once per run, and nothing of that is staged."""
    world = make_world(days=3, chunk_bytes=ONE_DAY)
    run = world.to("approved", prove_determinism=2)
    world.client.run(run, max_chunks=1, as_="ana")
    proof = world.ledger.facts.list(run)["determinism"]
    assert len(proof["chunks"]) == 2
    world.client.run(run, as_="ana")
    assert actions(world, run).count("fact.determinism") == 1
    finish(world, run)


@pytest.mark.parametrize(
    "column",
    [
        "F.rand()",
        "F.monotonically_increasing_id() % 1000",
        "F.current_timestamp().cast('double') % 1000",
        "F.hash(F.uuid()) % 1000",
    ],
)
def test_a_transform_that_is_not_deterministic_is_refused(make_world: Make, column: str) -> None:
    """Before a chunk of the long run starts; the error names the partitions and what to use instead."""
    body = f"    raw = raw.withColumn('amount', (raw.amount + {column}).cast('decimal(12,2)'))"
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=wrapped(body))
    run = world.to("approved", prove_determinism=1)
    with pytest.raises(Nondeterministic, match="computed twice gave different rows for 2026-01-0"):
        world.client.run(run, as_="ana")
    status = world.client.status(run)
    assert (status.state, status.chunks.pending) == ("failed", 2)


def test_a_health_signal_pauses_and_resumes_the_run_by_itself(make_world: Make) -> None:
    """No chunk starts while the signal is bad; every change is audited with its reading."""
    project = "health:\n  - {name: lag, command: [cat, lag.txt], pause_above: 100, resume_below: 50, every: 1s}\n"
    world = make_world(days=2, chunk_bytes=ONE_DAY, project=project)
    lag = world.root / "lag.txt"
    lag.write_text("500\n")
    run = world.to("approved")
    worker = Background(world, run)
    until(lambda: "throttle.pause" in actions(world, run))
    time.sleep(1.5)
    assert "chunk.claimed" not in actions(world, run)
    lag.write_text("10\n")
    assert worker.join().state == "staged"
    changes = [e for e in world.client.audit_log(run) if e.action in ("throttle.pause", "throttle.go")]
    assert [(e.action, e.body["reading"]) for e in changes] == [("throttle.pause", "500"), ("throttle.go", "10")]
    finish(world, run)


def test_limits_hold_over_the_whole_run(world_at: WorldAt) -> None:
    """Two commits an hour: two chunks, then nothing starts; a worker may leave and come back."""
    world, run = world_at(
        "approved", days=3, chunk_bytes=ONE_DAY, project="throttle: {chunks: 1, commits_per_hour: 2}\n"
    )
    assert world.client.run(run, parallel=3, max_chunks=2, as_="ana").chunks.done == 2
    worker = Background(world, run)
    until(lambda: any("commits per hour" in line for line in world.said))
    assert world.client.status(run).chunks.done == 2
    world.client.cancel(run, reason="no longer needed", as_="ana")
    worker.join()


def test_a_run_stops_hard_at_its_cap(make_world: Make) -> None:
    """What it has cost is money; at the cap nothing new starts and the error says what to do."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, project="price: {core_hour_usd: 0.01}\n")
    world.configure("max_partitions: 400", "max_partitions: 400, max_usd: 60")
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    cost = world.ledger.progress.attempts(run)[0].cost
    assert min(cost["jobs"], cost["tasks"], cost["core_ms"], cost["output_bytes"]) > 0
    world.configure("core_hour_usd: 0.01", "core_hour_usd: 9999999")
    with pytest.raises(CostCapReached, match="expected at most 60 USD"):
        world.client.run(run, as_="ana")
    assert world.client.status(run).state == "paused"
