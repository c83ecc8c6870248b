"""A list of suppressed subjects for tests: who is on it, and where their rows are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.manifest import TargetPin

__all__ = ["FakeSuppressions"]


@dataclass
class FakeSuppressions:
    """Grows by :meth:`suppress`; a partition is held when a subject on the list has rows in it, as the test says."""

    subjects: list[str] = field(default_factory=list)
    where: dict[str, tuple[str, ...]] = field(default_factory=dict)  # subject → partitions
    asked: list[Mapping[str, Sequence[str]]] = field(default_factory=list)

    def suppress(self, subject: str, *partitions: str) -> None:
        """Put someone on the list whose rows are in these partitions."""
        self.subjects.append(subject)
        self.where[subject] = partitions

    def watermark(self, _table: str) -> str:
        """How many there are."""
        return str(len(self.subjects)) if self.subjects else ""

    def held(self, _table: str, _target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Partitions that were asked for and have rows of someone on the list."""
        self.asked.append(snapshots)
        wanted = {name for names in snapshots.values() for name in names}
        return tuple(sorted(wanted & {name for names in self.where.values() for name in names}))
