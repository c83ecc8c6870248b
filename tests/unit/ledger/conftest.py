"""Ledgers for these tests: each test that asks for ``url`` or ``ledger`` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.ledger import Ledger
from errata.ledger.db.database import Database
from support.postgres import PostgresServer
from unit.ledger.shell import Shell


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated ledger file; a copy saves each test the migration."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def ledger_template(postgres: PostgresServer) -> str:
    """A database with a migrated ledger; a copy saves each test the migration."""
    Ledger.open(postgres.create_database("ledger_template")).close()
    return "ledger_template"


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a PostgreSQL database in which nobody has made anything."""
    name = f"empty_{secrets.token_hex(6)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of this test's ledger."""
    if request.param == "sqlite":
        yield f"sqlite:///{shutil.copy(request.getfixturevalue('empty_ledger'), tmp_path / 'ledger.db')}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"ledger_{secrets.token_hex(6)}"
    yield server.create_database(name, template=request.getfixturevalue("ledger_template"))
    server.drop_database(name)


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URL at which there is no ledger yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new/ledger.db"
    return str(request.getfixturevalue("empty_database"))


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """A fresh ledger."""
    with Ledger.open(url) as opened:
        yield opened


@pytest.fixture
def database(url: str, ledger: Ledger) -> Iterator[Database]:
    """Connections of one's own to the database of this test's ledger."""
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def shell(ledger: Ledger, url: str) -> Iterator[Shell]:
    """Someone with a shell of this test's ledger."""
    opened = Shell(url)
    yield opened
    opened.close()
