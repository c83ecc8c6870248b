"""Ports for reading and tagging tables and source files, and the values they return."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from errata.model.change_log.log_pin import LogState
    from errata.model.diff import OutsideScope
    from errata.model.kafka.topic_range import OffsetRange, TopicState
    from errata.model.manifest import ExpectedFile, SourceFile, TargetPin
    from errata.model.near_miss import NearMiss
    from errata.model.partition import Grain
    from errata.model.product import Input
    from errata.model.table import Commit, Departure, History, MainSnapshot


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """Size of a partition according to metadata; ``fingerprint`` changes when its files do."""

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
    grain: Grain | None  # the grain a product would declare; None: no partitions that can be corrected


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as ``check`` and ``adopt`` need it."""

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
    """State of the target at one metadata version."""

    table: str
    table_uuid: str
    base_snapshot_id: str | None
    base_timestamp_ms: int | None
    schema_id: int
    spec_id: int
    format_version: int
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    partition_field: PartitionField | None  # the field of the product's partitions; None: the spec has no such field
    partitions: Mapping[str, PartitionSize]  # every partition of the table, without fingerprints
    expected: Mapping[str, tuple[ExpectedFile, ...]]  # of the requested partitions; empty for one that does not exist
    fingerprints: Mapping[str, str]
    shared_files: tuple[str, ...] = ()  # may hold rows of the scope and of other partitions
    shared_rows: int = 0
    shared_bytes: int = 0
    unreadable_values: tuple[str, ...] = ()  # partition values that do not fit this grain
    unnameable: Mapping[str, str] = field(default_factory=dict)  # partitions outside years 1 to 9999 → one of its files
    properties: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    last_column_id: int = 0  # the highest field id ever assigned, including dropped columns
    writers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # snapshots that added the expected files


@dataclass(frozen=True, slots=True)
class FileTimes:
    """When the marker of a partition and its newest file were written, in nanoseconds since 1970; None: not there."""

    marker_ns: int | None
    newest_ns: int | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What tells whether partitions of an input are complete, as far as its product asks for it."""

    marked: Mapping[str, FileTimes] = field(default_factory=dict)
    announced: Mapping[str, int] = field(default_factory=dict)  # rows that each partition should have
    uncounted: frozenset[str] = frozenset()  # partitions whose rows metadata does not tell
    watermark_ms: int | None = None  # newest value of the column, in milliseconds since 1970
    ignored: tuple[str, ...] = ()  # values that are later than they can be, each with its file


@dataclass(frozen=True, slots=True)
class InputState:
    """State of one input at one moment.

    ``partitions`` holds the requested partitions that exist. It is empty, and ``whole`` is set, for an input that is
    read whole.
    """

    name: str
    kind: str  # table | files | kafka
    location: str
    column_type: str | None
    partitions: Mapping[str, PartitionSize]
    whole: PartitionSize | None = None
    snapshot_id: str | None = None
    table_uuid: str | None = None
    newest_ms: int | None = None  # time of the snapshot, or the newest modification time of the files
    files: Mapping[str, tuple[SourceFile, ...]] | None = None
    oldest: str | None = None  # oldest existing time partition, where cheap to find; values have no order, so None
    rows_known: bool = True
    note: str = ""  # shown in the plan
    problem: str | None = None  # why the plan is refused
    schemas: tuple[Mapping[str, str], ...] = ()  # column → type; ``SourceFile.schema`` is an index into this
    unreadable: Mapping[str, str] = field(default_factory=dict)  # files whose schema could not be read → why
    near_miss: NearMiss | None = None  # where the search for the first missing partition ended
    snapshot_of: Mapping[str, str] = field(default_factory=dict)  # by partition of the product, where they may differ
    unresolved: Mapping[str, str] = field(default_factory=dict)  # partitions without a snapshot to read → why
    arrival: Arrival | None = None  # None: the product does not say when the input is complete
    topic: TopicState | None = None  # of an input in Kafka
    offsets: Mapping[str, tuple[OffsetRange, ...]] | None = None  # of an input in Kafka, by partition
    near_only: frozenset[str] = frozenset()  # in Kafka: partitions without a record of their time, only near it
    log: LogState | None = None  # of an input by change data capture, once its messages were read


def add_announced(state: InputState, announced: Mapping[str, int]) -> InputState:
    """The state of an input with the rows that its partitions should have."""
    return replace(state, arrival=replace(state.arrival or Arrival(), announced=announced))


@dataclass(frozen=True, slots=True)
class PastTarget:
    """The target at an older snapshot of main, and the commits since."""

    snapshot_id: str
    at_ms: int
    partitions: Mapping[str, PartitionSize]  # requested partitions that had files in that snapshot
    columns: Mapping[str, str]  # current column → its name in that snapshot; columns added later are missing here
    problems: tuple[str, ...]  # why its rows do not fit the current schema
    since: History  # later commits on main that touched the requested partitions


@dataclass(frozen=True, slots=True)
class MainEntry:
    """From a time on, main held this snapshot; ``exists`` is false if the snapshot has expired since."""

    at_ms: int
    snapshot_id: str
    exists: bool


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that has not ended and still claims its partitions, or a campaign that reserved some."""

    run_id: str
    digest: str
    state: str
    table: str
    partitions: frozenset[str]
    noun: str = "run"  # run | campaign


