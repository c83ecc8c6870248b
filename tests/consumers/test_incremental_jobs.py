"""A real incremental job on PostgreSQL reads corrected partitions again, once: counts and keys tell."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from errata.delivery.payment import pay
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState
from support.clock import Clock
from support.memory_world import MemoryWorld as World
from support.postgres import PostgresServer

Make = Callable[..., World]
Row = tuple[str, str, Decimal]
ACTOR = Actor("ana", "ana", "host")


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Job:
    """Reads the days after its watermark, replaces what it made of them, and remembers how far it came."""

    world: World
    server: PostgresServer
    database: str
    replaces: bool = True

    def create(self) -> None:
        self.execute(
            "CREATE TABLE etl_state (job text PRIMARY KEY, high_water date)",
            "INSERT INTO etl_state VALUES ('features', NULL)",
            "CREATE TABLE features (day date, account text, gross numeric(12, 2))",
        )

    def execute(self, *statements: str) -> list[Any]:
        return self.server.execute(*statements, database=self.database)

    @property
    def watermark(self) -> str | None:
        ((found,),) = self.execute("SELECT high_water::text FROM etl_state")
        return None if found is None else str(found)

    def run(self) -> list[Row]:
        """One run; returns the rows that it read."""
        with psycopg.connect(self.server.url(self.database).replace("+psycopg", "")) as conn:
            (since,) = conn.execute("SELECT high_water::text FROM etl_state FOR UPDATE").fetchone() or (None,)
            rows = [(day, account, gross) for day, account, gross, _ in self.world.rows() if day > (since or "")]
            days = sorted({day for day, *_ in rows})
            if self.replaces:
                conn.execute("DELETE FROM features WHERE day = ANY(%s::date[])", (days,))
            conn.cursor().executemany("INSERT INTO features VALUES (%s, %s, %s)", rows)
            if days:
                conn.execute("UPDATE etl_state SET high_water = %s", (days[-1],))
        return rows

    def features(self) -> list[Row]:
        return sorted(self.execute("SELECT day::text, account, gross FROM features"))


def _project(server: PostgresServer, database: str) -> str:
    return f"""
warehouses:
  pg: {{type: postgres, uri: "{server.url(database).replace("+psycopg", "")}"}}
consumers:
  features:
    reads: [fin.sales]
    kind: watermark
    state: {{on: pg, table: public.etl_state, key: {{job: features}}, column: high_water}}
    verify: {{sql: "SELECT sum(gross) FROM features WHERE day = '{{partition}}'", on: pg, equals: sum(gross)}}
"""


@pytest.fixture
def job(make_world: Make, postgres: PostgresServer, database: str) -> Job:
    """The job after its first run, on five days."""
    world = make_world(days=5, project=_project(postgres, database))
    found = Job(world, postgres, database)
    found.create()
    assert len(found.run()) == len(world.rows())
    return found


def _pay(world: World, clock: Clock, times: int = 1) -> None:
    for _ in range(times):
        clock.move(700)
        pay(world.workspace, ACTOR, seconds=60)


def _rows(world: World) -> list[Row]:
    return sorted((day, account, gross) for day, account, gross, _ in world.rows())


def _state(world: World, effect: Effect) -> ItemState:
    return [one.state for one in world.ledger.outbox.list() if one.effect is effect][-1]


def test_the_next_run_reads_exactly_the_corrected_partitions_once(job: Job, clock: Clock) -> None:
    """Rows, keys and counts: the corrected days are read once more and nothing else; the run after reads nothing."""
    world, last = job.world, job.world.days[3:]
    run = world.to("published", f"{last[0]}..{last[1]}")
    assert (job.watermark, world.client.status(run).recovery) == (world.days[2], "pending")
    read = job.run()
    assert sorted(read) == [row for row in _rows(world) if row[0] in last]
    assert max(Counter((day, account) for day, account, _ in read).values()) == 1
    assert (job.run(), job.features() == _rows(world)) == ([], True)
    _pay(world, clock)
    assert world.client.status(run).recovery == "recovered"


def test_days_after_the_correction_are_read_again_too(job: Job, clock: Clock) -> None:
    """A watermark has no gaps: all from the earliest corrected day on is read once; no row is lost or doubled."""
    world = job.world
    run = world.to("published", world.days[1])
    read = job.run()
    assert (sorted({day for day, *_ in read}), len(read)) == (list(world.days[1:]), len(set(read)))
    assert (job.run(), job.features() == _rows(world)) == ([], True)
    _pay(world, clock)
    assert world.client.status(run).recovery == "recovered"
    world.client.rollback(run, reason="wrong", as_="bo")
    assert (job.watermark, len(job.run()), job.features() == _rows(world)) == (world.days[0], len(read), True)


def test_a_payer_that_dies_after_the_move_does_not_move_it_again(job: Job, clock: Clock) -> None:
    """The job has read again before the item is paid for good: there is no third reading."""
    world, hits = job.world, []

    def die() -> None:
        hits.append(1)
        if len(hits) == 2:  # the first one is for the look at the watermark
            raise Killed

    with arm("deliver.after_pay", die), pytest.raises(Killed):
        world.to("published", world.days[4])
    assert (job.watermark, _state(world, Effect.WATERMARK)) == (world.days[3], ItemState.OWED)
    assert {day for day, *_ in job.run()} == {world.days[4]}
    _pay(world, clock, 2)
    assert (job.watermark, _state(world, Effect.WATERMARK)) == (world.days[4], ItemState.PAID)
    assert (job.run(), job.features() == _rows(world)) == ([], True)


def test_a_job_at_work_is_waited_for_and_its_new_watermark_is_left_to_a_person(job: Job, clock: Clock) -> None:
    """It holds its row locked and moves on: the value is not the one on record, so nothing is moved."""
    world, looked = job.world, threading.Event()
    with psycopg.connect(job.server.url(job.database).replace("+psycopg", "")) as conn:
        conn.execute("SELECT * FROM etl_state FOR UPDATE")

        def go_on() -> None:
            looked.wait(10)
            conn.execute("UPDATE etl_state SET high_water = '2026-02-01'")
            conn.commit()

        worker = threading.Thread(target=go_on)
        worker.start()
        with arm("deliver.after_pay", looked.set):
            run = world.to("published", world.days[4])
        worker.join()
    assert (job.watermark, _state(world, Effect.WATERMARK)) == ("2026-02-01", ItemState.FAILED)
    (item,) = (one for one in world.ledger.outbox.list() if one.effect is Effect.WATERMARK)
    assert "it was 2026-01-05 when this began and is 2026-02-01 now" in (item.last_error or "")
    assert world.client.status(run).recovery == "failed"
    world.client.retry_outbox([str(item.item_id)], as_="ana")
    _pay(world, clock)
    assert job.watermark == world.days[3]


def test_a_job_that_appends_is_found_out(job: Job, clock: Clock) -> None:
    """It reads again and doubles its rows: what it shows is not what was published."""
    world = job.world
    run = world.to("published", world.days[4])
    job.replaces = False
    job.run()
    _pay(world, clock, 12)
    status = world.client.status(run)
    (line,) = status.recoveries
    assert (status.recovery, line.consumer) == ("failed", "features")
    assert line.error is not None
    assert line.error.startswith("features shows")
