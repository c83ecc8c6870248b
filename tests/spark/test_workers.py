"""Workers on Spark: jobs that are cancelled, days that stand on the day before, hidden chance, and cost.

``tests/protocol/test_workers.py`` has the rules of a worker that need no Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import CostCapReached, Nondeterministic
from support.world import PRODUCT_FILE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own


def wrapped(body: str) -> str:
    """The transform with something done first; ``_build`` is the right one."""
    return TRANSFORM + f"\n_build = build\n\n\ndef build(ctx, raw):\n{body}\n    return _build(ctx, raw)\n"


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


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", id="during a job", marks=pytest.mark.slow),
        pytest.param("time.sleep(6)", id="before its next job"),
    ],
)
def test_cancel_now_stops_the_spark_jobs_within_a_heartbeat(
    world_at: WorldAt, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The worker learns it from its lease, also between two jobs; none of them runs on, and nothing is adopted."""
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "2")
    slow = wrapped(
        f"    import time\n    {before or 'pass'}\n"
        "    raw = raw.filter(F.udf(lambda a: time.sleep(20) or True, 'boolean')('account'))"
    )
    world, run = world_at("approved", days=1, transform=slow)
    worker = Background(world, run)
    until(lambda: world.client.status(run).chunks.running == 1)
    time.sleep(2)
    assert world.client.cancel(run, reason="no longer needed", now=True, as_="ana").state == "cancelled"
    worker.join(15)
    assert world.client.status(run).chunks.done == 0
    assert world.rows() == world.wrong()


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
    world = make_world(days=3, product=OWN, transform=RUNNING_TOTAL)
    run = world.to("approved", "2026-01-02..2026-01-03")
    view = world.client.run(run, parallel=4, as_="ana")
    assert (view.state, view.chunks.total) == ("staged", 2)
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    right = {(day, account): gross for day, account, gross, _ in world.expected()}
    total = {account: gross * 2 for (day, account), gross in right.items() if day == "2026-01-01"}
    expected = []
    for day in world.days[1:]:
        total = {account: total[account] + right[day, account] for account in total}
        expected += [(day, account, gross) for account, gross in total.items()]
    assert [row[:3] for row in world.rows() if row[0] != "2026-01-01"] == sorted(expected)


@pytest.mark.parametrize(
    "column",
    [
        "F.rand()",
        pytest.param("F.monotonically_increasing_id() % 1000", marks=pytest.mark.slow),
        pytest.param("F.current_timestamp().cast('double') % 1000", marks=pytest.mark.slow),
        pytest.param("F.hash(F.uuid()) % 1000", marks=pytest.mark.slow),
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