@dataclass(frozen=True, slots=True)
class PastRun:
    """Actual cost of a published run of the same product. Rows are those of the input; 0: unknown."""

    run_id: str
    bytes: int
    core_seconds: float
    rows: int = 0
    partitions: int = 0
    jobs: int = 0
    cores: int = 1  # of one worker


class TargetReader(Protocol):
    """Reads the target's metadata; opens no data file, starts no JVM, changes nothing."""

    def read_target(self, table: str, column: str, grain: Grain, partitions: Sequence[str] | None) -> TargetState:
        """State of the target at one metadata version; raises ``NotFound`` or ``EngineError``.

        ``partitions`` None asks for the files of every partition that the table has.
        """


class InputReader(Protocol):
    """Resolves an input to what will be read; changes nothing.

    Opens no data file, except to read footers where the input declares columns or row rules.
    """

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """State of the requested partitions (look-back included); raises ``NotFound`` or ``EngineError``."""

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """Where the search for any file of the input ended; None if a file matches, and for a table or a topic.

        Raises ``NotFound`` if there is no such topic.
        """


class TableReader(Protocol):
    """Describes a table for ``check`` and ``adopt``."""

    def describe(self, table: str) -> TableDescription:
        """Columns and partition fields; raises ``NotFound`` or ``EngineError``."""


class HistoryReader(Protocol):
    """Reads the commits of main by partition; opens no data file, starts no JVM, changes nothing."""

    def commits(
        self,
        table: str,
        column: str,
        grain: Grain,
        partitions: Sequence[str] | None,
        most: int | None = None,
        since: str | None = None,
        *,
        only_deletes: bool = False,
    ) -> History:
        """Commits that touched these partitions, newest first, back to the snapshot ``since`` (excluded) or the first.

        ``partitions`` None means any. With ``only_deletes`` those that added delete files. The history is incomplete
        when there are more than ``most``, or when older commits have expired.
        """

    def find_commits(self, table: str, snapshots: Collection[str]) -> Mapping[str, Commit]:
        """Commits by snapshot, without what they touched; snapshots that have expired are left out."""

    def left(self, table: str, snapshots: Collection[str]) -> Mapping[str, Departure]:
        """The snapshots, of those that main once held, that its head does not descend from, as far as history shows."""

    def main_log(self, table: str) -> tuple[MainEntry, ...]:
        """Which snapshot main held from when on, oldest first, as far back as the table's metadata shows."""

    def main_line(self, table: str) -> tuple[MainSnapshot, ...]:
        """The ancestry of main's head, oldest first, as far as expiry left it; raises ``NotFound`` without a table."""

    def held(self, table: str, column: str, grain: Grain, partitions: Sequence[str], asked: str) -> PastTarget:
        """The table at a snapshot, tag or time; raises ``NotFound`` naming the available ones."""


