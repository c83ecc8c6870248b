"""Commands on a real ledger and on tables in memory: the rules of the protocol, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.memory_invariants import assert_memory_invariants
from support.memory_world import MemoryWorld


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., MemoryWorld]]:
    """Makes small governed lakes; every invariant is checked on each of them when the test is over."""
    made: list[MemoryWorld] = []

    def make(**options: Any) -> MemoryWorld:
        made.append(MemoryWorld.make(tmp_path / f"world{len(made)}", **options))
        return made[-1]

    yield make
    for world in made:
        world.client.close()
        assert_memory_invariants(world.root, world.lake)
