"""Servers for these suites, each started once; everything here needs Spark and carries the marker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.catalog_proxy import FaultyProxy
from support.jars import missing, rest_server
from support.lakes import Lake, postgres_lake, rest_lake
from support.postgres import INSTALL, PostgresServer, server_programs
from support.rest import RestCatalogServer

ON_POSTGRES = "test_two_publishers_of_one_scope_do_not_both_commit"
"""The test of a suite that runs on PostgreSQL by default; all run on SQLite, the other catalog in a database."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this directory carries the marker ``spark``, and suites on PostgreSQL mostly ``slow`` as well."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            is_suite = item.path.name == "test_publish_on_every_catalog.py"
            if is_suite and item.name.endswith("[postgres]") and not item.name.startswith(ON_POSTGRES):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def catalog_database() -> Iterator[PostgresServer]:
    """A PostgreSQL server for catalogs."""
    if server_programs() is None:
        pytest.skip(INSTALL)
    if reason := missing("postgres"):
        pytest.skip(reason)
    server = PostgresServer.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def rest_catalogs() -> Iterator[RestCatalogServer]:
    """A REST catalog server."""
    if reason := missing(rest_server()):
        pytest.skip(reason)
    with RestCatalogServer.running() as server:
        yield server


@pytest.fixture
def proxies() -> list[FaultyProxy]:
    """The proxies of this test's lakes."""
    return []


@pytest.fixture
def behind_proxy(rest_catalogs: RestCatalogServer, proxies: list[FaultyProxy]) -> Iterator[Callable[[Path], Lake]]:
    """Makes REST catalogs, each behind a proxy of its own."""
    with ExitStack() as stack:

        def made(root: Path) -> Lake:
            place = root / ".errata"
            place.mkdir(parents=True)
            proxies.append(stack.enter_context(FaultyProxy.before(rest_catalogs.catalog(place))))
            return rest_lake(proxies[-1].address)

        yield made


@pytest.fixture(params=["postgres", "rest"])
def make_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], Lake]:
    """A fresh catalog in PostgreSQL, or behind REST."""
    made = iter(range(100))
    if request.param == "postgres":
        database: PostgresServer = request.getfixturevalue("catalog_database")

        def in_postgres(root: Path) -> Lake:
            name = f"{tmp_path.name}_{next(made)}".lower()[-60:]
            return postgres_lake(root, database.create_database(name))

        return in_postgres
    server: RestCatalogServer = request.getfixturevalue("rest_catalogs")

    def behind_rest(root: Path) -> Lake:
        place = root / ".errata"
        place.mkdir(parents=True)
        return rest_lake(server.catalog(place))

    return behind_rest
