"""Workers of a long run: retries, control from elsewhere, canary, throttle, health, proof of determinism."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest

from errata.cli.app.failure import error_to_data
from errata.cli.app.session import to_json_text
from errata.errors import ErrataError, RunFailed, ValidationRejected
from errata.views import ValidateView
from support.clock import stopped_clock
from support.memory_world import MemoryWorld, build

Make = Callable[..., MemoryWorld]
Rows = list[dict[str, Any]]
ONE_DAY = "1"  # bytes: every day is a chunk of its own


def failing(error: BaseException, *, when: Callable[[Any], bool] | None = None) -> Callable[[Any, Any], Rows]:
    """The transform that raises this where ``when`` is true, or the first time only."""
    calls: list[int] = []

    def transform(ctx: Any, raw: Any) -> Rows:
        calls.append(1)
        if when(ctx) if when else len(calls) == 1:
            raise error
        return build(ctx, raw)

    return transform


def plus_one(ctx: Any, raw: Any) -> Rows:
    """The transform with an error that the gate finds."""
    return [{**row, "gross": row["gross"] + 1} for row in build(ctx, raw)]


def actions(world: MemoryWorld, run: str) -> list[str]:
    return [entry.action for entry in world.client.audit_log(run)]


def until(met: Callable[[], Any], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < ends, "waited too long"
        time.sleep(0.02)


class Background:
    """A worker in a thread of its own."""

    def __init__(self, world: MemoryWorld, run: str, **options: Any) -> None:
        self.view: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(world, run, options), daemon=True)
        self._thread.start()

    def _work(self, world: MemoryWorld, run: str, options: dict[str, Any]) -> None:
        try:
            self.view = world.client.run(run, as_="ana", **options)
        except BaseException as error:  # noqa: BLE001 - shown by join
            self.error = error

    def join(self, seconds: float = 60.0) -> Any:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the worker did not stop"
        if self.error is not None:
            raise self.error
        return self.view


class Polls:
    """A sleep that lets a worker look again at once, and counts how often it did."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _seconds: float) -> None:
        self.count += 1
        time.sleep(0.01)


def finish(world: MemoryWorld, run: str) -> None:
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_what_may_pass_is_tried_again_by_itself(make_world: Make) -> None:
    """A time-out costs one attempt and a pause; nobody has to say retry."""
    with stopped_clock() as clock:
        world = make_world(days=1, transform=failing(TimeoutError("java.net.SocketTimeoutException")), sleep=clock.move)
        run = world.to("approved")
        began = clock.at
        view = world.client.run(run, as_="ana")
        assert (view.state, view.recomputed) == ("staged", 1)
        assert actions(world, run).count("chunk.again") == 1
        assert 4 <= (clock.at - began).total_seconds() <= 8
        finish(world, run)


def test_a_chunk_that_never_works_is_quarantined_and_the_rest_goes_on(make_world: Make) -> None:
    """After its attempts it waits for a person; retry gives it new ones."""
    gone = failing(TimeoutError("java.net.ConnectException"), when=lambda ctx: ctx.partitions[0] == "2026-01-02")
    with stopped_clock() as clock:
        world = make_world(days=3, chunk_bytes=ONE_DAY, transform=gone, sleep=clock.move)
        world.configure("chunk_bytes: 1", "chunks: {bytes: 1, attempts: 3}")
        run = world.to("approved")
        with pytest.raises(RunFailed) as failed:
            world.client.run(run, as_="ana")
        counts = failed.value.fields["run"].chunks
        assert (counts.done, counts.quarantined) == (2, 1)
        attempts = [a for a in world.ledger.progress.attempts(run) if a.error_code == "engine"]
        assert len(attempts) == 3
        assert world.client.retry(run, as_="ana").state == "running"


def test_out_of_memory_makes_chunks_smaller(make_world: Make) -> None:
    """A chunk of four days that takes too much is computed in pieces, and the attempt says why."""
    hungry = failing(MemoryError("Java heap space"), when=lambda ctx: len(ctx.partitions) > 2)
    world = make_world(days=4, transform=hungry)
    run = world.to("approved")
    view = world.client.run(run, as_="ana")
    assert (view.state, view.chunks.total) == ("staged", 4)
    progress = world.ledger.progress
    assert [a.error_code for a in progress.attempts(run) if a.state.value == "failed"] == ["memory"]
    assert {chunk.origin for chunk in progress.chunks(run)} == {"c001"}
    finish(world, run)


