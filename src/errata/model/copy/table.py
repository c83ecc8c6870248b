"""The table of a copy with its columns, as an engine needs it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from errata.canonical import digest_of
from errata.model.partition import Grain


@dataclass(frozen=True, slots=True)
class CopyColumn:
    """A column that is copied."""

    source: str  # its name in the lake
    name: str  # its name in the copy
    type: str  # Iceberg type text, as the lake has it


@dataclass(frozen=True, slots=True)
class CopyTable:
    """A table in a warehouse and the columns that are copied to it.

    Names are exact: an engine quotes them. Columns of the table that are not listed get the warehouse's default.
    """

    warehouse: str
    table: str  # with its schema, if declared: ``schema.table``
    columns: tuple[CopyColumn, ...]
    partition: CopyColumn  # one of the columns
    grain: Grain
    lock_seconds: float = 10
    tolerance: str | None = None  # an amount: how much sums of double columns may differ

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.warehouse}:{self.table}"

    @property
    def shape(self) -> str:
        """Digest of what checksums are computed over: those of other shapes cannot be compared."""
        return digest_of({"columns": [[one.name, one.type] for one in self.columns], "grain": str(self.grain)})


def name_staging(copy: CopyTable, publication: str, attempt: int) -> str:
    """Name of the staging table of one attempt; no other attempt, publication or copy has the same.

    An attempt is the fence of a claim, which is never given twice, so a table of this name is never loaded again.

    >>> column = CopyColumn("day", "day", "date")
    >>> name_staging(CopyTable("pg", "fin.daily", (column,), column, Grain.DAY), "bf-1-p1", 3)
    'errata_stage_00d4c87aa7310ef3_3'
    """
    return f"{name_staging_prefix(copy, publication)}{attempt}"


def name_staging_prefix(copy: CopyTable, publication: str) -> str:
    """What the names of all staging tables of a publication begin with, for this copy."""
    return f"errata_stage_{digest_of([copy.table, publication])[:16]}_"


def find_attempt(staging: str) -> int:
    """The attempt that a staging table belongs to.

    >>> find_attempt("errata_stage_00d4c87aa7310ef3_12")
    12
    """
    return int(staging.rpartition("_")[2])


_LONGEST = 63
"""Longest name of a table in PostgreSQL; longer ones are cut without an error."""


def name_markers(table: str) -> str:
    """Name of the table with the markers of a copy, in the schema of the copy.

    Each copy has its own: in Snowflake an update locks the whole table, and deliveries to other copies should not wait.
    """
    return _name_beside("errata_markers", table)


def name_delivered(table: str) -> str:
    """Name of the table that says what each partition of a copy holds, in the schema of the copy."""
    return _name_beside("errata_delivered", table)


def _name_beside(prefix: str, table: str) -> str:
    bare = table.rpartition(".")[2]
    name = f"{prefix}_{bare}"
    if len(name.encode()) <= _LONGEST:
        return name
    return f"{prefix}_{digest_of(bare)[:16]}"
