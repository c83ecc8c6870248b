"""A fake list of suppressed subjects for tests, with the partitions that contain their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.manifest import TargetPin

__all__ = ["FakeSuppressions"]


@dataclass
class FakeSuppressions:
    """Suppressions in memory: the test adds a subject, and the partitions with its rows, by :meth:`suppress`."""

    subjects: list[str] = field(default_factory=list)
    where: dict[str, tuple[str, ...]] = field(default_factory=dict)  # subject → partitions
    asked: list[Mapping[str, Sequence[str]]] = field(default_factory=list)

    def suppress(self, subject: str, *partitions: str) -> None:
        """Put a subject with rows in these partitions on the list."""
        self.subjects.append(subject)
        self.where[subject] = partitions

    def watermark(self, _table: str) -> str:
        """Number of subjects on the list; empty if there are none."""
        return str(len(self.subjects)) if self.subjects else ""

    def held(self, _table: str, _target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """The requested partitions that contain rows of a subject on the list."""
        self.asked.append(snapshots)
        wanted = {name for names in snapshots.values() for name in names}
        return tuple(sorted(wanted & {name for names in self.where.values() for name in names}))
