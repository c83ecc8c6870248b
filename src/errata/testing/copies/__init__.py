"""Copies in warehouses, in memory."""

from __future__ import annotations

from errata.testing.copies.linked_tables import MemoryLinkedTables
from errata.testing.copies.memory_copies import MemoryCopies, MemoryCopy

__all__ = ["MemoryCopies", "MemoryCopy", "MemoryLinkedTables"]
