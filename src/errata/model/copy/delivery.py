"""One delivery to a copy: what is loaded and replaced, and what a swap did. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.model.copy.checksum import Checksum
from errata.model.copy.marker import Content, Delivered, Marker


@dataclass(frozen=True, slots=True)
class Swap:
    """Partitions of a copy that are replaced by the rows of a staging table, in one transaction."""

    marker: Marker
    staging: str
    contents: Mapping[str, Content]  # what the partitions hold afterwards, as the lake was measured
    expected: Mapping[str, Checksum]  # what they have to hold before
    delivered: Mapping[str, Delivered]  # the record that ``expected`` was read from; another one means: overtaken

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions that are replaced."""
        return tuple(sorted(self.contents))

    @property
    def rows(self) -> int:
        """Number of rows in staging."""
        return sum(content.checksum.rows for content in self.contents.values())


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded into a staging table."""

    rows: int
    files_as_is: int = 0  # data files of the lake that the warehouse has read itself
    rows_as_is: int = 0  # of these files; all others were read through the table and written again


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a swap did, as the warehouse reports it."""

    marker: Marker
    partitions: Mapping[str, Content]
    rows_removed: int
    rows_written: int
    seconds: float  # of the transaction
    queries: tuple[str, ...] = ()  # ids of its statements, where the warehouse has them
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Partitions that someone else wrote during the swap, and how it was found; where others cannot be kept out."""
    unchecked: tuple[str, ...] = ()  # what of this could not be looked at, and why
    transaction: str = ""  # its id in the warehouse
    found: Mapping[str, Checksum] = field(default_factory=dict)
    """What the partitions held right before the commit; empty if the answer to it was lost."""

    def to_dict(self) -> dict[str, Any]:
        """As it is put on record, without the contents of partitions, which may be many."""
        return {
            "publication": self.marker.publication,
            "attempt": self.marker.attempt,
            "rows_removed": self.rows_removed,
            "rows_written": self.rows_written,
            "seconds": round(self.seconds, 3),
        } | {
            name: value
            for name, value in (
                ("transaction", self.transaction),
                ("queries", list(self.queries)),
                ("foreign", dict(sorted(self.foreign.items()))),
                ("unchecked", list(self.unchecked)),
            )
            if value
        }


@dataclass(frozen=True, slots=True)
class WarehouseColumn:
    """A column of a table in a warehouse."""

    name: str
    type: str  # as the warehouse spells it
    is_required: bool = False  # may not be NULL
    has_default: bool = False  # a default, an identity or a generated value
    is_generated: bool = False  # computed by the warehouse: nobody can write it


@dataclass(frozen=True, slots=True)
class WarehouseTable:
    """A table in a warehouse, as ``check`` and deliveries need it."""

    columns: tuple[WarehouseColumn, ...]
    indexed: tuple[str, ...] = ()  # first columns of its indexes; also clustering and partition keys
    has_indexes: bool = True  # False: the warehouse has no such thing, so that none can be missing
    obstacles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What meets every row that is replaced: triggers, foreign keys, row policies, …; kind → names."""
    grants: tuple[
        str, ...
    ] = ()  # statements that give the role what a delivery needs and it lacks, where that is known
