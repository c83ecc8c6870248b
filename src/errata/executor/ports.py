"""What the worker needs from an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from errata.errors import ErrataError
from errata.model.manifest import Chunk, Manifest, TargetPin
from errata.model.throttle import Signal
from errata.validator.diffview import Outside
from errata.validator.ports import Measurer

__all__ = [
    "TRIAL",
    "AlarmBell",
    "ChunkEngine",
    "ChunkWork",
    "Correction",
    "ErasedSubjects",
    "Key",
    "Origin",
    "Outside",
    "OutsideReader",
    "PinKeeper",
    "PinOutcome",
    "Probes",
    "Progress",
    "QuarantineCount",
    "QuarantineTable",
    "QuarantinedRow",
    "RowReader",
    "Suppressions",
]

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


class Probes(Protocol):
    """How the live pipeline is doing."""

    def read(self, signal: Signal) -> Decimal:
        """The signal's number; raises ``EngineError`` when it cannot be had."""


class AlarmBell(Protocol):
    """Tells people at once that someone broke the glass."""

    @property
    def is_there(self) -> bool:
        """Whether the project names someone to tell."""

    def ring(self, told: Mapping[str, Any]) -> None:
        """Tell them; raises ``EngineError`` when that did not work. May be repeated after a crash."""


class PinOutcome(Protocol):
    """What became of one tag."""

    @property
    def table(self) -> str: ...

    @property
    def tag(self) -> str: ...

    @property
    def snapshot_id(self) -> str: ...

    @property
    def outcome(self) -> str:
        """created, already, moved, not_pinned, not_kept, removed or absent."""

    @property
    def warning(self) -> str | None: ...


class PinKeeper(Protocol):
    """Tags that keep pinned snapshots alive; no JVM. Every call is idempotent."""

    def create(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> PinOutcome:
        """Tag a snapshot for ``keep_ms`` from now."""

    def move(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> PinOutcome:
        """The same, for a tag that may be on another snapshot so far."""

    def remove(self, table: str, tag: str) -> PinOutcome:
        """Remove a tag if it is there."""

    def drop(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags in one commit, and commit nothing when none of them is there; answers those that
        were. Raises ``EngineError`` when the catalog does not allow it."""

    def refs(self, table: str) -> dict[str, str]:
        """Every branch and tag with its snapshot."""

    def hidden(self, table: str) -> tuple[str, ...]:
        """Branches and tags that the table has and its catalog does not show; only reads."""

    def snapshot_exists(self, table: str, snapshot_id: str) -> bool:
        """Whether a snapshot is still in the table's metadata."""


class Progress(Protocol):
    """Someone who watches a run."""

    def advance(self, partitions: int, rows: int) -> None:
        """A chunk was adopted."""

    def show(self, chunk_id: str, text: str | None) -> None:
        """What a chunk is doing; None: it is over."""

    def close(self) -> None:
        """The worker stops."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote the files of a partition last, before a run replaced them."""

    snapshot_id: str
    at: str
    application: str


class OutsideReader(Protocol):
    """What a candidate did not touch, from table metadata; no JVM."""

    def outside(
        self, target: TargetPin, before: str | None, after: str | None, partitions: Sequence[str]
    ) -> Outside | None:
        """Live data and delete files outside these partitions, compared; None when a snapshot is gone."""


@dataclass(frozen=True, slots=True)
class QuarantineCount:
    """How many rows of one partition of one input were set aside for one reason."""

    input: str
    partition: str
    kind: str  # cast | rule | transform
    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One row that was set aside, as the source has it."""

    chunk_id: str
    input: str
    partition: str
    kind: str
    reason: str
    origin: str  # the file, or table@snapshot
    row: str  # JSON


class QuarantineTable(Protocol):
    """The table of rows that a run set aside; no JVM. Only rows of the attempts that are named count."""

    def ensure(self, table: str) -> None:
        """Make the table unless it is there; safe to repeat and to race."""

    def counts(self, table: str, attempts: Collection[str]) -> tuple[QuarantineCount, ...]:
        """Rows by input, partition and reason; nothing when there is no table."""

    def sample(self, table: str, attempts: Collection[str], most: int) -> tuple[QuarantinedRow, ...]:
        """At most so many rows of each reason."""

    def exists(self, table: str) -> bool:
        """Whether the table is there."""

    def drop(self, table: str) -> bool:
        """Remove the table with its files; whether it was there. Idempotent."""


Key = Mapping[str, str | None]
"""Column → value as text; None is NULL."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What one publication changed in one row; a side is None where there was no such row."""

    publication_id: str
    key: Key
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


class RowReader(Protocol):
    """Single rows and their origin, from table metadata and the few files that can hold them; no JVM."""

    def rows(
        self, target: TargetPin, snapshot_id: str | None, partition: str, keys: Sequence[Key], most: int | None = None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """The rows that fit one of these keys, as a snapshot reads, values as text; None when the snapshot is gone.

        A key may name some of the key's columns. Raises ``UsageError`` for a value that does not fit its column."""

    def corrections(self, table: str, partition: str, keys: Sequence[Key]) -> tuple[Correction, ...]:
        """What the table of corrections has on these keys; nothing when there is no such table."""

    def missing_files(self, target: TargetPin, partitions: Sequence[str]) -> tuple[int, tuple[str, ...]]:
        """How many files main lists in these partitions, and the paths of those that are not there: each is asked for.
        Raises ``EngineError`` when the storage does not answer."""

    def origin(self, target: TargetPin, snapshot_id: str | None, partition: str) -> Origin | None:
        """The newest commit that brought in files of this partition, as seen from a snapshot."""


class Suppressions(Protocol):
    """The subjects whose rows may not become visible again, as someone else keeps them."""

    def watermark(self, table: str) -> str:
        """Where the list for this table stands; another text whenever it grew, empty while there is none."""

    def held(self, table: str, target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Of these partitions of these snapshots, those with rows of someone on the list for this table; ``target`` is
        where they are read, the table itself or where its candidates are."""


class ErasedSubjects(Protocol):
    """The list itself: keyed hashes of the subjects' ids. A key with which it was not made is refused."""

    table: str

    def watermark(self) -> str:
        """Where it stands; empty while nobody is on it."""

    def hasher(self) -> Callable[[str], str]:
        """Gives what stands for an id on the list."""

    def add(self, subjects: Collection[str]) -> int:
        """Put these ids on the list, which is made when there is none; how many were not on it."""
