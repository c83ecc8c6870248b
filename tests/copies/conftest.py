from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.copy_world import CopyWorld
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


@pytest.fixture
def make_world(tmp_path: Path, postgres: PostgresServer, database: str) -> Iterator[Callable[..., CopyWorld]]:
    """Makes lakes in memory whose copy is in a real PostgreSQL database."""
    pytest.importorskip("adbc_driver_postgresql", reason='a driver is missing (pip install "errata[postgres-copy]")')
    made: list[CopyWorld] = []

    def make(**options: Any) -> CopyWorld:
        made.append(CopyWorld.make(tmp_path / f"world{len(made)}", postgres, database, **options))
        return made[-1]

    yield make
    for world in made:
        world.check()
        world.lake.client.close()
