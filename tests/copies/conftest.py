from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from support.fakesnow import FakeSnowflake
from support.postgres import PostgresServer


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the PostgreSQL server."""
    name = f"copies_{uuid.uuid4().hex[:8]}"
    postgres.create_database(name)
    yield name
    postgres.drop_database(name)


@pytest.fixture
def snowflake_database(fakesnow: FakeSnowflake) -> str:
    """An empty database of the Snowflake emulator, which cannot drop one; its schema is PUBLIC."""
    name = f"COPIES_{uuid.uuid4().hex[:8].upper()}"
    fakesnow.execute(f"create database {name}", f"create schema if not exists {name}.PUBLIC")
    return name
