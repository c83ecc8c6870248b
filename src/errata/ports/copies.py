"""Port to copies of a table in a warehouse, and to the rows of the lake that they follow.

No message of an error contains an address, a credential or a value of a row. Partitions are named as in the lake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from errata.model.copy.checksum import Checksum
    from errata.model.copy.delivery import Loaded, Receipt, Swap, WarehouseTable
    from errata.model.copy.lake_file import LakeFile
    from errata.model.copy.marker import Content, Delivered, MarkedAttempt, Marker, MarkerState
    from errata.model.copy.table import CopyTable


class LakeRows(Protocol):
    """Rows of some partitions of the lake's table at one snapshot, read through the table."""

    def batches(self, without: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows, once for each call. Columns have the names and the order of the copy, and the lake's types.

        All batches have one schema, also if files have different writers. ``without`` are paths of files whose rows are
        left out, because they reach the warehouse in another way.
        """

    def files(self) -> tuple[LakeFile, ...]:
        """The data files that have the rows, and which of them may be loaded as they are; reads metadata only."""

    def measure(self) -> dict[str, Checksum]:
        """Checksums of the rows by partition, also of files that were left out; those without rows are left out.

        After ``batches`` was read to its end they are known already, otherwise the rows are read for it.
        """


class LakeReader(Protocol):
    """Reads the lake for copies; starts no JVM, changes nothing."""

    def read(self, copy: CopyTable, table: str, snapshot_id: str, partitions: Collection[str]) -> LakeRows:
        """Rows of these partitions of the table at a snapshot, by the current names of its columns.

        Raises ``RunExpired``, here or while rows are read, if the snapshot or one of its files is gone.
        """

    def list_metadata(self, table: str) -> tuple[str, ...]:
        """Metadata files of the table that are on record, oldest first; the last one is current."""


class LinkedTables(Protocol):
    """Tables of a warehouse that read the metadata of the lake's tables themselves; errors as below."""

    def refresh(self, warehouse: str, table: str) -> str:
        """Let a table read the lake's current metadata; returns the metadata file that it reads afterwards.

        Safe to repeat.
        """


class WarehouseCopies(Protocol):
    """Tables in warehouses that follow the lake.

    Every method raises ``MissingDriver`` when a package is missing, ``MissingCredentials`` when the warehouse cannot be
    reached from here because something is not set, and ``EngineError`` for everything else that is not named below. No
    method pools or reopens a connection: an error in a transaction rolls it back and closes the connection.
    """

    def describe(self, warehouse: str, table: str) -> WarehouseTable | None:
        """The table as it is now; None: there is none. Only reads."""

    def load(self, copy: CopyTable, staging: str, rows: LakeRows) -> Loaded:
        """Create a staging table next to the copy and fill it. Takes no lock on the copy.

        Raises ``StateRefused``, and adds nothing, if there is a table of this name: someone else loads or has loaded
        it. Columns have types that hold every value of the lake's types exactly.
        """

    def measure(
        self,
        copy: CopyTable,
        partitions: Collection[str] | None,
        *,
        staging: str | None = None,
        known: Mapping[str, Checksum] | None = None,
    ) -> dict[str, Checksum]:
        """Checksums of these partitions of the copy, or of a staging table; None: of all that it has. Only reads.

        In one statement, so that all of them are of one moment. Partitions without rows are left out. Rows of no
        partition that can be named are an ``EngineError``.

        A warehouse that has a faster hash of its own gives it with every checksum. With ``known``, it may recognise by
        it rows whose checksum is known, if all of them are such rows, and says so in the result.
        """

    def read_delivered(self, copy: CopyTable, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """What the last delivery or baseline left in these partitions; those that had none are left out. Only reads."""

    def open_marker(self, copy: CopyTable, marker: Marker) -> None:
        """Commit a marker as open; the tables for markers are created if they are missing.

        Safe to repeat. Raises ``AttemptLost`` if the marker is over, or if the publication has a marker of a later
        attempt.
        """

    def list_markers(self, copy: CopyTable, publication: str) -> tuple[MarkedAttempt, ...]:
        """Markers of a publication by attempt; empty when there are none. Only reads."""

    def swap(self, copy: CopyTable, swap: Swap) -> Receipt:
        """Replace partitions by the rows of the staging table, in one transaction that has no DDL.

        In this order: keep other writers of the copy out, where the warehouse can; change the marker from open to done;
        compare the record of what was delivered and what the partitions hold with what is expected; delete them; insert
        the rows of staging; compare number and checksum of what the partitions then hold with ``contents``; record the
        contents; commit. What is compared may be recognised by its own hash, as in ``measure``. Each statement has to
        report the number of rows that it should. Any difference or error rolls everything back, and then nothing is
        written:

        - ``AttemptLost``: the marker is not open.
        - ``CopyOvertaken``: the record is not ``swap.delivered``, or a sequence would become lower.
        - ``CopyChanged``: someone else wrote the partitions.
        - ``CopyLocked``: another session has kept a lock for longer than ``copy.lock_seconds``.
        - ``EngineError``: staging has other rows than ``contents``, or anything else.

        ``OutcomeUnknown`` is raised if the answer to the commit is lost, and only then.
        """

    def accept(self, copy: CopyTable, marker: Marker, contents: Mapping[str, Content]) -> None:
        """Record that partitions hold these contents, if they do, and leave their rows alone; errors as for ``swap``.

        It replaces what the record says about them, except that no sequence becomes lower.
        """

    def fence(self, copy: CopyTable, marker: Marker) -> MarkerState:
        """End an attempt whose outcome is unknown: done if it landed, void if from now on it cannot.

        By the statement of ``swap``, so that it waits for a swap in progress. Raises ``CopyLocked`` when that takes
        longer than ``copy.lock_seconds``: nothing is then known. A marker that does not exist is written as void.
        """

    def list_staging(self, copy: CopyTable, publication: str) -> tuple[str, ...]:
        """Staging tables of a publication that exist, of any attempt. Only reads."""

    def drop_staging(self, copy: CopyTable, staging: str) -> None:
        """Drop a staging table if it exists."""

    def count_subjects(self, copy: CopyTable, columns: Collection[str], ids: Collection[str]) -> int:
        """Rows with one of these ids, as text, in one of these columns of the lake. Only reads."""

    def read_rows(self, copy: CopyTable, partitions: Collection[str]) -> list[dict[str, Any]]:
        """Rows of these partitions, by the names of the copy's columns; for comparisons of few rows."""
