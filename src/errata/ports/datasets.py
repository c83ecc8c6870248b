"""Ports for plain Parquet files that a table takes over as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.dataset.parquet_files import Dataset


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A table that has the files of a dataset."""

    snapshot_id: str
    files: int
    rows: int
    partitions: int
    already: bool = False  # it had them before


class DatasetReader(Protocol):
    """Reads footers of plain Parquet files; never a row, and never changes anything."""

    def read(self, path: str) -> Dataset:
        """Every file below a directory, local or on S3; raises ``NotFound`` if there is none."""


class DatasetTables(Protocol):
    """Makes tables of files that exist."""

    def find(self, table: str, digest: str) -> TakenOver | None:
        """The table if it was made of the dataset with this digest; None if there is no such table.

        Raises ``StateRefused`` if there is a table of this name that was not.
        """

    def take_over(self, table: str, dataset: Dataset) -> TakenOver:
        """Make a table of these files, where they are, in one commit: all of it is there or nothing.

        Raises ``StateRefused`` if a table of this name exists, and ``EngineError`` if what the table then says about
        files, rows or partitions is not what the footers say.
        """
