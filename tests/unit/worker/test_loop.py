"""The worker's loop with a real ledger and an engine that computes nothing: who is waited for, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errata.canonical import canonical_bytes
from errata.errors import CostCapReached, LedgerUnavailable
from errata.ledger import Ledger, Owner, current_owner
from errata.model.audit import Actor
from errata.model.chunk_outcome import ChunkOutcome
from errata.model.manifest import Chunk
from errata.model.partition import Grain
from errata.model.product.throttle import Throttle
from errata.model.run import ChunkState, RunState
from errata.ports.compute import StagedOutput
from errata.worker import loop as looping
from errata.worker.attempt import RunJob
from errata.worker.loop import work_until_done

ANA = Actor("ana", "ana-os", "workspace")
RUN = "bf-1"
DAYS = tuple(f"2026-01-0{n}" for n in range(1, 5))
ELSEWHERE = Owner("w9", "elsewhere", 1, "boot/ns/1")


class Engine:
    """Computes nothing, and always succeeds."""

    def __init__(self) -> None:
        self.computed: list[tuple[str, ...]] = []

    def check_sources(self, work: Any) -> None:
        pass

    def append(self, work: Any) -> None:
        self.computed.append(work.chunk.partitions)

    def cost(self, work: Any) -> dict[str, int]:
        return {}

    def cancel(self, work: Any) -> None:
        pass

    def find_attempt(self, target: Any, attempt: str) -> StagedOutput:
        return StagedOutput(f"s-{attempt}", ())


class Small:
    """A run of four days, a day a chunk, and a workspace to work on it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.engine, self.said = ledger, Engine(), list[str]()
        chunks = [Chunk(f"c{n:03d}", (day,), 10, 100) for n, day in enumerate(DAYS, 1)]
        ledger.runs.record(
            RUN,
            canonical_bytes({"format": "errata.manifest/1", "reason": "x"}),
            product="p", table="t", partitions=DAYS, chunks=chunks, parts={}, actor=ANA,
        )  # fmt: skip
        ledger.runs.move(RUN, RunState.APPROVED, actor=ANA)
        ledger.runs.move(RUN, RunState.RUNNING, actor=ANA)
        self.manifest = SimpleNamespace(
            order="newest", inputs=(), partitions=DAYS, overrides=(), product="p",
            target=SimpleNamespace(grain=Grain.DAY), limits=SimpleNamespace(max_usd=None),
        )  # fmt: skip
        self.project = SimpleNamespace(chunk_bytes=1, core_hour_usd="0")

    def job(self) -> RunJob:
        engines = SimpleNamespace(chunks=self.engine, staging=self.engine, probes=SimpleNamespace(read=None))
        workspace = SimpleNamespace(
            ledger=self.ledger, engines=engines, narrate=self.said.append, project=self.project, product=lambda _: None
        )
        progress = SimpleNamespace(show=lambda *_: None, advance=lambda *_: None)
        run: Any = self.ledger.runs.get(RUN)
        return RunJob(workspace, ANA, run, self.manifest, {}, progress, 5)  # type: ignore[arg-type]

    def work(self, seconds: float = 20.0, **options: Any) -> None:
        """Work on the run; a loop that does not end fails the test."""
        wanted: dict[str, Any] = {"parallel": 1, "max_chunks": None, "throttle": Throttle(), "health": ()}
        failed: list[BaseException] = []

        def go() -> None:
            try:
                work_until_done(self.job(), current_owner("w1"), **(wanted | options))
            except BaseException as error:  # noqa: BLE001 - raised again below
                failed.append(error)

        worker = threading.Thread(target=go, daemon=True)
        worker.start()
        worker.join(seconds)
        if worker.is_alive():
            self.ledger.runs.move(RUN, RunState.CANCELLED, actor=ANA)
            pytest.fail(f"the worker does not come to an end; it said {self.said}")
        if failed:
            raise failed[0]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    monkeypatch.setattr(looping, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr("errata.worker.ledger_wait._PAUSE_SECONDS", 0.05)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield Small(ledger)


@pytest.mark.parametrize("throttle", [Throttle(chunks=1), Throttle(wave=1), Throttle(commits_per_hour=100, chunks=1)])
def test_a_limit_does_not_keep_the_chunk_of_a_dead_worker(small: Small, throttle: Throttle) -> None:
    """What its worker left counts as in flight until another worker looks after it, however tight the limits."""
    attempt = small.ledger.chunks.claim(RUN, ELSEWHERE, lease_seconds=0.0, actor=ANA, is_dead=lambda _: False)
    assert attempt is not None
    small.work(throttle=throttle)
    assert small.ledger.progress.counts(RUN).done == 4
    assert len(small.said) < 20, "a worker that waits says so once"


def test_a_run_at_its_cap_with_nothing_left_is_not_stopped(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap keeps chunks from starting; where none is left there is nothing to stop."""
    monkeypatch.setattr("errata.worker.budget.count_worker_cores", lambda *_: 1)
    small.work()
    small.manifest.limits.max_usd, small.project.core_hour_usd = "0.01", "99999999"
    small.work()
    assert small.ledger.runs.get(RUN).state is RunState.RUNNING


def test_a_run_at_its_cap_stops_while_chunks_are_left(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is paused, and the error is the cap's."""
    monkeypatch.setattr("errata.worker.budget.count_worker_cores", lambda *_: 1)
    small.work(max_chunks=1)
    small.manifest.limits.max_usd, small.project.core_hour_usd = "0.01", "99999999"
    with pytest.raises(CostCapReached):
        small.work()
    assert small.ledger.runs.get(RUN).state is RunState.PAUSED


def test_a_run_with_a_cap_does_not_start_chunks_that_have_no_price(small: Small) -> None:
    """Whoever takes the price out of the project does not take the cap out of the plan."""
    small.manifest.limits.max_usd, small.project.core_hour_usd = "0.01", "0"
    with pytest.raises(CostCapReached, match="price of 0 USD per core-hour"):
        small.work()
    assert small.ledger.progress.counts(RUN).done == 0


@pytest.mark.parametrize("name", ["counts", "chunks", "attempts"])
def test_a_ledger_that_does_not_answer_for_a_while_costs_no_chunk(
    small: Small, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Wherever the loop asks it: the worker waits, and what is in flight goes on."""
    small.project.chunk_bytes = None
    monkeypatch.setattr("errata.worker.repack_waiting.RESIZE_AFTER_CHUNKS", (1, 2, 3, 4))
    monkeypatch.setattr("errata.worker.repack_waiting.count_worker_cores", lambda *_: 1)
    small.project.chunk_seconds = 120
    small.manifest.inputs = (SimpleNamespace(own=False),)
    whole, calls = getattr(small.ledger.progress, name), list[str]()

    def shaky(*args: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) % 2:
            raise LedgerUnavailable("not now")
        return whole(*args, **options)

    monkeypatch.setattr(type(small.ledger.progress), name, lambda _, *args, **options: shaky(*args, **options))
    small.work(parallel=2)
    monkeypatch.undo()
    assert calls
    assert sorted(day for days in small.engine.computed for day in days) == list(DAYS)


def test_a_worker_waits_for_a_paused_run_from_the_pause_on(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it waited before for other reasons does not count."""
    monkeypatch.setattr(looping, "MAX_PAUSED_SECONDS", 1.5)
    held = [True]
    monkeypatch.setattr(looping, "_find_throttle_wait", lambda _: looping.ThrottleWait("not yet") if held else None)

    def control() -> None:
        threading.Event().wait(2.0)
        small.ledger.runs.move(RUN, RunState.PAUSED, actor=ANA)
        threading.Event().wait(0.5)
        held.clear()
        small.ledger.runs.move(RUN, RunState.RUNNING, actor=ANA)

    threading.Thread(target=control, daemon=True).start()
    small.work()
    assert small.ledger.progress.counts(RUN).done == 4


def test_pieces_of_a_chunk_that_was_cut_are_not_packed_together_again(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are small because together they took their worker with them."""
    small.project.chunk_bytes, small.project.chunk_seconds = None, 120
    monkeypatch.setattr("errata.worker.repack_waiting.RESIZE_AFTER_CHUNKS", (1, 2, 3))
    monkeypatch.setattr("errata.worker.repack_waiting.count_worker_cores", lambda *_: 1)
    attempt = small.ledger.chunks.claim(RUN, ELSEWHERE, lease_seconds=60, actor=ANA)
    assert attempt is not None
    small.ledger.outcomes.repack(RUN, [Chunk("", DAYS[1:], 30, 300)], ANA, "one chunk")
    big = small.ledger.chunks.claim(RUN, ELSEWHERE, lease_seconds=60, actor=ANA)
    assert big is not None
    assert big.partitions == DAYS[1:]
    pieces = tuple((day,) for day in DAYS[1:])
    small.ledger.chunks.fail(
        big,
        error_code="memory",
        message="",
        actor=ANA,
        lost_worker=True,
        fate=lambda _: ChunkOutcome(ChunkState.REPLACED, pieces=pieces),
    )
    small.ledger.chunks.give_back(attempt, actor=ANA)
    small.work()
    assert sorted(small.engine.computed) == [(day,) for day in DAYS]


def test_a_sequential_run_keeps_its_order_however_often_a_chunk_is_cut(small: Small) -> None:
    """Pieces of pieces come before what follows them."""
    small.manifest.order = "sequential"
    small.ledger.outcomes.repack(RUN, [Chunk("", DAYS, 40, 400)], ANA, "one chunk")

    def cut(*pieces: tuple[str, ...]) -> None:
        attempt = small.ledger.chunks.claim(RUN, ELSEWHERE, lease_seconds=60, actor=ANA, in_order=True)
        assert attempt is not None
        small.ledger.chunks.fail(
            attempt,
            error_code="memory",
            message="",
            actor=ANA,
            fate=lambda _: ChunkOutcome(ChunkState.REPLACED, pieces=pieces),
        )

    cut(DAYS[:2], DAYS[2:])
    cut(DAYS[:1], DAYS[1:2])
    small.work()
    assert small.engine.computed == [DAYS[:1], DAYS[1:2], DAYS[2:]]
