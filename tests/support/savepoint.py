"""A world as it was: its ledger and its catalog copied back, so that one preparation serves many faults.

Data and metadata files are never changed in place, so the two databases and the files that are gone are the whole
state; what a fault left beside them is what a fault leaves.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import errata
from support.world import World

__all__ = ["Savepoint"]


class Savepoint:
    """The state at one moment of a world whose catalog is in SQLite, also behind REST; one name for each moment."""

    def __init__(self, world: World, run: str, name: str = "saved") -> None:
        self.world = world
        self.run = run
        self._warehouse = world.root / ".errata/warehouse"
        self._files = world.root / f".{name}-files"
        self._copies = {place: place.with_suffix(f".{name}") for place in self._databases()}
        for place, copy in self._copies.items():
            _copy(place, copy)
        # links: a file that is deleted in its place is still there
        shutil.copytree(self._warehouse, self._files, copy_function=os.link)

    def restore(self) -> World:
        """The world as it was then, with a client that knows nothing of what came after."""
        world = self.world
        world.lost.clear()
        world.client.close()
        for file in self._files.rglob("*"):
            place = self._warehouse / file.relative_to(self._files)
            if file.is_file() and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.hardlink_to(file)
        for place, copy in self._copies.items():
            _copy(copy, place)
        world.client = errata.open(str(world.root), spark=world.spark, narrate=world.said.append)
        return world

    def _databases(self) -> list[Path]:
        return [self.world.root / ".errata" / name for name in ("ledger.db", "catalog.db")]


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
