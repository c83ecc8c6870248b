"""What every suite may ask for: PostgreSQL, one Spark session (local[2], Iceberg on SQLite), governed lakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from errata.errors import SetupError
from errata.jars import require_jars
from support import jars as extra_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.lakes import Lake
    from support.postgres import PostgresServer
    from support.savepoint import Savepoint
    from support.world import World


# how fast a case is says something about the machine, not about the rule
settings.register_profile("errata", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("errata")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``first`` is on the tests of ``spark`` and ``catalogs``: a process with its own session, beside all others."""
    here = Path(__file__)
    for item in items:
        if not {here.with_name("spark"), here.with_name("catalogs")}.isdisjoint(item.path.parents):
            item.add_marker(pytest.mark.first)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests; each makes its own databases. Restarting it is for servers of one's own."""
    from support.postgres import INSTALL, PostgresServer, server_programs

    if server_programs() is None:
        pytest.skip(INSTALL)
    pytest.importorskip("psycopg", reason='psycopg is missing (pip install "errata[postgres]")')
    server = PostgresServer.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the catalog ``lake`` keeps its database (catalog.db) and its tables (wh)."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def gateway() -> Any:
    """The JVM of the tests, with Spark and Iceberg in it and no session: enough for whatever is about metadata."""
    pyspark = pytest.importorskip("pyspark")
    try:
        # all that any suite needs: the class path is fixed when the JVM starts
        jars = [*require_jars(), *extra_jars.there(*extra_jars.EXTRA)]
    except SetupError as error:
        pytest.skip(f"{error.message}; {error.hint}")
    settings = {
        # the file system of local paths is needed before spark.jars would be loaded
        "spark.driver.extraClassPath": ":".join(str(jar) for jar in jars),
        "spark.driver.memory": "1g",
        # tests end before the optimising compiler pays for itself
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    pyspark.SparkContext._ensure_initialized(conf=pyspark.SparkConf(loadDefaults=False).setAll(settings.items()))
    return pyspark.SparkContext._gateway


@pytest.fixture(scope="session")
def base_spark(gateway: Any, warehouse: Path) -> Iterator[SparkSession]:
    """The session; catalog ``lake`` is an empty Iceberg catalog."""
    pyspark_sql = pytest.importorskip("pyspark.sql")
    lake = "spark.sql.catalog.lake"
    settings = {
        "spark.ui.enabled": "false",
        # tests count jobs, so none may be forgotten
        "spark.ui.retainedJobs": "100000",
        "spark.ui.retainedStages": "100000",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.warehouse.dir": str(warehouse / "spark"),
        lake: "org.apache.iceberg.spark.SparkCatalog",
        f"{lake}.type": "jdbc",
        f"{lake}.jdbc.schema-version": "V1",
        f"{lake}.cache-enabled": "false",
        f"{lake}.uri": f"jdbc:sqlite:{warehouse}/catalog.db?busy_timeout=30000&journal_mode=WAL",
        f"{lake}.warehouse": f"file://{warehouse}/wh",
    }
    builder = pyspark_sql.SparkSession.builder.master("local[2]").appName("errata-tests")
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def spark(base_spark: SparkSession) -> SparkSession:
    """A session of its own for one test: its settings and temporary views end with the test, tables do not."""
    return base_spark.newSession()


@pytest.fixture
def make_lake() -> Callable[[Path], Lake]:
    """The catalog of each small lake: SQLite in its own directory, unless a suite chooses others."""
    from support.lakes import sqlite_lake

    return sqlite_lake


@pytest.fixture
def make_world(
    base_spark: SparkSession, tmp_path: Path, make_lake: Callable[[Path], Lake]
) -> Iterator[Callable[..., World]]:
    """Makes small governed lakes; every invariant is checked on each of them when the test is over."""
    from support.invariants import assert_invariants
    from support.world import World

    made: list[World] = []

    def make(**options: Any) -> World:
        root = tmp_path / f"world{len(made)}"
        made.append(World.make(root, base_spark, **({"lake": make_lake(root)} | options)))
        return made[-1]

    yield make
    for world in made:
        world.client.close()
        assert_invariants(world.root, world.lake.pyiceberg, world.lost)


@pytest.fixture(scope="session")
def saved() -> Iterator[dict[str, Savepoint]]:
    """Worlds that were brought to a state once, by state."""
    found: dict[str, Savepoint] = {}
    yield found
    for one in found.values():
        one.world.client.close()


@pytest.fixture
def make_ledger() -> Callable[[Path], str] | None:
    """Where worlds of ``at`` keep their ledger; None is SQLite in their own directory."""
    return None


@pytest.fixture
def at(
    saved: dict[str, Savepoint],
    base_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    make_lake: Callable[[Path], Lake],
    make_ledger: Callable[[Path], str] | None,
) -> Iterator[Callable[[str], tuple[World, str]]]:
    """A world of two days in two chunks, and its run in this state. On SQLite it is made once and put back to it for
    every test; every invariant is checked afterwards."""
    from support.invariants import assert_invariants
    from support.lakes import sqlite_lake
    from support.ledger_copy import copy_ledger
    from support.savepoint import Savepoint
    from support.world import World

    used: list[tuple[World, str]] = []

    def made(state: str) -> tuple[World, str]:
        root = tmp_path_factory.mktemp(state)
        places = {"ledger": make_ledger(root)} if make_ledger else {}
        world = World.make(root, base_spark, days=2, chunk_bytes="1", lake=make_lake(root), **places)
        return world, "" if state == "new" else world.to(state)

    def prepared(state: str) -> tuple[World, str]:
        check()
        if make_ledger is not None or make_lake is not sqlite_lake:
            used.append(made(state))
            return used[-1]
        if state not in saved:
            saved[state] = Savepoint(*made(state))
        used.append((saved[state].restore(), saved[state].run))
        return used[-1]

    def check() -> None:
        for world, _ in used[-1:]:
            if make_ledger is not None:
                copy_ledger(make_ledger(world.root), world.root / ".errata" / "ledger.db")
            assert_invariants(world.root, world.lake.pyiceberg, world.lost)

    yield prepared
    check()
    if make_ledger is not None or make_lake is not sqlite_lake:
        for world, _ in used:
            world.client.close()
