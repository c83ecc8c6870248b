"""Copies in warehouses, in memory: tables of rows, markers, and other sessions that hold locks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from errata.errors import CopyLocked, EngineError, OutcomeUnknown
from errata.failpoints import failpoint
from errata.model.copy.checksum import Checksum, find_differing
from errata.model.copy.delivery import Loaded, Receipt, Swap, WarehouseColumn, WarehouseTable
from errata.model.copy.marker import Content, Delivered, MarkedAttempt, Marker, MarkerState, find_lowered
from errata.model.copy.measure import measure_rows
from errata.model.copy.refusals import (
    refuse_changed,
    refuse_content,
    refuse_lost,
    refuse_overtaken,
    refuse_staging,
)
from errata.model.copy.table import CopyTable, name_staging_prefix
from errata.model.partition import name_partition
from errata.ports.copies import LakeRows, WarehouseCopies

Row = dict[str, Any]


@dataclass
class MemoryCopy:
    """One copy: its rows, those of its staging tables, its markers, and what its partitions hold by the record."""

    columns: tuple[WarehouseColumn, ...] = ()
    rows: list[Row] = field(default_factory=list)
    staging: dict[str, list[Row]] = field(default_factory=dict)
    markers: dict[Marker, MarkerState] = field(default_factory=dict)
    delivered: dict[str, Delivered] = field(default_factory=dict)
    obstacles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    locked_by: str = ""  # another session that has locked the table
    locked_markers: set[Marker] = field(default_factory=set)


@dataclass
class MemoryCopies:
    """Copies by warehouse and table.

    ``down`` is the error of a warehouse that does not answer. With ``lose_answers`` no answer to a commit arrives.
    """

    tables: dict[tuple[str, str], MemoryCopy] = field(default_factory=dict)
    down: str = ""
    lose_answers: bool = False

    def create(self, warehouse: str, table: str, columns: Sequence[WarehouseColumn]) -> MemoryCopy:
        """Create a table without rows."""
        self.tables[warehouse, table] = MemoryCopy(tuple(columns))
        return self.tables[warehouse, table]

    @contextmanager
    def hold_table(self, copy: CopyTable) -> Iterator[None]:
        """Another session writes the copy and has not committed."""
        self._find(copy).locked_by = "4711"
        try:
            yield
        finally:
            self._find(copy).locked_by = ""

    def describe(self, warehouse: str, table: str) -> WarehouseTable | None:
        """See the port."""
        self._answer()
        found = self.tables.get((warehouse, table))
        if found is None:
            return None
        return WarehouseTable(found.columns, tuple(column.name for column in found.columns), obstacles=found.obstacles)

    def load(self, copy: CopyTable, staging: str, rows: LakeRows) -> Loaded:
        """See the port."""
        tables = self._find(copy).staging
        if staging in tables:
            raise refuse_staging(copy, staging)
        loaded = tables.setdefault(staging, [])
        for batch in rows.batches():
            loaded.extend(batch.to_pylist())
        failpoint("copy.after_load")
        return Loaded(len(loaded))

    def measure(
        self,
        copy: CopyTable,
        partitions: Collection[str] | None,
        *,
        staging: str | None = None,
        known: Mapping[str, Checksum] | None = None,
    ) -> dict[str, Checksum]:
        """See the port."""
        del known
        table = self._find(copy)
        if staging is not None and staging not in table.staging:
            raise EngineError(f"there is no staging table {staging}")
        found = measure_rows(copy, table.rows if staging is None else table.staging[staging])
        return {name: one for name, one in found.items() if partitions is None or name in partitions}

    def read_delivered(self, copy: CopyTable, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """See the port."""
        found = self._find(copy).delivered
        return {name: one for name, one in found.items() if partitions is None or name in partitions}

    def open_marker(self, copy: CopyTable, marker: Marker) -> None:
        """See the port."""
        markers = self._find(copy).markers
        later = [one for one in markers if one.publication == marker.publication and one.attempt > marker.attempt]
        if later or markers.get(marker, MarkerState.OPEN) is not MarkerState.OPEN:
            raise refuse_lost(marker)
        markers[marker] = MarkerState.OPEN
        failpoint("copy.after_open")

    def list_markers(self, copy: CopyTable, publication: str) -> tuple[MarkedAttempt, ...]:
        """See the port."""
        markers = self._find(copy).markers
        return tuple(MarkedAttempt(one, markers[one]) for one in sorted(markers) if one.publication == publication)

    def swap(self, copy: CopyTable, swap: Swap) -> Receipt:
        """See the port."""
        table, names = self._lock(copy, swap.marker), frozenset(swap.contents)
        recorded = {name: one for name, one in table.delivered.items() if name in names}
        lowered = find_lowered(swap.contents, recorded)
        if lowered or recorded != {name: one for name, one in swap.delivered.items() if name in names}:
            raise refuse_overtaken(copy, lowered)
        _require_same(copy, swap.expected, self.measure(copy, names))
        failpoint("copy.after_compare")
        kept = [row for row in table.rows if _name(copy, row) not in names]
        written = [dict(row) for row in table.staging[swap.staging]]
        measured = {name: one.checksum for name, one in swap.contents.items()}
        found = measure_rows(copy, written)
        if differing := find_differing(measured, found, copy.tolerance):
            raise refuse_content(copy, differing)
        failpoint("copy.before_commit")
        removed, table.rows = len(table.rows) - len(kept), kept + written
        self._record(copy, swap.marker, swap.contents)
        failpoint("copy.after_commit")
        if self.lose_answers:
            raise OutcomeUnknown(f"the answer of {copy.warehouse} to a commit was lost")
        return Receipt(swap.marker, dict(swap.contents), removed, len(written), 0.0, found=found)

    def accept(self, copy: CopyTable, marker: Marker, contents: Mapping[str, Content]) -> None:
        """See the port."""
        table = self._lock(copy, marker)
        if lowered := find_lowered(contents, table.delivered):
            raise refuse_overtaken(copy, lowered)
        _require_same(copy, {name: one.checksum for name, one in contents.items()}, self.measure(copy, contents))
        self._record(copy, marker, contents)

    def fence(self, copy: CopyTable, marker: Marker) -> MarkerState:
        """See the port."""
        table = self._find(copy)
        if marker in table.locked_markers:
            raise CopyLocked(f"the marker of {marker.publication} is locked", blocked_by=["4711"])
        if table.markers.get(marker, MarkerState.OPEN) is MarkerState.OPEN:
            table.markers[marker] = MarkerState.VOID
        return table.markers[marker]

    def list_staging(self, copy: CopyTable, publication: str) -> tuple[str, ...]:
        """See the port."""
        return tuple(sorted(name for name in self._find(copy).staging if _is_of(copy, publication, name)))

    def drop_staging(self, copy: CopyTable, staging: str) -> None:
        """See the port."""
        self._find(copy).staging.pop(staging, None)

    def count_subjects(self, copy: CopyTable, columns: Collection[str], ids: Collection[str]) -> int:
        """See the port."""
        named = [column.name for column in copy.columns if column.source in columns]
        return sum(
            any(row[name] is not None and str(row[name]) in ids for name in named) for row in self._find(copy).rows
        )

    def read_rows(self, copy: CopyTable, partitions: Collection[str]) -> list[Row]:
        """See the port."""
        names = [column.name for column in copy.columns]
        wanted = (row for row in self._find(copy).rows if _name(copy, row) in partitions)
        return [{name: row[name] for name in names} for row in wanted]

    def _answer(self) -> None:
        if self.down:
            raise EngineError(self.down)

    def _find(self, copy: CopyTable) -> MemoryCopy:
        self._answer()
        found = self.tables.get((copy.warehouse, copy.table))
        if found is None:
            raise EngineError(f"there is no table {copy.table} in {copy.warehouse}")
        return found

    def _lock(self, copy: CopyTable, marker: Marker) -> MemoryCopy:
        table = self._find(copy)
        if table.locked_by or marker in table.locked_markers:
            raise CopyLocked(
                f"{copy.name} is locked by another session",
                state="nothing was written",
                blocked_by=[table.locked_by or "4711"],
            )
        failpoint("copy.after_lock")
        if table.markers.get(marker) is not MarkerState.OPEN:
            raise refuse_lost(marker)
        return table

    def _record(self, copy: CopyTable, marker: Marker, contents: Mapping[str, Content]) -> None:
        table = self._find(copy)
        table.markers[marker] = MarkerState.DONE
        table.delivered |= {name: Delivered(one, marker, copy.shape) for name, one in contents.items()}


def _name(copy: CopyTable, row: Row) -> str:
    return name_partition(row[copy.partition.name], copy.grain)


def _is_of(copy: CopyTable, publication: str, staging: str) -> bool:
    return staging.startswith(name_staging_prefix(copy, publication))


def _require_same(copy: CopyTable, expected: Mapping[str, Checksum], found: Mapping[str, Checksum]) -> None:
    if differing := find_differing(expected, found, copy.tolerance):
        raise refuse_changed(copy, differing)


_conforms: type[WarehouseCopies] = MemoryCopies
