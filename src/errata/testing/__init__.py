"""Test projects, and Errata itself, without Spark or a JVM.

``open_project(path, lake)`` gives a client whose every command runs on a real ledger and on tables in memory.
``errata.testing.transforms`` checks transforms, ``errata.testing.contracts`` checks adapters of ports, and ``arm``
stops, kills or delays a command at a named point.

>>> with arm("publish.before_commit", lambda: None):
...     pass
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from errata.failpoints import NAMES, arm
from errata.testing.erasure import FakeSuppressions
from errata.testing.lake import FrozenClock, Lake
from errata.testing.table import CommitFailed, MemoryTable
from errata.testing.user_hooks import Hooks

if TYPE_CHECKING:
    from errata.client import Client
    from errata.testing.chunks import Transform

__all__ = [
    "NAMES",
    "CommitFailed",
    "FakeSuppressions",
    "FrozenClock",
    "Hooks",
    "Lake",
    "MemoryTable",
    "arm",
    "open_project",
]


def open_project(
    project: Path | str,
    lake: Lake,
    *,
    transforms: Mapping[str, Transform] | None = None,
    hooks: Hooks | None = None,
    narrate: Callable[[str], None] | None = None,
) -> Client:
    """Open the project in this directory on tables in memory; the ledger is the one that it configures.

    ``transforms`` maps products to functions of a context and ``pyarrow`` tables that run instead of their own code,
    which needs Spark. They return a table, or rows as dictionaries. ``hooks`` are the alarm, the health signals and the
    erased subjects that the commands meet.
    """
    from errata.testing.memory_engines import MemoryEngines
    from errata.wiring import build_client, open_workspace

    return build_client(
        open_workspace(
            project,
            build_engines=lambda loaded, ledger: MemoryEngines(loaded, ledger, lake, transforms, hooks),
            now=lake.clock,
            narrate=narrate or (lambda _: None),
        )
    )
