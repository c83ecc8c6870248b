"""Ports for computing chunks and staging their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from errata.errors import ErrataError
from errata.model.manifest import Chunk, Manifest, TargetPin
from errata.model.table import DataFile
from errata.ports.measure import Measurer

TRIAL = "trial"
"""The name of a snapshot that no table has: what a transform computed and nobody wrote."""


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """One attempt at one chunk. ``parts`` holds the content-addressed parts of the manifest by digest.

    ``earlier`` are the adopted snapshots of this run by partition, for transforms that read their own output.
    """

    run_id: str
    manifest: Manifest
    manifest_digest: str
    chunk: Chunk
    attempt: str  # the name that its snapshot carries
    parts: Mapping[str, bytes]
    earlier: Mapping[str, str] = field(default_factory=dict)


class ChunkEngine(Protocol):
    """Computes a chunk and appends it to the run branch."""

    def check_sources(self, work: ChunkWork) -> None:
        """Raises ``SourceChanged`` naming every pinned file of this chunk that is missing or different."""

    def append(self, work: ChunkWork) -> None:
        """One ``append()`` of the transform's output, named after the attempt; at most once per fence. Raises
        ``ChunkError`` when the transform or its output is at fault; anything else may pass."""

    def explain(self, work: ChunkWork, error: Exception) -> ErrataError:
        """What an exception of an engine means: storage, memory, a dead JVM, or something that may pass."""

    def cost(self, work: ChunkWork) -> Mapping[str, int]:
        """What the attempt's Spark jobs took: jobs, tasks, core milliseconds, bytes read and shuffled."""

    def digests(self, work: ChunkWork, parallelism: int) -> Mapping[str, str]:
        """Content digest per partition of the transform's output, computed with so many tasks; nothing is written."""

    def trial(self, work: ChunkWork) -> AbstractContextManager[tuple[Measurer, Mapping[str, int]]]:
        """The transform's output without writing it: a measurer that knows it as the snapshot ``TRIAL``, and rows by
        partition. Raises as :meth:`append` does."""

    def cancel(self, work: ChunkWork) -> None:
        """Stop the Spark jobs of an attempt that lost its lease. Best effort."""


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
