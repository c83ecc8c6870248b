"""Compare the lake with each copy, partition by partition. Reads only.

The lake is read at one snapshot, a copy in one statement. What is on record is read before and after: partitions that
were published, rolled back or delivered meanwhile are not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from errata.delivery.copies.declared_copies import open_copy
from errata.model.copy.checksum import Checksum
from errata.model.copy.declaration import Copy
from errata.model.copy.marker import Delivered
from errata.model.copy.partition_comparison import Comparison, MeasuredCopy
from errata.model.copy.table import CopyTable
from errata.model.partition import sort_oldest_first
from errata.model.product import Product
from errata.ports.copies import WarehouseCopies
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ComparedPartitions:
    """A copy, what was measured, and what came of it by partition, oldest first."""

    copy: CopyTable
    measured: MeasuredCopy
    found: Mapping[str, Comparison]

    def list(self, *wanted: Comparison) -> tuple[str, ...]:
        """Partitions of which one of these came."""
        return tuple(name for name, one in self.found.items() if one in wanted)


def compare_with_lake(
    workspace: Workspace,
    product: Product,
    declared: Copy,
    snapshot_id: str | None,
    partitions: Sequence[str] | None,
    lake: Mapping[str, Checksum] | None = None,
) -> ComparedPartitions:
    """Compare one copy with the lake at a snapshot: these partitions, or all that are accepted or on record.

    ``lake`` is given where it was measured before, for a copy with the same columns.
    """
    target, copy = product.target, open_copy(workspace, product, declared)
    copies = workspace.engines.copies(copy.warehouse)
    accepted = _read_sequences(workspace, target.table, partitions)
    known = copies.read_delivered(copy, partitions)
    names = sort_oldest_first(target.grain, partitions if partitions is not None else {*accepted, *known})
    measured = MeasuredCopy(accepted, known, lake or {}, {}, copy.shape, copy.tolerance)
    if not names:
        return ComparedPartitions(copy, measured, {})
    if snapshot_id is not None and lake is None:
        rows = workspace.engines.lake_rows.read(copy, target.table, snapshot_id, names)
        measured = replace(measured, lake=rows.measure())
    measured = replace(measured, copy=copies.measure(copy, names))
    overtaken = _find_overtaken(workspace, target.table, copies, measured, copy, names)
    found = {name: Comparison.MOVED_ON if name in overtaken else measured.compare(name) for name in names}
    return ComparedPartitions(copy, measured, found)


def _read_sequences(workspace: Workspace, table: str, partitions: Collection[str] | None) -> dict[str, int]:
    if not workspace.ledger.exists():
        return {}
    return {name: row.seq for name, row in workspace.ledger.partitions.accepted(table, partitions).items()}


def _find_overtaken(
    workspace: Workspace,
    table: str,
    copies: WarehouseCopies,
    measured: MeasuredCopy,
    copy: CopyTable,
    names: Sequence[str],
) -> frozenset[str]:
    """Partitions about which the record says something else by now."""
    accepted, known = _read_sequences(workspace, table, names), copies.read_delivered(copy, names)
    before: tuple[Mapping[str, int], Mapping[str, Delivered]] = (measured.accepted, measured.delivered)
    return frozenset(
        name for name in names if (accepted.get(name), known.get(name)) != (before[0].get(name), before[1].get(name))
    )
