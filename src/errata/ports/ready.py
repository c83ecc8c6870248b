"""Port of the table in the lake that says which partitions are ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from errata.model.consumer.readiness import ReadyRow


class ReadyTables(Protocol):
    """Writes tables of ready partitions; starts no JVM."""

    def replace(self, table: str, names: Sequence[str], read: Callable[[], Sequence[ReadyRow]]) -> bool:
        """Make the rows about the tables ``names`` those that ``read`` returns, in one commit; False if they are.

        ``read`` is called after the version was loaded that the commit is made on, and again for every further try, so
        that rows that are out of date can never replace newer ones. Creates the table if needed. Raises
        ``EngineError`` when nothing was written.
        """

    def rows(self, table: str) -> tuple[ReadyRow, ...]:
        """All rows, in order; empty when there is no table."""
