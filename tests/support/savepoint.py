"""A world as it was: its ledger and its catalog copied back, so that one preparation serves many faults.

Data and metadata files are never changed in place, so the two databases are the whole state; what a fault left beside
them is what a fault leaves. Not for tests that delete files.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import errata
from support.world import World

__all__ = ["Savepoint"]


class Savepoint:
    """The state of a world on SQLite at one moment."""

    def __init__(self, world: World, run: str) -> None:
        self.world = world
        self.run = run
        self._copies = {place: place.with_suffix(".saved") for place in self._databases()}
        for place, copy in self._copies.items():
            _copy(place, copy)

    def restore(self) -> World:
        """The world as it was then, with a client that knows nothing of what came after."""
        world = self.world
        world.lost.clear()
        world.client.close()
        for place, copy in self._copies.items():
            _copy(copy, place)
        world.client = errata.open(str(world.root), spark=world.spark, narrate=world.said.append)
        return world

    def _databases(self) -> list[Path]:
        return [self.world.root / ".errata" / name for name in ("ledger.db", "catalog.db")]


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
