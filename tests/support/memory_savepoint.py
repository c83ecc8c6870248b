"""A lake in memory as it was: one preparation serves many tests, as :mod:`support.savepoint` does it for Spark.

Versions of tables never change, so that they are kept as they are. The files of the project, the ledger with them, are
copied with their times, which plans pin, and put back into the same directory.
"""

from __future__ import annotations

import shutil
import tempfile
from copy import deepcopy
from pathlib import Path

from support.memory_world import MemoryWorld

__all__ = ["MemorySavepoint"]


class MemorySavepoint:
    """The state of a world at one moment, and the run in it."""

    def __init__(self, world: MemoryWorld, run: str) -> None:
        world.client.close()  # the ledger is one file from here on, without a log beside it
        self.run = run
        self._world = world
        self._tables, self._views = deepcopy(world.lake.tables), dict(world.lake.views)
        self._files = Path(tempfile.mkdtemp(dir=world.root.parent)) / "files"
        shutil.copytree(world.root, self._files)

    def restore(self) -> MemoryWorld:
        """The world as it was then, with a client that knows nothing of what came after."""
        world = self._world
        world.client.close()
        shutil.rmtree(world.root)
        shutil.copytree(self._files, world.root)
        world.lake.tables, world.lake.views = deepcopy(self._tables), dict(self._views)
        world.said.clear()
        world.open()
        return world
