"""Ports for reading and tagging tables and source files, and the values they return."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from errata.model.diff import OutsideScope
from errata.model.manifest import ExpectedFile, SourceFile, TargetPin
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.table import Departure, History


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """What a partition holds by metadata; ``fingerprint`` changes when its files do."""

    rows: int
    bytes: int
    files: int
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: str  # Iceberg type text
    required: bool = False


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a table's current partition spec."""

    column: str
    column_type: str
    transform: str  # identity | hour | day | month | year | bucket[16] | …
    grain: Grain | None  # the grain a product would declare; None: not a unit of correction


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as `check` and `adopt` need it."""

    table: str
    table_uuid: str
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    snapshot_id: str | None
    format_version: int
    identifier_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetState:
    """The target at one metadata version."""

    table: str
    table_uuid: str
    base_snapshot_id: str | None
    base_timestamp_ms: int | None
    schema_id: int
    spec_id: int
    format_version: int
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    partition_field: PartitionField | None  # the one that carries the product's partitions; None: the spec has none
    partitions: Mapping[str, PartitionSize]  # every partition of the table, without fingerprints
    expected: Mapping[str, tuple[ExpectedFile, ...]]  # partitions asked for; an absent one has an empty set
    fingerprints: Mapping[str, str]
    shared_files: tuple[str, ...] = ()  # may hold rows of the scope, and of other partitions as well
    shared_rows: int = 0
    shared_bytes: int = 0
    unreadable_values: tuple[str, ...] = ()  # partition values that are no partition of this grain
    unnameable: Mapping[str, str] = field(default_factory=dict)  # partitions outside years 1 to 9999 → one of its files
    properties: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    last_column_id: int = 0  # the highest field id ever given, dropped columns included


@dataclass(frozen=True, slots=True)
class InputState:
    """One input at one moment. ``partitions`` has those asked for that exist; empty and ``whole`` set: read whole."""

    name: str
    kind: str  # table | files
    location: str
    column_type: str | None
    partitions: Mapping[str, PartitionSize]
    whole: PartitionSize | None = None
    snapshot_id: str | None = None
    table_uuid: str | None = None
    newest_ms: int | None = None  # snapshot time, or the newest modification among the files
    files: Mapping[str, tuple[SourceFile, ...]] | None = None
    oldest: str | None = None  # the oldest partition that exists at all, where that is cheap to know
    rows_known: bool = True
    note: str = ""  # said in the plan
    problem: str | None = None  # refuses the plan
    schemas: tuple[Mapping[str, str], ...] = ()  # column → type of every shape found; ``SourceFile.schema`` points here
    unreadable: Mapping[str, str] = field(default_factory=dict)  # files that could not be looked into, and why


@dataclass(frozen=True, slots=True)
class PastTarget:
    """What the target held at an older snapshot of main, and who wrote to it since."""

    snapshot_id: str
    at_ms: int
    partitions: Mapping[str, PartitionSize]  # those asked for that had files then
    columns: Mapping[str, str]  # of now → its name then; what is not here was added since
    problems: tuple[str, ...]  # why rows of then cannot be rows of now
    since: History  # commits on main after it that touched what was asked for


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that still holds its partitions."""

    run_id: str
    digest: str
    state: str
    table: str
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a published run of the same product really took. Rows are those of the input; 0: unknown."""

    run_id: str
    bytes: int
    core_seconds: float
    rows: int = 0
    partitions: int = 0
    jobs: int = 0
    cores: int = 1  # of one worker


class TargetReader(Protocol):
    """Reads the target's metadata; opens no data file, starts no JVM, changes nothing."""

    def read_target(self, table: str, column: str, grain: Grain, partitions: Sequence[str]) -> TargetState:
        """Facts of one metadata version; raises ``NotFound`` or ``EngineError``."""
        ...


class InputReader(Protocol):
    """Resolves an input to what will be read; opens no data file, changes nothing."""

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """Facts about the partitions asked for (look-back included); raises ``NotFound`` or ``EngineError``."""
        ...


class TableReader(Protocol):
    """Describes a table for `check` and `adopt`."""

    def describe(self, table: str) -> TableDescription:
        """Columns and partition fields; raises ``NotFound`` or ``EngineError``."""
        ...


class HistoryReader(Protocol):
    """Commits of main, by partition; opens no data file, starts no JVM, changes nothing."""

    def commits(
        self,
        table: str,
        column: str,
        grain: Grain,
        partitions: Sequence[str],
        most: int | None = None,
        since: str | None = None,
    ) -> History:
        """The commits that touched these partitions, newest first, back to the snapshot ``since`` (not included) or to
        the beginning; incomplete when there are more, or older ones have expired."""
        ...

    def left(self, table: str, snapshots: Collection[str]) -> Mapping[str, Departure]:
        """Of these snapshots, which main held once, those that its head does not descend from, as far as is known."""
        ...

    def held(self, table: str, column: str, grain: Grain, partitions: Sequence[str], asked: str) -> PastTarget:
        """The table at a snapshot, a tag or a time; raises ``NotFound`` naming what there is."""
        ...


class TagOutcome(Protocol):
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


class TagKeeper(Protocol):
    """Tags that keep pinned snapshots alive; no JVM. Every call is idempotent."""

    def create(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """Tag a snapshot for ``keep_ms`` from now."""

    def move(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """The same, for a tag that may be on another snapshot so far."""

    def remove(self, table: str, tag: str) -> TagOutcome:
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
    ) -> OutsideScope | None:
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
