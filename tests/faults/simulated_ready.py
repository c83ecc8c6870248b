"""The ready table of the simulation: one compare-and-swap, and what it promised when something landed on main."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from errata.errors import EngineError
from errata.model.consumer.readiness import ReadyRow
from errata.testing.table import CommitFailed

__all__ = ["READY", "ReadyBy", "ReadyTable"]

READY: Any = SimpleNamespace(table="lake.errata.ready")
_TRIES = 6


@dataclass
class ReadyTable:
    """The server's side: each method is one request."""

    rows: tuple[ReadyRow, ...] = ()
    version: int = 0
    broken: dict[str, str] = field(default_factory=dict)  # publication → the promise that it broke

    def load(self) -> tuple[int, tuple[ReadyRow, ...]]:
        """The newest version."""
        return self.version, self.rows

    def commit(self, version: int, rows: tuple[ReadyRow, ...]) -> int:
        """Take the place of the version that was loaded, if it is still the newest."""
        if version != self.version:
            raise CommitFailed(f"CommitFailedException: version {version} is not {self.version}")
        self.rows, self.version = rows, version + 1
        return self.version

    def note_landing(self, publication_id: str, partitions: Sequence[str]) -> None:
        """Something landed on main: readers of its partitions must have been told to wait."""
        for name in partitions:
            row = next((one for one in self.rows if one.first_partition <= name <= one.last_partition), None)
            if row is None or row.state in ("ready", "announced"):
                self.broken[publication_id] = f"{name} was {row.state if row else 'never held'}"


@dataclass(frozen=True, slots=True)
class ReadyBy:
    """The port, each call of which is one request that the simulation may delay, lose or fail."""

    io: Callable[..., Any]
    table: ReadyTable

    def replace(self, _table: str, _names: Sequence[str], read: Callable[[], Sequence[ReadyRow]]) -> bool:
        """As the adapter does it: load, read the ledger, swap; from the beginning where the outcome is not known."""
        for _ in range(_TRIES):
            try:
                version, found = self.io("ready.load", self.table.load)
                wanted = tuple(sorted(read(), key=lambda row: row.first_partition))
                if wanted == found:
                    return False
                self.io("ready.commit", partial(self.table.commit, version, wanted))
            except (CommitFailed, RuntimeError):
                continue
            return True
        raise EngineError("the ready table was not written")
