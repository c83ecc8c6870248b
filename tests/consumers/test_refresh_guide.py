"""What the guide on refreshing shows is true: its project files load and work on real servers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from errata.delivery.payment import pay
from errata.model.audit import Actor
from support.clock import Clock
from support.memory_world import MemoryWorld as World
from support.postgres import PostgresServer
from support.redis import RedisServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/refresh-what-consumers-show.md").read_text("utf-8")
ACTOR = Actor("ana", "ana", "host")
# the guide's product, in the words of the project that tests have
WORDS = {"fin.daily_revenue": "fin.sales", "revenue_usd": "gross", "business_date": "day"}


def _blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    for old, new in WORDS.items():
        found = [one.replace(old, new) for one in found]
    return found


def test_the_declared_consumers_recover(
    make_world: Callable[..., World], cache: RedisServer, postgres: PostgresServer, database: str, clock: Clock
) -> None:
    """The dashboard and the job of the guide, with its grants, from the old numbers to recovered."""
    dashboard, verifies, job, rerun = _blocks("yaml")
    role, (keys,) = "errata_delivery", _blocks("sql")
    postgres.execute(
        f"DROP ROLE IF EXISTS {role}",
        f"CREATE ROLE {role} LOGIN",
        "CREATE TABLE sales (day date, gross numeric(12, 2))",
        "CREATE TABLE features (day date, gross numeric(12, 2))",
        "CREATE TABLE etl_state (job text PRIMARY KEY, high_water date)",
        "INSERT INTO etl_state VALUES ('features', '2026-01-31')",
        *keys.strip().split(";\n"),
        f"GRANT SELECT ON features TO {role}",
        f"GRANT CREATE ON SCHEMA public TO {role}",
        f"GRANT ALL ON sales TO {role}",
        f"SET ROLE {role}",
        # only its owner may refresh a view
        "CREATE MATERIALIZED VIEW mv_revenue AS SELECT day, sum(gross) AS gross FROM sales GROUP BY day",
        "CREATE UNIQUE INDEX ON mv_revenue (day)",
        database=database,
    )
    address = postgres.url(database, role=role).replace("+psycopg", "")
    text = dashboard + job.replace("consumers:\n", "")
    for name, value in {"${BI_DATABASE}": address, "${BI_CACHE}": cache.uri}.items():
        text = text.replace(name, value)
    world = make_world(days=3, project=text)
    _mirror(world, postgres, database)
    cache.client.mset({f"rev:{world.days[0]}:total": "1", f"rev:{world.days[2]}:total": "1"})
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    assert set(cache.client.keys()) == {f"rev:{world.days[2]}:total"}
    assert postgres.execute("SELECT high_water::text FROM etl_state", database=database) == [("2025-12-31",)]
    _mirror(world, postgres, database)
    postgres.execute("UPDATE etl_state SET high_water = '2026-01-31'", database=database)
    for _ in range(3):
        clock.move(700)
        pay(world.workspace, ACTOR, seconds=60)
    assert world.client.status(run).recovery == "recovered"
    postgres.execute(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}", database=database)
    assert ("rerun:" in rerun, verifies.count("verify:")) == (True, 3)


def _mirror(world: World, postgres: PostgresServer, database: str) -> None:
    """What other jobs copy from the lake."""
    for table in ("sales", "features"):
        rows = ", ".join(f"('{day}', {gross})" for day, _, gross, _ in world.rows())
        postgres.execute(f"TRUNCATE {table}", f"INSERT INTO {table} VALUES {rows}", database=database)


def test_every_way_to_read_back_is_accepted(make_world: Callable[..., World]) -> None:
    """Each line of the guide loads as the verify of a consumer."""
    lines = [line for block in _blocks("yaml") for line in block.splitlines() if line.startswith("verify:")]
    for line in lines:
        consumer = f"\nconsumers:\n  bi:\n    reads: [fin.sales]\n    {line.replace('${BI_CACHE}', 'redis://h')}\n"
        world = make_world(days=1, project=consumer)
        assert world.workspace.project.consumers["bi"].verify is not None
    assert len(lines) == 3


def test_the_status_of_the_guide_is_one_that_errata_prints() -> None:
    """Line by line."""
    golden = (ROOT / "tests/unit/cli/goldens/status-owed.txt").read_text("utf-8").splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert [line for line in shown.splitlines() if line not in golden] == []


def test_a_command_that_reruns_the_job_loads(make_world: Callable[..., World]) -> None:
    """In place of a state."""
    rerun = _blocks("yaml")[-1]
    world = make_world(
        days=1, project=f"\nconsumers:\n  features:\n    reads: [fin.sales]\n    kind: watermark\n{rerun}"
    )
    assert world.workspace.project.consumers["features"].rerun == ("./rerun_features.sh",)
