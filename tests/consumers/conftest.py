from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from consumers.receiver import Answer, Received, Receiver
from support.postgres import PostgresServer


@pytest.fixture
def receive() -> Iterator[Callable[[Callable[[Received], Answer]], Receiver]]:
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
