"""The worker's loop with a real ledger and an engine that computes nothing: who is waited for, and when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from decimal import Decimal
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
from errata.model.product.throttle import Signal, Throttle
from errata.model.run import ChunkState, RunState
from errata.ports.compute import StagedOutput
from errata.worker.attempt import RunJob
from errata.worker.loop import MAX_PAUSED_SECONDS, work_until_done

ANA = Actor("ana", "ana-os", "workspace")
RUN = "bf-1"
PRODUCT = SimpleNamespace(throttle=None)
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


class ShakyLedger:
    """A ledger of which one question about progress gets no answer every other time."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger, self.progress = ledger, ShakyProgress(ledger.progress, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class ShakyProgress:
    """See :class:`ShakyLedger`."""

    def __init__(self, progress: Any, name: str) -> None:
        self._progress, self._name, self.calls = progress, name, 0

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            self.calls += 1
            if self.calls % 2:
                raise LedgerUnavailable("not now")
        return getattr(self._progress, name)


class Small:
    """A run of four days, a day a chunk, and a workspace to work on it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.engine, self.said = ledger, Engine(), list[str]()
        self.asked: Any = ledger
        self.lag = Decimal(0)
        chunks = [Chunk(f"c{n:03d}", (day,), 10, 100) for n, day in enumerate(DAYS, 1)]
        ledger.runs.record(
            RUN,
            canonical_bytes({"format": "errata.manifest/1", "reason": "x"}),
            product="p", table="t", partitions=DAYS, chunks=chunks, parts={}, actor=ANA,
        )  # fmt: skip
        ledger.runs.move(RUN, RunState.APPROVED, actor=ANA)
        ledger.runs.move(RUN, RunState.RUNNING, actor=ANA)
        self.manifest = SimpleNamespace(
            erasure=None,
            order="newest", inputs=(), partitions=DAYS, overrides=(), product="p",
            kind="correction", chunks=(), code=SimpleNamespace(version="1", zip_digest="0" * 64),
            target=SimpleNamespace(grain=Grain.DAY, table="db.t"), limits=SimpleNamespace(max_usd=None),
            publish=SimpleNamespace(on_live_write="conflict"),
        )  # fmt: skip
        self.project = SimpleNamespace(
            chunk_bytes=1, core_hour_usd="0", throttle=Throttle(), spark_master="local[1]", spark_conf={}
        )

    def sleep(self, seconds: float) -> None:
        """Time flies."""
        time.sleep(seconds / 20)

    def job(self) -> RunJob:
        engines = SimpleNamespace(
            chunks=self.engine, staging=self.engine, probes=SimpleNamespace(read=lambda _: self.lag)
        )
        workspace = SimpleNamespace(
            ledger=self.asked, engines=engines, narrate=self.said.append, project=self.project,
            product=lambda _: PRODUCT, sleep=self.sleep,
        )  # fmt: skip
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
def small(tmp_path: Path) -> Iterator[Small]:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield Small(ledger)


@pytest.mark.parametrize("throttle", [Throttle(chunks=1), Throttle(burst=1), Throttle(commits_per_hour=100, chunks=1)])
def test_a_limit_does_not_keep_the_chunk_of_a_dead_worker(small: Small, throttle: Throttle) -> None:
    """What its worker left counts as in flight until another worker looks after it, however tight the limits."""
    attempt = small.ledger.chunks.claim(RUN, ELSEWHERE, lease_seconds=0.0, actor=ANA, is_dead=lambda _: False)
    assert attempt is not None
    small.work(throttle=throttle)
    assert small.ledger.progress.counts(RUN).done == 4
    assert len(small.said) < 20, "a worker that waits says so once"


def test_a_run_at_its_cap_with_nothing_left_is_not_stopped(small: Small) -> None:
    """The cap keeps chunks from starting; where none is left there is nothing to stop."""
    small.work()
    small.manifest.limits.max_usd, small.project.core_hour_usd = "0.01", "99999999"
    small.work()
    assert small.ledger.runs.get(RUN).state is RunState.RUNNING


def test_a_run_at_its_cap_stops_while_chunks_are_left(small: Small) -> None:
    """It is paused, and the error is the cap's."""
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
def test_a_ledger_that_does_not_answer_for_a_while_costs_no_chunk(small: Small, name: str) -> None:
    """Wherever the loop asks it: the worker waits, and what is in flight goes on."""
    small.project.chunk_bytes = None
    small.project.chunk_seconds = 120
    small.manifest.inputs = (SimpleNamespace(own=False, is_message_log=False, snapshots=()),)
    small.asked = ledger = ShakyLedger(small.ledger, name)
    small.work(parallel=1)  # so that chunks still wait when two are done, which is when attempts are read
    assert ledger.progress.calls
    assert sorted(day for days in small.engine.computed for day in days) == list(DAYS)


def test_a_worker_waits_for_a_paused_run_from_the_pause_on(small: Small) -> None:
    """What it waited before for other reasons does not count."""
    small.lag = Decimal(950)
    waited = 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited
        before, waited = waited, waited + seconds
        if before <= 2 * MAX_PAUSED_SECONDS // 3 < waited:
            small.ledger.runs.move(RUN, RunState.PAUSED, actor=ANA)
        elif before <= MAX_PAUSED_SECONDS + 60 < waited:
            small.lag = Decimal(0)
            small.ledger.runs.move(RUN, RunState.RUNNING, actor=ANA)
        elif waited > MAX_PAUSED_SECONDS + 60:
            time.sleep(0.1)  # the next reading of the signal is on its way

    small.sleep = sleep  # type: ignore[method-assign]
    small.work(seconds=60, health=(Signal("lag", "command", ("true",), pause_above="900", every_seconds=1),))
    assert small.ledger.progress.counts(RUN).done == 4


def test_pieces_of_a_chunk_that_was_cut_are_not_packed_together_again(small: Small) -> None:
    """They are small because together they took their worker with them."""
    small.project.chunk_bytes, small.project.chunk_seconds = None, 120
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
