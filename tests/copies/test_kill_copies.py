"""``kill -9`` of deliver, publish and rollback at every boundary of a delivery, on real Iceberg and PostgreSQL.

Rows exactly once, one marker done for each delivery, nothing staged, and right after the kill wholly old or wholly new.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from errata.failpoints import NAMES
from support import attached
from support.copy_invariants import assert_copy_invariants
from support.copy_world import CREATE, build_product
from support.postgres import PostgresServer
from support.world import World
from support.worlds import WorldAt

pytestmark = pytest.mark.spark
SOURCE = Path(__file__).resolve().parents[2] / "src"
PROJECT = '\nwarehouses:\n  pg: {type: postgres, uri: "${ERRATA_TEST_COPY}"}\n'
POINTS = tuple(name for name in NAMES if name.startswith("copy."))
QUICK = ("copy.after_open", "copy.before_commit", "copy.after_commit")
Killed = Callable[..., None]


def mostly_slow(points: tuple[str, ...], quick: tuple[str, ...] = QUICK) -> list[Any]:
    return [point if point in quick else pytest.param(point, marks=pytest.mark.slow) for point in points]


@dataclass
class CopiedLake:
    """A governed lake on Iceberg, and its copy."""

    world: World
    run: str
    server: PostgresServer
    database: str

    @property
    def environment(self) -> dict[str, str]:
        url = self.server.url(self.database).replace("+psycopg", "")
        paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
        return {"ERRATA_TEST_COPY": url, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def deliver(self, failpoints: str = "") -> int:
        """`errata deliver` in a process of its own."""
        process = self.start(failpoints, "deliver", "--timeout", "20s")
        _, error = process.communicate(timeout=180)
        assert "Traceback" not in error, error
        return process.returncode or 0

    def deliver_without_jvm(self) -> int:
        """`errata deliver` as people start it; it needs no JVM, and none is there for it."""
        done = subprocess.run(
            [sys.executable, "-m", "errata", "-C", str(self.world.root), "--as", "bo", "deliver", "--timeout", "20s"],
            env=os.environ | self.environment | {"JAVA_HOME": "/nowhere"},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def kill(self, point: str, *arguments: str) -> None:
        """A command that is killed at the point."""
        process = self.start(f"{point}=kill", *arguments)
        _, error = process.communicate(timeout=180)
        assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"

    def start(self, failpoints: str, *arguments: str) -> attached.Attached:
        """A command of its own process, in the JVM of the tests."""
        place = ("-C", str(self.world.root), "--as", "bo")
        return attached.start(self.world.spark, *place, *arguments, ERRATA_FAILPOINTS=failpoints, **self.environment)

    def rows(self) -> list[tuple[Any, ...]]:
        query = "SELECT day::text, account, gross, n FROM shop.sales ORDER BY 1, 2, 3, 4"
        return [tuple(row) for row in self.server.execute(query, database=self.database)]

    def check(self, wanted: list[Any], deliveries: int) -> None:
        """Rows exactly once, markers exactly once, nothing left."""
        assert self.rows() == wanted
        states = self.server.execute("SELECT state FROM shop.errata_markers_sales", database=self.database)
        assert [state for (state,) in states].count("done") == deliveries
        assert "open" not in [state for (state,) in states]
        left = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'errata\\_stage%'"
        assert self.server.execute(left, database=self.database) == [(0,)]
        undo = "SELECT count(*) FROM pg_class WHERE relname ILIKE '%undo%'"
        assert self.server.execute(undo, database=self.database) == [(0,)]
        assert_copy_invariants(self.world.root, lambda query: self.server.execute(query, database=self.database))


@pytest.fixture
def at(world_at: WorldAt, postgres: PostgresServer, database: str) -> Callable[[str], CopiedLake]:
    """A lake with a run in this state, and an empty copy; without the variable, nothing is tried in this process."""
    pytest.importorskip("adbc_driver_postgresql", reason='a driver is missing (pip install "errata[postgres-copy]")')
    postgres.execute(*CREATE, database=database)

    def make(state: str) -> CopiedLake:
        world, run = world_at(state, days=2, product=build_product(), project=PROJECT)
        return CopiedLake(world, run, postgres, database)

    return make


@pytest.mark.parametrize("point", mostly_slow((*POINTS, "deliver.after_claim", "deliver.after_pay")))
def test_deliver_that_is_killed_is_repeated(at: Callable[[str], CopiedLake], point: str) -> None:
    """The next one finds out by the marker what became of it."""
    lake = at("published")
    assert lake.rows() == []
    assert lake.deliver(f"{point}=kill") == -signal.SIGKILL
    assert lake.rows() in ([], lake.world.expected())
    assert lake.deliver() == 0
    lake.check(lake.world.expected(), deliveries=1)
    assert lake.deliver() == 0
    lake.check(lake.world.expected(), deliveries=1)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_publish_that_is_killed_in_its_delivery_has_published(at: Callable[[str], CopiedLake], point: str) -> None:
    """Main has the correction; the copy follows with the next payment."""
    lake = at("validated")
    lake.kill(point, "publish", lake.run, "--yes")
    assert lake.world.rows() == lake.world.expected()
    assert lake.rows() in ([], lake.world.expected())
    assert lake.deliver() == 0
    lake.check(lake.world.expected(), deliveries=1)


@pytest.mark.parametrize("point", mostly_slow(POINTS, ("copy.after_commit",)))
def test_rollback_that_is_killed_in_its_delivery_has_rolled_back(at: Callable[[str], CopiedLake], point: str) -> None:
    """The copy goes from the corrected rows to the restored ones, in one step."""
    lake = at("published")
    assert lake.deliver() == 0
    lake.kill(point, "rollback", lake.run, "--reason", "wrong rates", "--yes")
    assert lake.world.rows() == lake.world.wrong()
    assert lake.rows() in (lake.world.expected(), lake.world.wrong())
    assert lake.deliver() == 0
    lake.check(lake.world.wrong(), deliveries=2)


def test_what_is_owed_is_read_at_its_snapshot_after_everything_else_expired(at: Callable[[str], CopiedLake]) -> None:
    """Live jobs append, compact and expire before the copy is paid: it gets what was accepted, through the table."""
    lake = at("published")
    world = lake.world
    world.live(world.days[0])
    world.compact()
    world.expire()
    assert lake.deliver_without_jvm() == 0
    lake.check(world.expected(), deliveries=1)


def test_a_column_that_was_renamed_since_is_copied_by_its_field(at: Callable[[str], CopiedLake]) -> None:
    """Files of the correction have the old name; read by name they would give NULL for every row."""
    lake = at("published")
    lake.world.spark.sql("ALTER TABLE lake.fin.sales RENAME COLUMN gross TO gross_usd")
    place = lake.world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("table: shop.sales}", "table: shop.sales, columns: {gross_usd: gross}}"))
    assert lake.deliver() == 0
    lake.check(lake.world.expected(), deliveries=1)
