"""Quarantine tables in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from errata.ports.tables import QuarantineCount, QuarantinedRow, QuarantineTable


@dataclass
class MemoryQuarantine:
    """Quarantine tables by name; each row with the attempt that wrote it."""

    tables: dict[str, list[tuple[str, QuarantinedRow]]] = field(default_factory=dict)

    def ensure(self, table: str) -> None:
        """See the port."""
        self.tables.setdefault(table, [])

    def write(self, table: str, attempt: str, rows: Sequence[QuarantinedRow]) -> None:
        """Add the rows of an attempt, once."""
        if not any(known == attempt for known, _ in self.tables[table]):
            self.tables[table] += [(attempt, row) for row in rows]

    def counts(self, table: str, attempts: Collection[str]) -> tuple[QuarantineCount, ...]:
        """See the port."""
        found = Counter((one.input, one.partition, one.kind, one.reason) for one in self._rows(table, attempts))
        return tuple(QuarantineCount(*key, rows) for key, rows in sorted(found.items()))

    def sample(self, table: str, attempts: Collection[str], most: int) -> tuple[QuarantinedRow, ...]:
        """See the port."""
        taken: Counter[tuple[str, str, str]] = Counter()
        found = list[QuarantinedRow]()
        for row in self._rows(table, attempts):
            taken[row.input, row.kind, row.reason] += 1
            found += [row] if taken[row.input, row.kind, row.reason] <= most else []
        return tuple(sorted(found, key=lambda row: (row.input, row.kind, row.reason, row.partition)))

    def _rows(self, table: str, attempts: Collection[str]) -> list[QuarantinedRow]:
        return [row for attempt, row in self.tables.get(table, ()) if attempt in attempts]

    def exists(self, table: str) -> bool:
        """See the port."""
        return table in self.tables

    def drop(self, table: str) -> bool:
        """See the port."""
        return self.tables.pop(table, None) is not None


_conforms: type[QuarantineTable] = MemoryQuarantine
