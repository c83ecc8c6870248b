"""The intent of a publication or rollback, which is also its undo set: the files it adds and removes. Pure.

It is recorded before the commit. Recovery decides by it whether the commit landed, rollback puts back what it removed,
and the verifier of evidence reads the same JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.model.manifest import ExpectedFile, NewColumn
from errata.model.table import FileSets


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """For a table whose partitions share files: rows of other partitions that the commit rewrites."""

    shared: tuple[str, ...]  # partitions whose files held rows of others
    files: tuple[ExpectedFile, ...] = ()
    source: str = ""  # the snapshot that lists the files


@dataclass(frozen=True, slots=True)
class Intent:
    """Exactly what one commit will do, and which snapshot was examined for it."""

    kind: str  # publish | rollback
    partitions: tuple[str, ...]
    base_snapshot_id: str
    remove: FileSets = field(default_factory=dict)
    add: FileSets = field(default_factory=dict)
    add_from: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()
    with_deletes: tuple[str, ...] = ()  # their rollback has to rewrite rows
    rewrite: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # snapshot → partitions rewritten from it
    columns: tuple[NewColumn, ...] = ()
    carried: CarriedRows | None = None
    versions: Mapping[str, int] | None = None  # version numbers, for a table of versions
    data_files: int | None = None  # written to a side table
    found_on_table: bool = False  # recorded after the fact, because a restored ledger lacked it

    @property
    def shared(self) -> tuple[str, ...]:
        """Partitions whose files held rows of other partitions; their rollback has to rewrite rows."""
        return self.carried.shared if self.carried else ()

    @property
    def data_files_written(self) -> int:
        """Files with rewritten or carried-over rows and files of side tables; staged files are not counted."""
        rewritten = {file.path for names in self.rewrite.values() for name in names for file in self.add.get(name, ())}
        return len(rewritten) + len(self.carried.files if self.carried else ()) + (self.data_files or 0)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the intent."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "partitions": list(self.partitions),
            "base_snapshot_id": self.base_snapshot_id,
            "remove": _files_to_lists(self.remove),
            "add": _files_to_lists(self.add),
            "add_from": list(self.add_from),
            "compacted": list(self.compacted),
            "with_deletes": list(self.with_deletes),
            "rewrite": {snapshot: list(names) for snapshot, names in self.rewrite.items()},
            "columns": [[new.name, new.type, new.field_id] for new in self.columns],
        }
        if self.carried is not None:
            found |= {
                "shared": list(self.carried.shared),
                "carried": [_file_to_list(file) for file in self.carried.files],
                "carried_from": self.carried.source,
            }
        optional = {"versions": self.versions, "data_files": self.data_files}
        found |= {key: value for key, value in optional.items() if value is not None}
        return found | ({"found_on_table": True} if self.found_on_table else {})

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Intent:
        """Read the JSON of an intent."""
        carried = None
        if "shared" in found:
            files = tuple(map(_file_from_list, found["carried"]))
            carried = CarriedRows(tuple(found["shared"]), files, found["carried_from"])
        return cls(
            kind=found.get("kind", ""),
            partitions=tuple(found.get("partitions", ())),
            base_snapshot_id=found.get("base_snapshot_id") or "",
            remove=_files_from_lists(found["remove"]),
            add=_files_from_lists(found["add"]),
            add_from=tuple(found.get("add_from", ())),
            compacted=tuple(found.get("compacted", ())),
            with_deletes=tuple(found.get("with_deletes", ())),
            rewrite={snapshot: tuple(names) for snapshot, names in found.get("rewrite", {}).items()},
            columns=tuple(NewColumn(*column) for column in found.get("columns", ())),
            carried=carried,
            versions=found.get("versions"),
            data_files=found.get("data_files"),
            found_on_table=found.get("found_on_table", False),
        )


def _file_to_list(file: ExpectedFile) -> list[Any]:
    return [file.content, file.path, file.rows]


def _file_from_list(listed: Sequence[Any]) -> ExpectedFile:
    content, path, rows = listed
    return ExpectedFile(path, rows, content)


def _files_to_lists(sets: FileSets) -> dict[str, list[list[Any]]]:
    return {name: [_file_to_list(file) for file in files] for name, files in sets.items()}


def _files_from_lists(listed: Mapping[str, Sequence[Sequence[Any]]]) -> FileSets:
    return {name: tuple(map(_file_from_list, files)) for name, files in listed.items()}
