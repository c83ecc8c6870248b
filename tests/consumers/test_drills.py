"""Three incidents from beginning to end: a dashboard that stays wrong, a pipeline that breaks, teams that know nothing.

Each goes as it went without Errata, until consumers are declared; then the same incident ends as it should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

from consumers.receiver import Answer, Received, Receiver
from consumers.test_dashboards import Dashboard, _mirror
from consumers.test_incremental_jobs import Job
from errata.delivery.payment import pay
from errata.delivery.recovery_breaches import LATE
from errata.engines.channels.sender import ChannelSender
from errata.failpoints import arm
from errata.model.audit import Actor
from support.clock import Clock
from support.memory_world import MemoryWorld as World
from support.postgres import PostgresServer
from support.redis import RedisServer
from support.stream_model import MemoryReader
from support.world import PRODUCT

Make = Callable[..., World]
ANA = Actor("ana", "ana", "host")
MINUTE = 60


def _total(world: World, day: str) -> str:
    return str(sum((gross for name, _, gross, _ in world.rows() if name == day), Decimal(0)))


def _deliver(world: World, clock: Clock, seconds: float) -> None:
    """What a scheduler does after so much time."""
    clock.move(seconds)
    world.ledger.outbox.retry([one.item_id for one in world.ledger.outbox.list_open()], ANA)
    pay(world.workspace, ANA, seconds=60)


def test_dashboards_that_still_show_the_old_number_after_the_correction(
    make_world: Make, cache: RedisServer, postgres: PostgresServer, database: str,
    receive: Callable[..., Receiver], clock: Clock,
) -> None:  # fmt: skip
    """Data right, dashboards wrong, half an hour: nothing is computed again, three caches are refreshed and read."""
    kept: dict[str, str] = {}  # what the app keeps in its memory
    is_up = False

    def app(request: Received) -> Answer:
        day = request.path.rpartition("/")[2]
        if not is_up:
            return Answer(503)
        if request.method == "POST":
            kept.pop(day, None)
            return Answer(204, b"")
        return Answer(200, f'{{"total": {kept.setdefault(day, _total(world, day))}}}'.encode())

    at = receive(app)
    world = make_world(
        days=3,
        project=f"""
channels:
  stakeholders: {{file: messages.jsonl}}
warehouses:
  pg: {{type: postgres, uri: "{postgres.url(database).replace("+psycopg", "")}"}}
consumers:
  exec-dashboard:
    reads: [fin.sales]
    tell: {{channel: stakeholders, on: [published, recovered]}}
    refresh: [{{redis: "{cache.uri}", delete: "rev:{{partition}}:*"}}]
    verify: {{redis: "{cache.uri}", get: "rev:{{partition}}:total", equals: sum(gross)}}
    recover_within: 30min
  board:
    reads: [fin.sales]
    refresh: [{{sql: "REFRESH MATERIALIZED VIEW CONCURRENTLY mv_revenue", on: pg}}]
    verify: {{sql: "SELECT gross FROM mv_revenue WHERE day = '{{partition}}'", on: pg, equals: sum(gross)}}
    recover_within: 30min
  app:
    reads: [fin.sales]
    refresh: [{{http: {{url: "{at.url}/refresh/{{partition}}"}}}}]
    verify: {{http: {{url: "{at.url}/total/{{partition}}", method: GET}}, field: total, equals: sum(gross)}}
    recover_within: 30min
""",
    )
    screen = Dashboard(world, cache)
    postgres.execute("CREATE TABLE sales (day date, gross numeric(12, 2))", database=database)
    _mirror(world, postgres, database)
    postgres.execute(
        "CREATE MATERIALIZED VIEW mv_revenue AS SELECT day::text, sum(gross)::text AS gross FROM sales GROUP BY day",
        "CREATE UNIQUE INDEX ON mv_revenue (day)",
        database=database,
    )

    def look() -> dict[str, list[str]]:
        """What people see."""
        shown = dict(postgres.execute("SELECT day, gross FROM mv_revenue", database=database))
        return {
            "exec-dashboard": [screen.look(day) for day in world.days],
            "board": [shown[day] for day in world.days],
            "app": [kept.setdefault(day, _total(world, day)) for day in world.days],
        }

    old, (*corrected, other) = look(), world.days
    cache.client.config_set("maxclients", "1")  # nobody can be reached when the correction goes out
    run = world.to("published", f"{corrected[0]}..{corrected[-1]}")
    published = world.snapshot()
    right = [_total(world, day) for day in world.days]
    status = world.client.status(run)
    assert (look(), status.state, status.recovery) == (old, "published", "pending")
    assert {line.state for line in status.recoveries} == {"pending"}
    # the table's clock runs, the ledger's stands
    assert all(29 * MINUTE < (line.seconds_left or 0) < 31 * MINUTE for line in status.recoveries)

    cache.client.config_set("maxclients", "1000")
    is_up = True
    _mirror(world, postgres, database)
    _deliver(world, clock, 20 * MINUTE)
    _deliver(world, clock, 2)
    status = world.client.status(run)
    assert look() == dict.fromkeys(old, right), "what people see is what the table has"
    assert (status.recovery, {line.is_late for line in status.recoveries}) == ("recovered", {False})
    assert (world.snapshot(), status.chunks.done, len(status.publications)) == (published, status.chunks.total, 1)
    assert cache.client.get(f"rev:{other}:total") == right[-1], "the cache of other days was left alone"
    told = [one.occasion.event for one in world.engines.channels.list_once("stakeholders")]
    assert told == ["published", "recovered"]

    world.client.rollback(run, reason="the bank asks to wait", as_="bo")
    _mirror(world, postgres, database)
    _deliver(world, clock, MINUTE)
    _deliver(world, clock, 2)
    assert (look(), world.client.status(run).recovery) == (old, "recovered")
    assert not [entry for entry in world.client.audit_log(run) if entry.action == LATE]


def test_a_correction_that_would_break_incremental_pipelines(
    make_world: Make, postgres: PostgresServer, database: str, clock: Clock
) -> None:
    """A job with a watermark and a stream with a checkpoint go on, without a full reload, a gap or a row twice."""
    world = make_world(
        days=4,
        project=f"""
