"""Dashboards on a real Redis and a real PostgreSQL: old before, old until refreshed, right afterwards, or named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from consumers.receiver import Answer, Received, Receiver
from errata.delivery.payment import pay
from errata.model.audit import Actor
from support.clock import Clock
from support.memory_world import MemoryWorld as World
from support.postgres import PostgresServer
from support.redis import RedisServer

Make = Callable[..., World]
ACTOR = Actor("ana", "ana", "host")


@dataclass
class Dashboard:
    """Shows the total of a day: from its cache, or from the table, and then it caches that."""

    world: World
    cache: RedisServer

    def look(self, day: str) -> str:
        found = self.cache.client.get(f"rev:{day}:total")
        return str(found) if found is not None else self.fill(day, self.read(day))

    def read(self, day: str) -> str:
        return str(sum((gross for name, _, gross, _ in self.world.rows() if name == day), Decimal(0)))

    def fill(self, day: str, value: str) -> str:
        self.cache.client.set(f"rev:{day}:total", value)
        return value


def _cached(cache: RedisServer, more: str = "") -> str:
    return f"""
consumers:
  exec-dashboard:
    reads: [fin.sales]
    refresh: [{{redis: "{cache.uri}", delete: "rev:{{partition}}:*"}}]
    verify: {{redis: "{cache.uri}", get: "rev:{{partition}}:total", equals: sum(gross)}}
{more}"""


def _pay(world: World, clock: Clock, times: int = 1, seconds: float = 700) -> None:
    for _ in range(times):
        clock.move(seconds)
        pay(world.workspace, ACTOR, seconds=60)


def test_a_cached_value_is_old_until_it_is_refreshed(make_world: Make, cache: RedisServer, clock: Clock) -> None:
    """Correct data with an old dashboard is not recovered; after the refresh and the read-back it is. So after a
    rollback."""
    world = make_world(days=2, project=_cached(cache))
    screen, day = Dashboard(world, cache), world.days[0]
    old = screen.look(day)
    other = screen.look(world.days[1])
    cache.client.config_set("maxclients", "1")  # Errata finds no place on the server
    run = world.to("published", day)
    right = screen.read(day)
    assert (screen.look(day), right != old) == (old, True)
    assert world.client.status(run).recovery == "pending"
    cache.client.config_set("maxclients", "1000")
    _pay(world, clock, times=2)
    assert (world.client.status(run).recovery, screen.look(day), screen.look(world.days[1])) == (
        "recovered",
        right,
        other,
    )
    world.client.rollback(run, reason="wrong", as_="bo")
    _pay(world, clock)
    assert (world.client.status(run).recovery, screen.look(day)) == ("recovered", old)


def test_a_reader_that_fills_the_cache_with_old_data_is_caught_by_refill(
    make_world: Make, cache: RedisServer, clock: Clock
) -> None:
    """It fetched before the publication and wrote after the first delete."""
    world = make_world(days=1, project=_cached(cache, "    refill: 60s\n"))
    screen, day = Dashboard(world, cache), world.days[0]
    fetched = screen.look(day)
    run = world.to("published")
    screen.fill(day, fetched)
    assert (screen.look(day) == fetched, world.client.status(run).recovery) == (True, "pending")
    _pay(world, clock)
    (line,) = world.client.status(run).recoveries
    assert line.error == f"exec-dashboard shows {fetched} for {day}, expected {screen.read(day)}"
    _pay(world, clock)
    assert (world.client.status(run).recovery, screen.look(day)) == ("recovered", screen.read(day))


def test_a_cache_that_keeps_lying_ends_as_failed_with_its_name(
    make_world: Make, cache: RedisServer, clock: Clock
) -> None:
    """A process writes the old value back all the time."""
    world = make_world(days=1, project=_cached(cache))
    screen, day = Dashboard(world, cache), world.days[0]
    old, stop = screen.look(day), threading.Event()

    def lie() -> None:
        while not stop.is_set():
            screen.fill(day, old)

    liar = threading.Thread(target=lie)
    liar.start()
    try:
        run = world.to("published")
        _pay(world, clock, times=10)
    finally:
        stop.set()
        liar.join()
    status = world.client.status(run)
    (line,) = status.recoveries
    assert (status.state, status.recovery, line.consumer) == ("published", "failed", "exec-dashboard")
    assert line.error == f"exec-dashboard shows {old} for {day}, expected {screen.read(day)}"


def test_a_materialized_view_shows_what_was_published(
    make_world: Make, postgres: PostgresServer, database: str, clock: Clock
) -> None:
    """The view is refreshed after the publication and after the rollback, and both are read back."""
    uri = postgres.url(database).replace("+psycopg", "")
    world = make_world(
        days=2,
        project=f"""
