"""What the lake has accepted now, partition by partition, and its rows.

The rows of a partition are read at the snapshot of the publication or rollback that was accepted last: what live jobs
have written since is theirs to bring to the warehouse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errata.errors import EngineError, RunExpired
from errata.model.copy.checksum import Checksum
from errata.model.copy.lake_file import LakeFile
from errata.model.copy.table import CopyTable
from errata.ports.copies import LakeReader, LakeRows
from errata.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class AcceptedPartition:
    """The newest acceptance of a partition."""

    sequence: int
    snapshot_id: str
    publication: str


def read_acceptance(workspace: Workspace, table: str, partitions: Collection[str]) -> dict[str, AcceptedPartition]:
    """The newest acceptance of each of these partitions; one that was never published has none."""
    rows = workspace.ledger.partitions.accepted(table, partitions)
    snapshots: dict[str, str] = {}
    for row in rows.values():
        if row.pub_id not in snapshots:
            snapshots[row.pub_id] = workspace.ledger.publications.get(row.pub_id).result_snapshot_id or ""
    return {name: AcceptedPartition(row.seq, snapshots[row.pub_id], row.pub_id) for name, row in sorted(rows.items())}


@dataclass(frozen=True, slots=True)
class AcceptedRows:
    """Rows of several partitions, each at the snapshot of its acceptance."""

    parts: tuple[LakeRows, ...]

    def batches(self, without: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """See the port."""
        for part in self.parts:
            yield from part.batches(without)

    def files(self) -> tuple[LakeFile, ...]:
        """See the port."""
        return tuple(file for part in self.parts for file in part.files())

    def measure(self) -> dict[str, Checksum]:
        """See the port."""
        return {name: one for part in self.parts for name, one in part.measure().items()}


_conforms: type[LakeRows] = AcceptedRows


def open_accepted_rows(
    reader: LakeReader, copy: CopyTable, table: str, accepted: Mapping[str, AcceptedPartition]
) -> AcceptedRows:
    """The rows of these partitions; raises ``RunExpired`` if a snapshot has expired."""
    by_snapshot: dict[str, list[str]] = {}
    for name, one in accepted.items():
        by_snapshot.setdefault(one.snapshot_id, []).append(name)
    if "" in by_snapshot:
        raise EngineError(f"the snapshot of {accepted[by_snapshot[''][0]].publication} is not on record")
    try:
        return AcceptedRows(tuple(reader.read(copy, table, snapshot, names) for snapshot, names in by_snapshot.items()))
    except RunExpired as gone:
        raise RunExpired(f"files expired: {gone.message}", **gone.fields) from gone
