"""Tables of a warehouse that read the lake's metadata, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from errata.errors import EngineError
from errata.ports.copies import LakeReader, LinkedTables


@dataclass
class MemoryLinkedTables:
    """Tables by warehouse and name, with the tables of the lake that they read; with ``is_stuck`` none reads again."""

    lake: LakeReader
    links: dict[tuple[str, str], str] = field(default_factory=dict)
    reads: dict[tuple[str, str], str] = field(default_factory=dict)
    is_stuck: bool = False

    def refresh(self, warehouse: str, table: str) -> str:
        """See the port."""
        place = (warehouse, table)
        if place not in self.links:
            raise EngineError(f"there is no table {table} in {warehouse}")
        known = self.lake.list_metadata(self.links[place])
        if not self.is_stuck or place not in self.reads:
            self.reads[place] = known[0] if self.is_stuck else known[-1]
        return self.reads[place]


_conforms: type[LinkedTables] = MemoryLinkedTables
