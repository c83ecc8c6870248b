"""Worlds that tests share: each is made once, and put back for every test that asks for the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from support.invariants import assert_invariants
from support.savepoint import Savepoint
from support.world import STATES, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WorldAt", "Worlds"]

WorldAt = Callable[..., tuple[World, str]]
"""The fixture ``world_at``: a state, and what the world is made of."""


class Worlds:
    """Every world of this process with its catalog and ledger in SQLite, by what it was made of."""

    def __init__(self, base: SparkSession, places: pytest.TempPathFactory) -> None:
        self._base = base
        self._places = places
        self._made: dict[str, list[dict[tuple[str, str | None], Savepoint]]] = {}
        self._lent: list[World] = []

    def lend(self, state: str, partitions: str | None, options: dict[str, Any]) -> tuple[World, str]:
        """A world made with these options, and the id of its run in this state ("" if new)."""
        moments = self._free(options)
        states = STATES[: STATES.index(state) + 1]
        keys = [(name, None if name == "new" else partitions) for name in states]
        saved = moments[next(key for key in reversed(keys) if key in moments)]
        world, run = saved.restore(), saved.run
        self._lent.append(world)
        for key in keys:
            if key not in moments:
                run = world.step(key[0], run, partitions)
                moments[key] = Savepoint(world, run)
        return world, run

    def take_back(self) -> None:
        """The test is over: every invariant holds in each of its worlds."""
        lent, self._lent = self._lent, []
        for world in lent:
            world.client.close()
        for world in lent:
            assert_invariants(world.root, world.lake.pyiceberg, world.lost)

    def _free(self, options: dict[str, Any]) -> dict[tuple[str, str | None], Savepoint]:
        """The savepoints of a world with these options that this test does not have yet."""
        same = self._made.setdefault(repr(sorted(options.items())), [])
        for moments in same:
            if moments["new", None].world not in self._lent:
                return moments
        world = World.make(self._places.mktemp("world"), self._base, **options)
        same.append({("new", None): Savepoint(world, "")})
        return same[-1]
