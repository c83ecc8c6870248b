"""The beginning of a copy: compare what it holds with main, and accept it as it is.

A copy that another job loaded is never equal to the lake bit for bit. Before Errata replaces any of it, a person looks
at the differences and accepts them; from then on a row that somebody else changes is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from errata.delivery.copies.declared_copies import open_copy
from errata.model.copy.checksum import EMPTY, Checksum
from errata.model.copy.declaration import Copy
from errata.model.copy.marker import Content, Delivered, Marker
from errata.model.copy.table import CopyTable
from errata.model.partition import sort_oldest_first
from errata.model.product import Product
from errata.views.copies import BaselineCopy, BaselinePartition
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ComparedCopy:
    """What main and a copy hold, by partition."""

    copy: CopyTable
    partitions: tuple[str, ...]
    lake: Mapping[str, Checksum]
    found: Mapping[str, Checksum]
    delivered: Mapping[str, Delivered]
    snapshot_id: str | None  # of main

    @property
    def contents(self) -> dict[str, Content]:
        """What the copy holds, as a record of it says: no sequence becomes lower or higher."""
        return {
            name: Content(
                self.delivered[name].content.sequence if name in self.delivered else 0, self.found.get(name, EMPTY)
            )
            for name in self.partitions
        }

    @property
    def view(self) -> BaselineCopy:
        """As people see it."""
        return BaselineCopy(self.copy.warehouse, self.copy.table, tuple(map(self._describe, self.partitions)))

    def _describe(self, name: str) -> BaselinePartition:
        lake, found = self.lake.get(name, EMPTY), self.found.get(name, EMPTY)
        known, tolerance = self.delivered.get(name), self.copy.tolerance
        is_known = known is not None and known.shape == self.copy.shape
        is_known = is_known and known is not None and known.content.checksum.is_like(found, tolerance)
        return BaselinePartition(name, lake.rows, found.rows, lake.is_like(found, tolerance), is_known)


def compare_copy(
    workspace: Workspace, product: Product, declared: Copy, partitions: Sequence[str] | None
) -> ComparedCopy:
    """Measure main and the copy; all partitions that either of them has, unless some are named."""
    target, copy = product.target, open_copy(workspace, product, declared)
    copies = workspace.engines.copies(copy.warehouse)
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, ())
    found = copies.measure(copy, partitions)
    names = sort_oldest_first(target.grain, partitions if partitions is not None else {*state.partitions, *found})
    lake: Mapping[str, Checksum] = {}
    if state.base_snapshot_id is not None and names:
        lake = workspace.engines.lake_rows.read(copy, target.table, state.base_snapshot_id, names).measure()
    return ComparedCopy(copy, names, lake, found, copies.read_delivered(copy, names), state.base_snapshot_id)


def accept_copy(workspace: Workspace, compared: ComparedCopy, publication: str) -> None:
    """Record in the warehouse that the copy holds what was measured; refused if it holds something else by now."""
    copies, marker = workspace.engines.copies(compared.copy.warehouse), Marker(publication, 1)
    copies.open_marker(compared.copy, marker)
    copies.accept(compared.copy, marker, compared.contents)
