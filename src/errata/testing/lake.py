"""A lake in memory: tables and views by name, and a clock that can be stopped.

>>> lake = Lake()
>>> sales = lake.create("lake.fin.sales", {"day": "date", "gross": "decimal(12, 2)"}, partition=("day", "identity"))
>>> snapshot = sales.append([{"day": "2026-01-01", "gross": "10.00"}])
>>> sales.overwrite([{"day": "2026-01-01", "gross": "20.00"}]) == snapshot
False
>>> [str(row["gross"]) for row in sales.rows()], [str(row["gross"]) for row in sales.rows(snapshot)]
(['20.00'], ['10.00'])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from errata.errors import NotFound
from errata.testing.consumers import MemoryReadyTables
from errata.testing.erasure import ErasedInMemory
from errata.testing.table import MemoryTable, create_table


@dataclass
class FrozenClock:
    """A clock that moves only when a test moves it."""

    at: datetime

    def __call__(self) -> datetime:
        """The time it shows."""
        return self.at

    def advance(self, **by: float) -> None:
        """Move it, by the arguments of ``timedelta``."""
        self.at += timedelta(**by)


def _read_clock() -> datetime:
    return datetime.now(UTC)


@dataclass
class Lake:
    """Tables and views by name."""

    clock: Callable[[], datetime] = _read_clock
    tables: dict[str, MemoryTable] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)  # name → query
    ready: MemoryReadyTables = field(default_factory=MemoryReadyTables)
    erased: ErasedInMemory = field(default_factory=ErasedInMemory)

    def create(
        self,
        name: str,
        columns: Mapping[str, str],
        *,
        partition: tuple[str, str] | None = None,
        required: Collection[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> MemoryTable:
        """Create an empty table; ``columns`` maps names to Iceberg types, ``partition`` is a column and a transform."""
        made = create_table(name, columns, partition, self.now_ms, required=required, properties=properties)
        self.tables[name] = made
        return made

    def table(self, name: str) -> MemoryTable:
        """The table of this name; raises ``NotFound``."""
        if name not in self.tables:
            raise NotFound(f"table {name} was not found; expected one of {', '.join(sorted(self.tables)) or 'none'}")
        return self.tables[name]

    def now_ms(self) -> int:
        """Milliseconds since 1970 by the lake's clock."""
        return int(self.clock().timestamp() * 1000)
