from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumers.receiver import Answer, Received, Receiver
from errata.engines.consumers.postgres_database import PostgresWatermarks
from errata.engines.consumers.systems import DeclaredSystems
from support.clock import Clock, stopped_clock
from support.memory_world import MemoryWorld
from support.postgres import PostgresServer


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    """Starts receivers that end with the test."""
    started: list[Receiver] = []

    def start(answer: Callable[[Received], Answer] = lambda _: Answer()) -> Receiver:
        started.append(Receiver(answer))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the server."""
    name = f"bi_{uuid.uuid4().hex[:8]}"
    postgres.create_database(name)
    yield name
    postgres.drop_database(name)


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., MemoryWorld]]:
    """Makes lakes in memory whose consumers are real: the servers that errata.yaml names."""
    made: list[MemoryWorld] = []

    def make(**options: Any) -> MemoryWorld:
        world = MemoryWorld.make(tmp_path / f"world{len(made)}", **options)
        uris = {name: one.uri for name, one in world.workspace.project.warehouses.items()}
        world.engines.consumers = DeclaredSystems(world.root, uris)  # type: ignore[assignment]
        world.engines.watermarks = PostgresWatermarks(uris)  # type: ignore[assignment]
        made.append(world)
        return world

    yield make
    for world in made:
        world.client.close()


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The ledger's clock, which waits for nobody."""
    with stopped_clock() as stopped:
        yield stopped
