"""A world as it was: every file of its directory is put back, so that one preparation serves many tests.

A table's metadata holds absolute paths, so a world keeps its directory. The JVM of the tests has the catalog's database
open, so the two databases are copied into their files; all other files are copied as files.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from support.world import World

__all__ = ["Savepoint"]

_DATABASES = ("ledger.db", "catalog.db")


class Savepoint:
    """The state at one moment of a world whose catalog is in SQLite, also behind REST."""

    def __init__(self, world: World, run: str) -> None:
        self.world = world
        self.run = run
        self._said = tuple(world.said)
        self._copy = Path(tempfile.mkdtemp(prefix=f"{world.root.name}-", dir=world.root.parent))
        self._put(world.root, self._copy)

    def restore(self) -> World:
        """The world as it was then, with a client and a session that know nothing of what came after."""
        world = self.world
        world.client.close()
        world.lost.clear()
        world.said[:] = self._said
        for name in {*_files(world.root)} - {*_files(self._copy)}:
            (world.root / name).unlink()
        if not (self._copy / ".errata" / "ledger.db").exists():  # the first plan makes it
            for file in (world.root / ".errata").glob("ledger.db*"):
                file.unlink()
        self._put(self._copy, world.root)
        world.open()
        return world

    def _put(self, source: Path, target: Path) -> None:
        for name in _files(source):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if not _same(source / name, target / name):
                shutil.copy2(source / name, target / name)
        for name in _DATABASES:
            database = Path(".errata", name)
            if (source / database).exists():
                _copy_database(source / database, target / database)


def _files(root: Path) -> Iterator[Path]:
    """Every file that is no database and none of its logs, relative to the directory."""
    for place in root.rglob("*"):
        if place.is_file() and not place.name.startswith(_DATABASES):
            yield place.relative_to(root)


def _same(one: Path, other: Path) -> bool:
    """A copy keeps the time of the last change."""
    if not other.exists():
        return False
    a, b = one.stat(), other.stat()
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def _copy_database(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
