"""Table descriptions that checking and adopting need, as Protocols that any describing type can satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from errata.model.partition import Grain


class ColumnShape(Protocol):
    """One column."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str:
        """Iceberg type text."""
        ...


class PartitionShape(Protocol):
    """One field of the table's partition spec."""

    @property
    def column(self) -> str: ...
    @property
    def column_type(self) -> str: ...
    @property
    def transform(self) -> str: ...
    @property
    def grain(self) -> Grain | None:
        """The grain a product would declare; None: not usable as a unit of correction."""
        ...


class TableShape(Protocol):
    """A table as it is."""

    @property
    def table(self) -> str: ...
    @property
    def columns(self) -> Sequence[ColumnShape]: ...
    @property
    def partition_fields(self) -> Sequence[PartitionShape]: ...
    @property
    def identifier_columns(self) -> Sequence[str]: ...


class TableDescriber(Protocol):
    """Describes tables; reads only."""

    def describe(self, table: str) -> TableShape:
        """Columns and partition fields; raises ``NotFound`` or ``EngineError``."""
        ...
