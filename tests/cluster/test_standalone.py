"""Many drivers on one run, on a real standalone cluster: core caps, a killed executor, a killed driver, exact results.

Ledger and catalog are in PostgreSQL, as they are wherever workers run on several machines.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cluster.standalone import Cluster, cluster, environment, until
from support import jars
from support.lakes import Lake, postgres_lake
from support.postgres import PostgresServer
from support.world import World

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

Make = Callable[..., World]
CORES = 2
SPARK = """
spark:
  master: "{master}"
  conf:
    spark.driver.memory: 1g
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark.executor.memory: 512m
    spark.executor.cores: "1"
    spark.sql.shuffle.partitions: "2"
throttle: {{cores: {cores}}}
"""
# computed by Python on the executors, with code that only the planned zip has, slowly enough to be caught at it
SLOW = """
import time

from pyspark.sql import functions as F

from transforms.pace import SECONDS


def build(ctx, raw):
    @F.udf("decimal(12,2)")
    def slowly(amount):
        time.sleep(SECONDS)
        return amount

    gross = F.sum(slowly("amount")).cast("decimal(12,2)").alias("gross")
    return raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
"""


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers of two cores each: without a cap, one application would take all four."""
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=2) as found:
        yield found


@pytest.fixture
def make_lake(postgres: PostgresServer, tmp_path: Path) -> Callable[[Path], Lake]:
    """A catalog in PostgreSQL: its driver is a jar that came with ``spark-submit``, not one of the JVM's own."""
    if why := jars.missing("postgres"):
        pytest.skip(why)
    return lambda root: postgres_lake(root, postgres.create_database(f"lake_{tmp_path.name}".lower()[-60:]))


@pytest.fixture
def world(make_world: Make, spark_cluster: Cluster, postgres: PostgresServer, tmp_path: Path) -> Iterator[World]:
    """Ten wrong days in ten chunks, everything in PostgreSQL; the invariants are checked on a copy of it."""
    made = make_world(days=10, chunk_bytes="1", transform=SLOW)
    made.client.close()
    for file in (made.root / ".errata").glob("ledger.db*"):
        file.unlink()
    (made.root / "transforms/pace.py").write_text("SECONDS = 0.4\n")
    database = f"ledger_{tmp_path.name}".lower()[-60:]
    url = postgres.create_database(database)
    place = made.root / "errata.yaml"
    text = place.read_text()
    before, _, rest = text.partition("spark:\n")
    rest = rest[rest.index("people:") :]
    settings = SPARK.format(master=spark_cluster.url, cores=CORES).lstrip()
    place.write_text(before.replace("sqlite:///.errata/ledger.db", url) + settings + rest)
    made.open()
    yield made
    made.client.close()
    copy_ledger(postgres, database, made.root / ".errata/ledger.db")


def test_two_drivers_share_a_run_and_survive_a_killed_executor_and_a_killed_driver(
    world: World, spark_cluster: Cluster
) -> None:
    """A third driver joins; every chunk counts once, no application exceeds its cap, the table is exact."""
    run = world.to("approved")
    first, second = worker(world, run), worker(world, run)
    drivers = [first, second]
    try:
        until(lambda: len(owners(world, run, "adopted")) == 2, "a chunk done by each driver")
        applications = spark_cluster.applications()
        assert len(applications) == 2
        assert all(application["cores"] <= CORES for application in applications)
        os.kill(spark_cluster.executors()[0], signal.SIGKILL)
        until(lambda: first.pid in owners(world, run, "running"), "the first driver to be at work")
        os.killpg(first.pid, signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
        assert world.client.status(run).state == "running"
        drivers.append(worker(world, run))
        for driver in drivers[1:]:
            _, said = driver.communicate(timeout=300)
            assert driver.returncode == 0, said
    finally:
        stop(drivers)
    attempts = world.ledger.progress.attempts(run)
    assert sum(attempt.state.value == "adopted" for attempt in attempts) == len(world.days)
    assert any(attempt.fence > 1 for attempt in attempts), "nobody was at work when the driver was killed"
    finish(world, run)


def test_the_printed_command_runs_workers_through_spark_submit(world: World, spark_cluster: Cluster) -> None:
    """As printed, by a shell: the name, the master and the cap of the command line hold, and the table is exact."""
    run = world.to("approved")
    (world.root / "errata.yaml").write_text(
        # what the command line says must win over what the project says at that time
        (world.root / "errata.yaml").read_text().replace(spark_cluster.url, "local[1]")
    )
    printed = subprocess.run(
        [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "submit", run, "--print", "standalone",
         "--master", spark_cluster.url, "--workers", "2", "--parallel", "1"],
        env=environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = start(["sh", "-eu", "-c", printed], {"PATH": path})
    try:
        until(lambda: len(spark_cluster.applications()) == 2, "both applications")
        applications = spark_cluster.applications()
        assert {application["name"] for application in applications} == {f"errata {run}"}
        until(lambda: len(owners(world, run, "adopted")) == 2, "a chunk done by each driver")
        assert all(application["cores"] <= CORES for application in spark_cluster.applications())
        out, said = shell.communicate(timeout=300)
        assert shell.returncode == 0, said
    finally:
        stop([shell])
    assert out.count("staged") == 2, said
    finish(world, run)


def finish(world: World, run: str) -> None:
    """Validated, published, and what an independent computation over the raw files says."""
    assert world.client.status(run).state == "staged"
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def owners(world: World, run: str, state: str) -> set[int]:
    """Process ids of the drivers that have an attempt in this state."""
    return {a.owner.pid for a in world.ledger.progress.attempts(run) if a.state.value == state}


def worker(world: World, run: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "run", run, "--parallel", "1"]
    return start(command, {})


def start(command: list[str], more: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=environment() | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stop(drivers: list[subprocess.Popen[str]]) -> None:
    for driver in drivers:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()


def copy_ledger(server: PostgresServer, database: str, place: Path) -> None:
    """The ledger as a SQLite file, which is what the checker of invariants reads."""
    tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database=database)
    with closing(sqlite3.connect(place)) as copy:
        for (table,) in tables:
            query = f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"
            names = [name for (name,) in server.execute(f"{query} ORDER BY ordinal_position", database=database)]
            columns = ", ".join(f'"{name}"' for name in names)
            copy.execute(f'CREATE TABLE "{table}" ({columns})')
            rows = server.execute(f'SELECT {columns} FROM "{table}"', database=database)
            marks = ", ".join("?" for _ in names)
            copy.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [[plain(v) for v in row] for row in rows])
        copy.commit()


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else bytes(value) if isinstance(value, memoryview) else value
