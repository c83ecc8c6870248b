"""What every suite may ask for: PostgreSQL, one Spark session (local[2], Iceberg on SQLite), governed lakes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from errata.errors import SetupError
from errata.jars import require_jars
from support import jars as extra_jars
from support.lanes import add_recorder
from support.sharing import add_options, run_shared
from support.statement_cache import share_compiled_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.fakesnow import FakeSnowflake
    from support.kafka import KafkaBroker
    from support.lakes import Lake
    from support.postgres import PostgresServer
    from support.redis import RedisServer
    from support.world import World
    from support.worlds import Worlds


# how fast a case is says something about the machine, not about the rule
settings.register_profile("errata", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("errata")
share_compiled_statements()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of processes that share a suite, and of a record of what ran."""
    add_options(parser)
    parser.addoption("--record", metavar="DIRECTORY", type=Path, help="write there what ran, for the table of versions")


def pytest_configure(config: pytest.Config) -> None:
    """What runs is recorded if it was asked for."""
    add_recorder(config)


def pytest_collection_finish() -> None:
    """Thousands of tests live until the end, so no garbage collection needs to look at them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What ends now is garbage again; DuckDB reports what is left over as leaks."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """All tests, or those that this process takes of a suite that is shared."""
    return run_shared(session)


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
def redis_server() -> Iterator[RedisServer]:
    """One Redis server for all tests."""
    from support.redis import INSTALL, RedisServer, find_program

    if find_program() is None:
        pytest.skip(INSTALL)
    pytest.importorskip("redis", reason='redis is missing (pip install "errata[redis]")')
    server = RedisServer.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """One Kafka broker for all tests; each makes its own topics."""
    from support.kafka import KafkaBroker, find_reason

    pytest.importorskip("confluent_kafka", reason='confluent-kafka is missing (pip install "errata[kafka]")')
    if reason := find_reason():
        pytest.skip(f"there is no Kafka broker: {reason}")
    broker = KafkaBroker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def fakesnow() -> Iterator[FakeSnowflake]:
    """One Snowflake emulator for all tests; each makes its own databases."""
    from support.fakesnow import INSTALL, FakeSnowflake, find_program

    if find_program() is None:
        pytest.skip(INSTALL)
    pytest.importorskip("snowflake.connector", reason='the connector is missing (pip install "errata[snowflake]")')
    server = FakeSnowflake.start()
    yield server
    server.stop()


@pytest.fixture
def cache(redis_server: RedisServer) -> RedisServer:
    """The Redis server, empty."""
    redis_server.client.flushall()
    return redis_server


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
        "spark.driver.memory": "2g",
        # tests end before the optimising compiler pays for itself; classes of released jars need no second check. With
        # one compiler Java keeps 48 MB of code, drops what the tests compiled and compiles it again for ever
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
        "-Xmn1g -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
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
        # generating and compiling Java for a query of ten rows takes longer than the query; the spine has it generated
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
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


@pytest.fixture(scope="session")
def worlds(base_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The worlds that tests of this process share, one after the other."""
    from support.worlds import Worlds

    return Worlds(base_spark, tmp_path_factory)


@pytest.fixture
def world_at(worlds: Worlds) -> Iterator[Callable[..., tuple[World, str]]]:
    """A small governed lake and its run in this state, made once and put back to it for every test; every invariant is
    checked afterwards."""

    def lend(state: str, partitions: str | None = None, **options: Any) -> tuple[World, str]:
        return worlds.lend(state, partitions, options)

    yield lend
    worlds.take_back()


@pytest.fixture
def make_world(
    request: pytest.FixtureRequest, base_spark: SparkSession, tmp_path: Path, make_lake: Callable[[Path], Lake]
) -> Iterator[Callable[..., World]]:
    """Makes small governed lakes; every invariant is checked on each of them when the test is over."""
    from support.invariants import assert_invariants
    from support.lakes import sqlite_lake
    from support.world import World

    made: list[World] = []

    def make(**options: Any) -> World:
        if make_lake is sqlite_lake and "lake" not in options:
            world: World = request.getfixturevalue("world_at")("new", **options)[0]
            return world
        root = tmp_path / f"world{len(made)}"
        made.append(World.make(root, base_spark, **({"lake": make_lake(root)} | options)))
        return made[-1]

    yield make
    for world in made:
        world.client.close()
        assert_invariants(world.root, world.lake.pyiceberg, world.lost)


@pytest.fixture
def make_ledger() -> Callable[[Path], str] | None:
    """Where worlds of ``at`` keep their ledger; None is SQLite in their own directory."""
    return None


@pytest.fixture
def at(
    request: pytest.FixtureRequest,
    base_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    make_lake: Callable[[Path], Lake],
    make_ledger: Callable[[Path], str] | None,
) -> Iterator[Callable[[str], tuple[World, str]]]:
    """A world of two days in two chunks, and its run in this state; every invariant is checked afterwards."""
    from support.invariants import assert_invariants
    from support.lakes import sqlite_lake
    from support.ledger_copy import copy_ledger
    from support.world import World

    if make_lake is sqlite_lake and make_ledger is None:
        worlds: Worlds = request.getfixturevalue("worlds")

        def lend(state: str) -> tuple[World, str]:
            worlds.take_back()
            return worlds.lend(state, None, {"days": 2, "chunk_bytes": "1"})

        yield lend
        worlds.take_back()
        return
    used: list[World] = []

    def make(state: str) -> tuple[World, str]:
        root = tmp_path_factory.mktemp(state)
        places = {"ledger": make_ledger(root)} if make_ledger else {}
        used.append(World.make(root, base_spark, days=2, chunk_bytes="1", lake=make_lake(root), **places))
        return used[-1], "" if state == "new" else used[-1].to(state)

    yield make
    for world in used:
        if make_ledger is not None:
            copy_ledger(make_ledger(world.root), world.root / ".errata" / "ledger.db")
        assert_invariants(world.root, world.lake.pyiceberg, world.lost)
        world.client.close()
