"""Check that a candidate changed nothing outside its scope, by comparing the files of two snapshots. Reads manifests.

A manifest listed by both snapshots is the same immutable file, so it is read once, and only to count its partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.engines.iceberg.metadata.partition_fields import find_spec_field
from errata.engines.iceberg.metadata.tables import TableLoader
from errata.model.diff import OutsideScope
from errata.model.manifest import TargetPin
from errata.ports.tables import OutsideReader

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

FilesByPartition = dict[str, set[tuple[str, int]]]
_NO_PARTITION = "files without a partition of this grain"


class IcebergOutsideReader:
    """Compares live files of two snapshots; opens no data file, starts no JVM."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def outside(
        self, target: TargetPin, before: str | None, after: str | None, partitions: Sequence[str]
    ) -> OutsideScope | None:
        """See the port."""
        table = self._tables.load(target.table)
        found = [table.metadata.snapshot_by_id(int(one)) if one else None for one in (before, after)]
        if found[1] is None or (before is not None and found[0] is None):
            return None
        old, new = ({m.manifest_path: m for m in one.manifests(table.io)} if one else {} for one in found)
        both = old.keys() & new.keys()
        sides = [self._live(table, target, [m for path, m in side.items() if path not in both]) for side in (old, new)]
        shared = self._live(table, target, [old[path] for path in both])
        scope = set(partitions)
        names = (sides[0].keys() | sides[1].keys() | shared.keys()) - scope
        differing = [name for name in names if sides[0].get(name, set()) != sides[1].get(name, set())]
        return OutsideScope(len(names), tuple(sorted(differing)))

    @staticmethod
    def _live(table: Table, target: TargetPin, manifests: Sequence[ManifestFile]) -> FilesByPartition:
        files: FilesByPartition = {}
        for manifest in manifests:
            spec = table.specs()[manifest.partition_spec_id]
            place = find_spec_field(spec, table.schema(), target.column, target.grain)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                file = entry.data_file
                name = place.text(file.partition[place.position]) if place else None
                files.setdefault(name or _NO_PARTITION, set()).add((file.file_path, int(file.content or 0)))
        return files


_conforms: type[OutsideReader] = IcebergOutsideReader
