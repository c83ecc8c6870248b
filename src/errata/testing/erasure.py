"""The list of erased subjects for tests, in memory, and a fake of the partitions that contain their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.model.manifest import Manifest, TargetPin
from errata.model.product.erasure import ErasurePin
from errata.model.product.erasure_place import HeldState

__all__ = ["ErasedInMemory", "FakeSuppressions", "MemorySubjectSearch"]


@dataclass
class ErasedInMemory:
    """The list of erased subjects, without a key: hashes are the ids themselves. A snapshot is a number of subjects."""

    table: str = "lake.privacy.erased"
    subjects: dict[str, None] = field(default_factory=dict)
    table_uuid: str = "the list"
    key_id: str = "the key"

    def watermark(self) -> str:
        """See the port."""
        return str(len(self.subjects)) if self.subjects else ""

    def read_pin(self, columns: Sequence[str]) -> ErasurePin:
        """See the port."""
        snapshot = self.watermark() or None
        return ErasurePin(self.table, self.table_uuid, self.key_id, snapshot, len(self.subjects), tuple(columns))

    def read_at(self, snapshot_id: str | None) -> frozenset[str]:
        """The ids that were on the list at a snapshot."""
        return frozenset(list(self.subjects)[: int(snapshot_id or 0)])

    def read_listed(self) -> frozenset[str]:
        """See the port."""
        return frozenset(self.subjects)

    def hasher(self) -> Callable[[str], str]:
        """See the port."""
        return str

    def add(self, subjects: Collection[str]) -> int:
        """See the port."""
        new = [one for one in dict.fromkeys(subjects) if one not in self.subjects]
        self.subjects |= dict.fromkeys(new)
        return len(new)


@dataclass(frozen=True, slots=True)
class MemorySubjectSearch:
    """Looks for subjects in tables in memory; ``read_states`` gives the rows of every ref, and of old snapshots."""

    read_states: Callable[[str], Iterator[tuple[HeldState, list[Mapping[str, Any]]]]]

    def find_states(self, table: str, columns: Sequence[str], ids: Collection[str]) -> tuple[HeldState, ...]:
        """See the port."""
        return tuple(
            held
            for held, rows in self.read_states(table)
            if any(str(row.get(name)) in ids for row in rows for name in columns)
        )

    def find_in_json(self, table: str, columns: Sequence[str], ids: Collection[str]) -> bool:
        """See the port."""
        texts = [str(row.get(name)) for _, rows in self.read_states(table) for row in rows for name in columns]
        return any(f'"{one}"' in text for text in texts for one in ids)


@dataclass
class FakeSuppressions:
    """Suppressions in memory: the test adds a subject, and the partitions with its rows, by :meth:`suppress`.

    ``find_used`` is set by the engines: the partitions whose inputs hold rows of these ids.
    """

    subjects: list[str] = field(default_factory=list)
    where: dict[str, tuple[str, ...]] = field(default_factory=dict)  # subject → partitions
    asked: list[Mapping[str, Sequence[str]]] = field(default_factory=list)
    erased: ErasedInMemory = field(default_factory=ErasedInMemory)
    find_used: Callable[[Manifest, frozenset[str]], tuple[str, ...]] = lambda _manifest, _ids: ()

    def suppress(self, subject: str, *partitions: str) -> None:
        """Put a subject with rows in these partitions on the list."""
        self.subjects.append(subject)
        self.where[subject] = partitions
        self.erased.add([subject])

    def watermark(self, _table: str) -> str:
        """Version of the list; empty if there are no subjects on it."""
        return self.erased.watermark()

    def held(self, _table: str, _target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """The requested partitions that contain rows of a subject on the list."""
        self.asked.append(snapshots)
        wanted = {name for names in snapshots.values() for name in names}
        return tuple(sorted(wanted & {name for names in self.where.values() for name in names}))

    def used(self, manifest: Manifest, since: str | None) -> tuple[str, ...]:
        """See the port."""
        until = manifest.erasure.snapshot_id if manifest.erasure else None
        return self.find_used(manifest, self.erased.read_at(until) - self.erased.read_at(since))
