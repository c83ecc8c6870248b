"""Ports for computing chunks and staging their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from errata.model.context import Mode
from errata.model.kind import find_kind
from errata.model.partition import format_ranges

if TYPE_CHECKING:
    from errata.errors import ErrataError
    from errata.model.manifest import Chunk, Manifest, TargetPin
    from errata.model.table import DataFile
    from errata.ports.measure import Measurer

ROWS_EMITTED = "rows_emitted"
"""Counter of an attempt: rows kept for a topic, with the name of the sink after a colon."""
TRIAL = "trial"
"""Snapshot name for a transform's output that was computed but never written to a table."""


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """One attempt at one chunk.

    ``parts`` maps digests to the content-addressed parts of the manifest. ``earlier`` maps partitions to this run's
    adopted snapshots, for transforms that read their own output.
    """

    run_id: str
    manifest: Manifest
    manifest_digest: str
    chunk: Chunk
    attempt: str  # recorded as a property of the snapshot it appends
    parts: Mapping[str, bytes]
    earlier: Mapping[str, str] = field(default_factory=dict)
    started_at: str = ""  # when the attempt began; empty for an output that is not kept

    @property
    def mode(self) -> Mode:
        """What the output is computed for."""
        return Mode.DRY_RUN if self.is_trial else find_kind(self.manifest.kind).mode

    @property
    def is_trial(self) -> bool:
        """Whether the output is computed for a look and never written."""
        return self.run_id == TRIAL

    @property
    def where(self) -> str:
        """The chunk with its partitions, for messages."""
        shown = format_ranges(self.manifest.target.grain, self.chunk.partitions)
        return f"the trial of {shown}" if self.is_trial else f"chunk {self.chunk.chunk_id} ({shown})"

    @property
    def unstaged(self) -> str:
        """The state of the data after an attempt that failed."""
        return "nothing was written" if self.is_trial else "nothing of this chunk was staged; main is unchanged"


class ChunkEngine(Protocol):
    """Computes a chunk and appends it to the run branch."""

    def check_sources(self, work: ChunkWork) -> None:
        """Raise ``SourceChanged`` naming every pinned file of this chunk that is missing or different."""

    def append(self, work: ChunkWork) -> None:
        """Append the transform's output in one commit named after the attempt, at most once per fence.

        Raises ``ChunkError`` when the transform or its output is at fault; any other error may be transient.
        """

    def explain(self, work: ChunkWork, error: Exception) -> ErrataError:
        """Classify an engine exception: storage, memory, a dead JVM, or something transient."""

    def cost(self, work: ChunkWork) -> Mapping[str, int]:
        """Cost of the attempt: jobs, tasks, core milliseconds, bytes read and shuffled, milliseconds of its write."""

    def digests(self, work: ChunkWork, parallelism: int) -> Mapping[str, str]:
        """Content digest per partition of the transform's output, computed with this many tasks. Writes nothing."""

    def trial(self, work: ChunkWork) -> AbstractContextManager[tuple[Measurer, Mapping[str, int]]]:
        """Compute the transform's output without writing it.

        Gives a measurer that knows the output as the snapshot ``TRIAL``, and the row count of each partition. Raises as
        :meth:`append` does.
        """

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
    """A snapshot of the table as it would be after publication."""

    branch: str
    base_snapshot_id: str
    snapshot_id: str


class StagingTable(Protocol):
    """The target table as workers and the candidate builder use it."""

    def prepare(self, target: TargetPin, run_id: str, keep_days: int) -> str:
        """Create the guard, the run branch and, where the run needs it, the shadow, unless they exist.

        Returns the snapshot id of the target's guard. Safe to repeat after a crash. Raises ``RunExpired`` when the
        target's schema has changed.
        """

    def find_attempt(self, target: TargetPin, attempt: str) -> StagedOutput | None:
        """The output of the snapshot that carries this attempt's property, if any.

        Of two such snapshots with equal files the first counts; two with different files make the attempt void and
        raise ``EngineError``.
        """

    def staged(self, target: TargetPin, snapshot_id: str) -> StagedOutput:
        """The files that an adopted snapshot added. Raises ``RunExpired`` when the snapshot is gone."""

    def find_candidate(self, target: TargetPin, branch: str) -> Candidate | None:
        """Find a candidate whose commit landed, by its branch and property."""

    def make_candidate(
        self,
        target: TargetPin,
        run_id: str,
        branch: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        keep_days: int,
    ) -> Candidate:
        """In one transaction, create a branch at main's head on which ``paths`` replace the scope's live files.

        Raises ``EngineError`` unless exactly those paths could be added.
        """

    def drop_refs(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags, and return those that existed. Idempotent."""

    def drop_shadow(self, target: TargetPin) -> bool:
        """Drop the shadow with the staged files that no snapshot of the target reads; False if it was already gone.

        Call it only when no attempt and no publication of the run can still be active. Safe to repeat after a crash.
        """
