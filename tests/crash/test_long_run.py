"""A long run that is killed goes on where it stopped: only chunks in flight are computed again.

The lake is the one of ``examples/clv``; what was published is compared row by row with a calculation by DuckDB.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from examples.clv import demo, generate, history, independent, workshop
from examples.clv.lake import FIRST_DAY, Lake
from examples.finsight.command import Errata

from errata.wiring import build_client, open_workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.wiring.engines import ProjectEngines

pytestmark = [pytest.mark.spark]

Open = Callable[[int, int], "Shop"]


class Shop:
    """The example's project with so many wrong days, and its client on the shared session."""

    def __init__(self, root: Path, spark: SparkSession, days: int, chunks: int) -> None:
        self.root, self.days = root, days
        self.lake, self.ledger = Lake(root / "lake"), root / ".errata" / "ledger.db"
        per_day = 40 if days < 1000 else 100
        generate.generate(self.lake.root, count=days, events_per_day=per_day)
        size = sum(path.stat().st_size for path in self.lake.events.rglob("*.parquet"))
        # all days in one wave: these tests are about chunks
        workshop.lay_out_over(root, chunk_kilobytes=max(1, size // chunks // 1000), wave_days=days)
        workspace = open_workspace(root, spark=spark, narrate=lambda _: None)
        self.client = build_client(workspace)
        session = cast("ProjectEngines", workspace.engines).runtime.session
        history.write_history(session, self.lake, count=days)

    def approved(self, reason: str) -> tuple[str, int]:
        """A run over all days, ready to start, and its number of chunks."""
        end = FIRST_DAY + timedelta(self.days)
        plan = self.client.plan(demo.PRODUCT, FIRST_DAY.isoformat(), end.isoformat(), reason=reason, as_="ana")
        self.client.approve(plan.id, digest=plan.digest, as_="bo")
        return plan.id, len(plan.chunks)

    def publish(self, run: str) -> None:
        assert self.client.validate(run, as_="ana").passed
        self.client.publish(run, as_="bo")


@pytest.fixture
def open_shop(base_spark: SparkSession, tmp_path: Path) -> Iterator[Open]:
    made: list[Shop] = []

    def make(days: int, chunks: int) -> Shop:
        made.append(Shop(tmp_path / "shop", base_spark, days, chunks))
        return made[-1]

    yield make
    for shop in made:
        shop.client.close()


def killed_at(shop: Shop, run: str, partitions: int) -> tuple[set[str], set[str], float]:
    """A worker process, killed with its JVM when so many partitions are done; chunks done, in flight, seconds."""
    worker = workshop.Worker(shop.root, "killed", run)
    started = time.monotonic()
    try:
        while independent.partitions_done(shop.ledger, run) < partitions:
            assert not worker.ended, f"the worker ended by itself: {worker.log.read_text()}"
            time.sleep(0.05)
        worker.kill()
    finally:
        worker.stop()
    took = time.monotonic() - started
    found = independent.attempts(shop.ledger, run)
    return {c for c, _, _, how in found if how == "adopted"}, {c for c, _, _, how in found if how == "running"}, took


@pytest.mark.slow
def test_a_killed_run_recomputes_only_what_was_in_flight(open_shop: Open) -> None:
    """Killed at two thirds of 120 days in some chunks; the same command in another process finishes it."""
    shop = open_shop(120, 8)
    run, chunks = shop.approved("killed")
    assert chunks >= 6
    done, in_flight, _ = killed_at(shop, run, 80)
    view = shop.client.run(run, as_="ana")
    again = {chunk for chunk, fence, _, _ in independent.attempts(shop.ledger, run) if fence > 1}
    assert (view.state, view.recomputed) == ("staged", len(in_flight))
    assert again == in_flight
    assert not again & done
    shop.publish(run)
    assert independent.compare(shop.lake).wrong == 0
    told = f"{len(done)} of {chunks} chunks were done, {sorted(in_flight)} in flight and computed again"
    print(told)  # noqa: T201  shown with -rP and when it fails


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_1825_partitions_killed_at_1200_cost_little_more_than_an_uninterrupted_run(open_shop: Open) -> None:
    """Both workers together against one that was left alone, each a whole process; the ratio is printed."""
    shop = open_shop(1825, 45)
    alone, chunks = shop.approved("left alone")
    assert chunks >= 40
    whole = finished(shop, alone)
    shop.client.cancel(alone, reason="no longer needed", as_="ana")

    run, chunks = shop.approved("killed")
    done, in_flight, first = killed_at(shop, run, 1200)
    second = finished(shop, run)
    again = {chunk for chunk, fence, _, _ in independent.attempts(shop.ledger, run) if fence > 1}
    allowed = 1 + len(in_flight) / chunks + 0.03
    print(  # noqa: T201  shown with -rP and when it fails
        f"{chunks} chunks; alone {whole:.1f} s; killed after {first:.1f} s with {len(done)} chunks done and "
        f"{len(in_flight)} in flight; finished by a second worker in {second:.1f} s. Both ÷ alone = "
        f"{(first + second) / whole:.3f}; the goal is {allowed:.3f} plus one start of Spark"
    )
    assert again == in_flight
    assert not again & done
    Errata(shop.root).ask("ana", "validate", run)
    Errata(shop.root).ask("bo", "publish", run)
    found = independent.compare(shop.lake)
    assert (found.days, found.wrong) == (1825, 0)


def finished(shop: Shop, run: str) -> float:
    """A worker process that works until nothing is left; its seconds."""
    started = time.monotonic()
    worker = workshop.Worker(shop.root, "finishing", run)
    try:
        worker.wait(1500)
    finally:
        worker.stop()
    return time.monotonic() - started