@dataclass(frozen=True, slots=True)
class TagOutcome:
    """Result of creating, moving or removing one tag."""

    table: str
    tag: str
    snapshot_id: str
    outcome: str  # created | already | moved | not_pinned | not_kept | removed | absent
    warning: str | None = None


class TagKeeper(Protocol):
    """Manages the tags that keep pinned snapshots alive; starts no JVM. Every call is idempotent."""

    def create(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """Tag a snapshot for ``keep_ms`` from now."""

    def move(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """Like :meth:`create`, for a tag that may currently be on another snapshot."""

    def remove(self, table: str, tag: str) -> TagOutcome:
        """Remove a tag if it exists."""

    def drop(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags in one commit, and return those that existed; commits nothing if none did.

        Raises ``EngineError`` when the catalog does not allow it.
        """

    def refs(self, table: str) -> dict[str, str]:
        """Every branch and tag, with its snapshot."""

    def hidden(self, table: str) -> tuple[str, ...]:
        """Branches and tags of the table that its catalog does not show; reads only."""

    def snapshot_exists(self, table: str, snapshot_id: str) -> bool:
        """Whether a snapshot is still in the table's metadata."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The commit that last wrote the files of a partition."""

    snapshot_id: str
    at: str
    application: str


class OutsideReader(Protocol):
    """Compares what lies outside a candidate's scope, from table metadata; starts no JVM."""

    def outside(
        self, target: TargetPin, before: str | None, after: str | None, partitions: Sequence[str]
    ) -> OutsideScope | None:
        """Compare the live data and delete files outside these partitions; None when a snapshot has expired."""


@dataclass(frozen=True, slots=True)
class QuarantineCount:
    """Number of rows of one partition of one input that were quarantined for one reason."""

    input: str
    partition: str
    kind: str  # line | cast | rule | transform
    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One quarantined row, as it is in the source."""

    chunk_id: str
    input: str
    partition: str
    kind: str
    reason: str
    origin: str  # the file, or table@snapshot
    row: str  # JSON


class QuarantineTable(Protocol):
    """The quarantine table of a run; starts no JVM. Only rows of the given attempts count."""

    def ensure(self, table: str) -> None:
        """Create the table unless it exists; safe to repeat and to call concurrently."""

    def counts(self, table: str, attempts: Collection[str]) -> tuple[QuarantineCount, ...]:
        """Row counts by input, partition and reason; empty when there is no table."""

    def sample(self, table: str, attempts: Collection[str], most: int) -> tuple[QuarantinedRow, ...]:
        """At most ``most`` rows of each reason."""

    def exists(self, table: str) -> bool:
        """Whether the table exists."""

    def drop(self, table: str) -> bool:
        """Drop the table with its files; returns whether it existed. Idempotent."""


Key = Mapping[str, str | None]
"""Column → value as text; None is NULL."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Change of one row by one publication; a side is None where the row did not exist."""

    publication_id: str
    key: Key
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


class RowReader(Protocol):
    """Reads single rows and their origin from table metadata and the few files that can hold them; starts no JVM."""

    def rows(
        self, target: TargetPin, snapshot_id: str | None, partition: str, keys: Sequence[Key], most: int | None = None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """Rows of a snapshot that match one of these keys, values as text; None when the snapshot has expired.

        A key may name only some of the key columns. Raises ``UsageError`` for a value that does not fit its column.
        """

    def corrections(self, table: str, partition: str, keys: Sequence[Key]) -> tuple[Correction, ...]:
        """Corrections of these keys in the table of corrections; empty when there is no such table."""

    def iterate_corrections(self, table: str, publication_id: str) -> Iterator[Mapping[str, Any]]:
        """Correction rows of a publication as JSON data: the key as a mapping, old and new as JSON text."""

    def missing_files(self, target: TargetPin, partitions: Sequence[str]) -> tuple[int, tuple[str, ...]]:
        """Number of files that main lists in these partitions, and the paths of those missing from storage.

        Checks every file. Raises ``EngineError`` when the storage does not answer.
        """

    def origin(self, target: TargetPin, snapshot_id: str | None, partition: str) -> Origin | None:
        """The newest commit that added files to this partition, as seen from a snapshot."""
