"""What staging needs from a table format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from errata.model.manifest import TargetPin
from errata.model.table import DataFile

__all__ = ["Candidate", "StagedOutput", "StagingTable"]


@dataclass(frozen=True, slots=True)
class StagedOutput:
    """What one attempt appended: its snapshot and exactly the files it added."""

    snapshot_id: str
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Rows in those files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of those files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One snapshot of the table as it would be after publication."""

    branch: str
    base_snapshot_id: str
    snapshot_id: str


class StagingTable(Protocol):
    """The target table as the executor and the candidate builder use it."""

    def prepare(self, target: TargetPin, run_id: str, keep_days: int) -> str:
        """Make sure that guard, run branch and, for new columns, the shadow exist; answers the snapshot id of the
        target's guard. Safe to repeat after a crash. Raises ``RunExpired`` when the target's schema has changed."""

    def find_attempt(self, target: TargetPin, attempt: str) -> StagedOutput | None:
        """The snapshot that carries this attempt's property, if any. Two with equal files count as the first;
        two with different files raise ``EngineError`` (the attempt is void)."""

    def staged(self, target: TargetPin, snapshot_id: str) -> StagedOutput:
        """The files that one adopted snapshot added. Raises ``RunExpired`` when the snapshot is gone."""

    def find_candidate(self, target: TargetPin, branch: str) -> Candidate | None:
        """A candidate whose commit landed, looked up by its branch and property."""

    def make_candidate(
        self,
        target: TargetPin,
        run_id: str,
        branch: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        keep_days: int,
    ) -> Candidate:
        """In one transaction: a branch at main's head, on which the scope's live files are replaced by ``paths``.
        Raises ``EngineError`` when not exactly those paths could be added."""

    def drop_refs(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags; answers those that were there. Idempotent."""

    def drop_shadow(self, target: TargetPin) -> bool:
        """Drop the shadow with the staged files that no snapshot of the target reads; False when it is gone already.
        Only when no attempt and no publication of the run can be alive. Safe to repeat after a crash."""