def test_a_full_disk_parks_the_run_and_costs_the_chunk_nothing(make_world: Make) -> None:
    """The worker stops with a clear error; the same command goes on when there is room again."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=failing(OSError(28, "full")))
    run = world.to("approved")
    with pytest.raises(ErrataError) as stopped:
        world.client.run(run, parallel=1, as_="ana")
    assert stopped.value.code == "storage"
    assert "free space" in (stopped.value.hint or "")
    assert world.client.status(run).state == "running"
    view = world.client.run(run, as_="ana")
    assert view.state == "staged"
    assert all(chunk.tries == 1 for chunk in world.ledger.progress.chunks(run))
    finish(world, run)


def test_pause_and_resume_from_elsewhere(make_world: Make) -> None:
    """Chunks in flight finish, nothing new starts, and the waiting worker goes on after resume."""
    gate, polls = threading.Event(), Polls()

    def waiting(ctx: Any, raw: Any) -> Rows:
        assert gate.wait(60)
        return build(ctx, raw)

    world = make_world(days=3, chunk_bytes=ONE_DAY, transform=waiting, sleep=polls)
    run = world.to("approved")
    worker = Background(world, run, parallel=1)
    until(lambda: world.client.status(run).chunks.running == 1)
    assert world.client.pause(run, as_="ana").state == "paused"
    gate.set()
    until(lambda: world.client.status(run).chunks.done == 1)
    looked = polls.count
    until(lambda: polls.count >= looked + 5)
    counts = world.client.status(run).chunks
    assert (counts.done, counts.running, counts.pending) == (1, 0, 2)
    world.client.resume(run, as_="ana")
    assert worker.join().state == "staged"
    finish(world, run)


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
    world = make_world(days=3, chunk_bytes=ONE_DAY, transform=plus_one)
    run = world.to("approved", canary=1)
    for _ in range(2):
        with pytest.raises(ValidationRejected, match="canary did not pass: 2026-01-03"):
            world.client.run(run, as_="ana")
        status = world.client.status(run)
        assert (status.state, status.chunks.done, status.chunks.pending) == ("rejected", 1, 2)
    assert world.rows() == world.wrong()


def test_every_worker_of_a_run_that_its_canary_ended_answers_with_the_verdict(make_world: Make) -> None:
    """The JSON error has what ``errata validate`` puts into it: the whole view, under ``validation``."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=plus_one)
    run = world.to("approved", canary=1)
    told = []
    for _ in range(2):
        with pytest.raises(ValidationRejected) as refused:
            world.client.run(run, as_="ana")
        told.append(json.loads(to_json_text(error_to_data(refused.value)))["error"])
    assert told[0] == told[1]
    assert told[0].keys() == {"code", "message", "hint", "state", "retryable", "validation"}
    view = told[0]["validation"]
    assert view.keys() == {field.name for field in fields(ValidateView)}
    assert (view["run_id"], view["state"], view["passed"]) == (run, "rejected", False)
    assert {check["level"] for check in view["checks"]} == {"ok", "block"}
    assert {check["partition"] for check in view["checks"]} <= {"2026-01-02", None}
    assert world.rows(view["snapshot_id"]), "the candidate can be looked at"


def test_a_canary_that_cannot_be_computed_stops_the_rest(make_world: Make) -> None:
    """What waits behind it is not computed; the run fails and waits for a person."""
    broken = failing(ValueError("bad code"), when=lambda _: True)
    world = make_world(days=2, chunk_bytes=ONE_DAY, transform=broken)
    run = world.to("approved", canary=1)
    with pytest.raises(RunFailed, match="bad code"):
        world.client.run(run, as_="ana")
    assert world.client.status(run).chunks.pending == 1


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


def test_a_health_signal_pauses_and_resumes_the_run_by_itself(make_world: Make) -> None:
    """No chunk starts while the signal is bad; every change is audited with its reading."""
    project = "health:\n  - {name: lag, command: [none], pause_above: 100, resume_below: 50, every: 1s}\n"
    polls = Polls()
    world = make_world(days=2, chunk_bytes=ONE_DAY, project=project, sleep=polls)
    world.engines.probes.values["lag"] = Decimal(500)
    run = world.to("approved")
    worker = Background(world, run)
    until(lambda: "throttle.pause" in actions(world, run) and polls.count >= 5)
    assert "chunk.claimed" not in actions(world, run)
    world.engines.probes.values["lag"] = Decimal(10)
    assert worker.join().state == "staged"
    changes = [e for e in world.client.audit_log(run) if e.action in ("throttle.pause", "throttle.go")]
    assert [(e.action, e.body["reading"]) for e in changes] == [("throttle.pause", "500"), ("throttle.go", "10")]
    finish(world, run)


def test_limits_hold_over_the_whole_run(make_world: Make) -> None:
    """Two commits an hour: two chunks, then nothing starts; a worker may leave and come back."""
    polls, limits = Polls(), "throttle: {chunks: 1, commits_per_hour: 2}\n"
    world = make_world(days=3, chunk_bytes=ONE_DAY, project=limits, sleep=polls)
    run = world.to("approved")
    assert world.client.run(run, parallel=3, max_chunks=2, as_="ana").chunks.done == 2
    worker = Background(world, run)
    until(lambda: any("commits per hour" in line for line in world.said) and polls.count >= 5)
    assert world.client.status(run).chunks.done == 2
    world.client.cancel(run, reason="no longer needed", as_="ana")
    worker.join()