warehouses:
  pg: {{type: postgres, uri: "{postgres.url(database).replace("+psycopg", "")}"}}
consumers:
  features:
    reads: [fin.sales]
    kind: watermark
    state: {{on: pg, table: etl_state, key: {{job: features}}, column: high_water}}
    verify: {{sql: "SELECT sum(gross) FROM features WHERE day = '{{partition}}'", on: pg, equals: sum(gross)}}
    recover_within: 1h
  fraud: {{reads: [fin.sales], kind: iceberg-stream, checkpoint: cp, on_replace: rewind}}
""",
    )
    job, stream = Job(world, postgres, database), MemoryReader(world, world.root / "cp")
    job.create()
    job.run()
    stream.begin()
    before = {path: path.read_bytes() for path in (world.root / "cp").rglob("*") if path.is_file()}
    had, last = list(stream.rows), world.days[-1]

    plan = world.plan(last)
    said = " ".join(one.message for one in plan.verdicts if one.rule in ("streaming-readers", "consumers"))
    assert "fraud: stops at the overwrite snapshot" in said
    assert "its watermark is moved back" in said
    run = world.to("published", last)
    world.live("2026-01-09", "after")
    assert stream.run(), "without a repair the stream fails from now on"

    read = job.run()
    counts = Counter((day, account) for day, account, _ in read)
    assert (set(counts.values()), {day for day, _ in counts}) == ({1}, {last, "2026-01-09"}), "no full reload"
    assert (job.run(), sorted(job.features())) == ([], sorted((d, a, g) for d, a, g, _ in world.rows()))

    _deliver(world, clock, 10 * MINUTE)
    shown = next(one for one in world.client.check_consumers(PRODUCT).consumers if one.name == "fraud")
    (start,) = [step for step in shown.steps if "checkpointLocation" in step]
    stream.checkpoint = world.root / Path(start.partition("checkpointLocation ")[2].partition(",")[0])
    assert not stream.run()
    assert world.client.confirm_consumer(run, "fraud", as_="ana").is_done
    world.live("2026-01-10", "later")
    assert not stream.run(), "later runs are stable"
    assert stream.rows == [*had, ("2026-01-09", "after"), ("2026-01-10", "later")]
    assert {path: path.read_bytes() for path in before} == before, "the old checkpoint is untouched"
    _deliver(world, clock, MINUTE)
    status = world.client.status(run)
    assert (status.recovery, [line.is_late for line in status.recoveries]) == ("recovered", [False, False])


STEPS = (
    "publish.after_intent", "publish.after_undo", "publish.before_commit", "publish.after_commit",
    "publish.after_record", "deliver.after_claim", "deliver.before_pay", "deliver.after_pay",
)  # fmt: skip


def test_teams_that_read_while_a_correction_goes_on(
    make_world: Make, receive: Callable[..., Receiver], clock: Clock
) -> None:
    """Start and end are announced in order, and true when they arrive; whoever reads sees old or new, whole."""
    heard: dict[str, list[tuple[str, Any]]] = {"risk": [], "finance": []}

    def hear(request: Received) -> Answer:
        heard[request.body["consumer"]].append((request.body["event"], request.body["sequence"]))
        if "finance" in request.path:
            seen[request.body["event"]] = world.rows()
        return Answer()

    seen: dict[str, list[Any]] = {}
    at = receive(hear)
    everything = "[planned, approved, published, recovered, rolled_back]"
    world = make_world(
        days=3,
        project=f"""
channels:
  risk: {{webhook: {{url: "{at.url}/risk"}}}}
  finance: {{webhook: {{url: "{at.url}/finance"}}}}
consumers:
  risk: {{reads: [fin.sales], tell: {{channel: risk, on: {everything}}}}}
  finance: {{reads: [fin.sales], tell: {{channel: finance, on: {everything}}}, refresh: [{{command: ["true"]}}]}}
""",
    )
    world.engines.channels = ChannelSender(world.root)  # type: ignore[assignment]
    old, new = world.wrong(), world.expected()
    run = world.to("approved")
    _deliver(world, clock, MINUTE)
    assert (seen["planned"], seen["approved"]) == (old, old), "they knew before anything changed"
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    reads: list[list[Any]] = []
    with ExitStack() as armed:
        for point in STEPS:
            armed.enter_context(arm(point, lambda: reads.append(world.rows())))
        world.client.publish(run, as_="bo")
    assert len(reads) >= len(STEPS)
    assert all(rows in (old, new) for rows in reads), "nobody reads a mixture"
    assert reads == sorted(reads, key=lambda rows: rows == new), "and nobody the old rows after the new"
    _deliver(world, clock, MINUTE)
    assert (seen["published"], seen["recovered"]) == (new, new)
    world.client.rollback(run, reason="not yet", as_="bo")
    _deliver(world, clock, MINUTE)
    assert seen["rolled_back"] == old
    for team, messages in heard.items():
        events, numbers = [event for event, _ in messages], [number for _, number in messages]
        assert events[:5] == ["planned", "approved", "published", "recovered", "rolled_back"], team
        assert numbers == sorted(set(numbers)), team