warehouses:
  pg: {{type: postgres, uri: "{uri}"}}
consumers:
  exec-dashboard:
    reads: [fin.sales]
    refresh: [{{sql: "REFRESH MATERIALIZED VIEW CONCURRENTLY mv_revenue", on: pg}}]
    verify: {{sql: "SELECT gross FROM mv_revenue WHERE day = '{{partition}}'", on: pg, equals: sum(gross)}}
""",
    )
    postgres.execute("CREATE TABLE sales (day date, gross numeric(12, 2))", database=database)
    _mirror(world, postgres, database)
    postgres.execute(
        "CREATE MATERIALIZED VIEW mv_revenue AS SELECT day, sum(gross) AS gross FROM sales GROUP BY day",
        "CREATE UNIQUE INDEX ON mv_revenue (day)",
        database=database,
    )
    shown = [("SELECT gross::text FROM mv_revenue ORDER BY day",), {"database": database}]
    old = postgres.execute(*shown[0], **shown[1])
    run = world.to("published")
    # the database behind the lake is a little late
    assert world.client.status(run).recovery == "pending"
    assert postgres.execute(*shown[0], **shown[1]) == old
    _mirror(world, postgres, database)
    _pay(world, clock)
    assert world.client.status(run).recovery == "recovered"
    assert postgres.execute(*shown[0], **shown[1]) != old
    world.client.rollback(run, reason="wrong", as_="bo")
    assert world.client.status(run).recovery == "pending"
    _mirror(world, postgres, database)
    _pay(world, clock)
    assert (world.client.status(run).recovery, postgres.execute(*shown[0], **shown[1])) == ("recovered", old)


def _mirror(world: World, postgres: PostgresServer, database: str) -> None:
    """What another job copies from the lake."""
    rows = ", ".join(f"('{day}', {gross})" for day, _, gross, _ in world.rows())
    postgres.execute("TRUNCATE sales", f"INSERT INTO sales VALUES {rows}", database=database)


def test_a_dashboard_behind_http_that_fails_hangs_and_lies(
    make_world: Make, receive: Callable[..., Receiver], clock: Clock
) -> None:
    """Each attempt has the same key; only the right answer ends it."""
    told: list[str] = []
    world: World

    def answer(request: Received) -> Answer:
        if request.method == "POST":
            told.append(request.headers["idempotency-key"])
            return Answer(503) if len(told) == 1 else Answer(202)
        day = request.path.rpartition("/")[2]
        right = sum((gross for name, _, gross, _ in world.rows() if name == day), Decimal(0))
        return Answer(200, f'{{"total": {right * (2 if len(told) < 4 else 1)}}}'.encode())

    at = receive(answer)
    world = make_world(
        days=1,
        project=f"""
consumers:
  exec-dashboard:
    reads: [fin.sales]
    refresh: [{{http: {{url: "{at.url}/refresh"}}}}]
    verify: {{http: {{url: "{at.url}/total/{{partition}}", method: GET}}, field: total, equals: sum(gross)}}
""",
    )
    run = world.to("published")
    (line,) = world.client.status(run).recoveries
    assert line.error == "step 1 of refresh of exec-dashboard: the address answered HTTP 503"
    _pay(world, clock)
    (line,) = world.client.status(run).recoveries
    assert (line.state, "exec-dashboard shows" in (line.error or "")) == ("pending", True)
    _pay(world, clock, times=2)
    assert world.client.status(run).recovery == "recovered"
    assert len(set(told)) == 1
