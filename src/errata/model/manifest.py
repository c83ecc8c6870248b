"""The run manifest: everything a run will read, execute and write, resolved before approval. Pure.

Its canonical bytes (RFC 8785) are digested, stored and approved. Long lists (the files of an input, the files
expected live in the target) are *parts*: stored with the manifest and named in it by their own digest. Snapshot ids
are text, because not every JSON reader preserves 64 bits. The manifest holds no clock value, so the same request on the
same state gives the same manifest. ``as_of`` is the newest timestamp in the pinned state and serves as the run's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from errata.canonical import LEFT_OUT, digest_of
from errata.model.approval import ApprovalRules
from errata.model.change_log.log_pin import LogPin
from errata.model.cluster.cluster_seal import SealedCluster
from errata.model.copy.repair import CopyRepair
from errata.model.graph.read_rule import Window, rule_of_pin
from errata.model.kafka.declaration import RecordValue
from errata.model.kafka.topic_range import TopicPin
from errata.model.kind import find_kind
from errata.model.partition import Grain
from errata.model.product import Check, Comparison, Control, Distribution, Late, Limits, Publish, Reconciliation
from errata.model.product.eras import Era, RowLimits, RowRule
from errata.model.product.erasure import ErasurePin
from errata.model.product.reconstruction import Reconstruction
from errata.model.product.sinks import Sink

FORMAT = "errata.manifest/1"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A data or delete file that is live in a partition; the publication expects and removes it."""

    path: str
    rows: int
    content: str  # data | position_deletes | equality_deletes


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A pinned source file."""

    path: str
    size: int
    version: str  # "mtime:<ns>", "etag:<…>" or "sha256:<…>"
    schema: int = 0  # index into the input's schemas, if schemas were read
    # of a recorded file: the first and the last partition that its rows can be in; None: any
    span: tuple[str, str] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole partitions computed by one Spark job."""

    chunk_id: str
    partitions: tuple[str, ...]
    rows: int
    bytes: int
    wave: int = 1  # 0: the canary, which must pass before any other chunk starts


@dataclass(frozen=True, slots=True)
class SnapshotSpan:
    """Partitions of the run that read an input at the same snapshot."""

    snapshot_id: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputPin:
    """One input as the run will read it."""

    name: str
    kind: str  # table | files | kafka
    location: str  # table identifier, file pattern or topic
    partition: str | None
    column_type: str | None  # date | timestamp | timestamptz | string | int | long, of the partition column
    lookback: int  # in partitions of the product's grain; 0 if there is a window
    lookahead: int
    input_partitions: tuple[str, ...]  # partitions to read; wider than the scope if there is look-back
    fingerprints: Mapping[str, str]  # per input partition
    rows: int
    bytes: int
    file_count: int
    reference: str | None = None
    snapshot_id: str | None = None
    table_uuid: str | None = None
    files_part: str | None = None  # digest of {partition: [SourceFile…]}; of a topic: {partition: [OffsetRange…]}
    own: bool = False  # the target itself: partitions staged by this run first, then the base
    columns: Mapping[str, str] = field(default_factory=dict)  # columns that the transform sees; empty: unchanged
    eras: tuple[Era, ...] = ()
    era_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # per input partition
    schemas: tuple[Mapping[str, str], ...] = ()  # every file schema found; each file has an index into it
    counts: Mapping[str, int] = field(default_factory=dict)  # rows per partition according to file metadata
    row_rules: tuple[RowRule, ...] = ()
    version: str | None = None  # the tag that named the snapshot
    window: Window | None = field(default=None, metadata=LEFT_OUT)  # of an input with other partitions than the product
    # where partitions read different snapshots; ``snapshot_id`` is then the newest of them
    snapshots: tuple[SnapshotSpan, ...] = field(default=(), metadata=LEFT_OUT)
    recording: str | None = field(default=None, metadata=LEFT_OUT)  # the source whose recorded files are read
    topic: TopicPin | None = field(default=None, metadata=LEFT_OUT)  # of an input in Kafka
    value: RecordValue | None = field(default=None, metadata=LEFT_OUT)  # of a recorded topic: what its values hold
    log: LogPin | None = field(default=None, metadata=LEFT_OUT)  # of an input by change data capture
    # the input whose transactions end in these messages; the transform does not see them
    transactions_of: str | None = field(default=None, metadata=LEFT_OUT)
    subjects: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)  # rows of erased subjects are not read
    masks: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)  # column → how its values are masked
    # rows belong to several partitions, or are read at several snapshots, so that no partition can account for them
    uncounted: bool = field(default=False, metadata=LEFT_OUT)

    @property
    def snapshot_ids(self) -> tuple[str, ...]:
        """Every snapshot that the run reads."""
        every = (*(span.snapshot_id for span in self.snapshots), *((self.snapshot_id,) if self.snapshot_id else ()))
        return tuple(dict.fromkeys(every))

    @property
    def is_message_log(self) -> bool:
        """Whether all its messages are read for every partition."""
        return self.log is not None or self.transactions_of is not None

    @property
    def is_screened(self) -> bool:
        """Whether rows may be removed or changed before the transform sees them."""
        return bool(self.columns or self.row_rules or self.subjects or self.masks)

    @property
    def is_counted(self) -> bool:
        """Whether every row is accounted for: used, quarantined or suppressed."""
        return self.is_screened and not self.uncounted


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column that the publication adds to the target; staged files carry its field id before the target does."""

    name: str
    type: str  # Iceberg type text
    field_id: int


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Why partitions of the target share files, and how much of those files is shared."""

    why: str
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TargetPin:
    """The target at planning time, read before any input."""

    table: str
    table_uuid: str
    base_snapshot_id: str | None  # None: the table had no snapshot yet
    schema_id: int
    spec_id: int
    column: str
    column_type: str  # date | timestamp | timestamptz | string | int | long
    transform: str  # identity | hour | day | month | year
    grain: Grain
    columns: Mapping[str, str]  # name → Iceberg type text, the contract of the output; includes new columns
    key: tuple[str, ...]
    expected_part: str  # digest of {partition: [ExpectedFile…]}
    fingerprints: Mapping[str, str]  # per partition in scope
    total_partitions: int
    mode: str = "metadata"  # how it is published; rewrite: Spark carries over rows that share files with the scope
    required: tuple[str, ...] = ()  # columns that may not hold NULL
    last_column_id: int = 0  # highest field id the table had ever assigned; new columns come after it
    new_columns: tuple[NewColumn, ...] = ()  # not in the table yet
    shadow: str | None = None  # table for staged files if the target cannot take them (new columns, mode rewrite)
    rewrite: Rewrite | None = None  # in mode rewrite, according to metadata

    @property
    def staging(self) -> TargetPin:
        """The table that receives staged output: the target, or its shadow with the new columns and partitioning."""
        return replace(self, table=self.shadow, shadow=None) if self.shadow else self


@dataclass(frozen=True, slots=True)
class Code:
    """The code that will run."""

    call: str  # module:function, or the file of a SQL query; the zip holds what it names
    version: str
    config: Mapping[str, Any]
    zip_digest: str
    config_digest: str
    lock_digest: str | None
    jars: Mapping[str, str]
    git_commit: str | None
    git_dirty: bool
    errata_version: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected cost of the run and the basis of the estimate."""

    rows: int
    bytes: int
    seconds_low: int
    seconds_high: int
    usd: str
    basis: str


@dataclass(frozen=True, slots=True)
class Restored:
    """Source of the rows of a restore: the target itself at an older snapshot, another table, or recorded rows."""

    snapshot_id: str  # empty for recorded rows
    at: str  # when it was main's snapshot, or when the newest rows were recorded
    asked: str  # as the requester named it: a snapshot, a tag or a time, or what it is restored from
    columns: Mapping[str, str]  # current name → name at that snapshot; others were added later and are NULL
    origin: str = field(default="", metadata=LEFT_OUT)  # another table, or recording:SOURCE; empty: the target


@dataclass(frozen=True, slots=True)
class Override:
    """A guardrail that a named person set aside, and why."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One sealed plan."""

    format: str
    ledger_id: str
    project: str
    product: str
    owner: str
    kind: str
    reason: str
    requested_by: str
    single_user: bool
    as_of: str  # ISO instant, UTC
    partitions: tuple[str, ...]  # the publish range, oldest first
    order: str
    target: TargetPin
    inputs: tuple[InputPin, ...]
    code: Code
    chunks: tuple[Chunk, ...]  # in the order they run
    estimate: Estimate
    limits: Limits
    checks: tuple[Check, ...] = ()
    reconcile: tuple[Reconciliation, ...] = ()
    compare: tuple[Comparison, ...] = ()
    control: tuple[Control, ...] = ()
    control_partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # controls of each partition
    row_limits: tuple[RowLimits, ...] = ()  # of quarantine, by input
    lineage_columns: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    rollback_window: str = "30d"
    overrides: tuple[Override, ...] = ()
    supersedes: str | None = None
    canary: int = 0
    prove_determinism: int = 0
    tolerance: Mapping[str, str] = field(default_factory=dict)  # of diffs, by column
    classified: tuple[str, ...] = ()
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    manual: bool = True  # a person releases the candidate
    extra: Mapping[str, Any] = field(default_factory=dict)
    publish: Publish = field(default_factory=Publish)
    restored: Restored | None = None  # no transform runs
    distribution: tuple[Distribution, ...] = field(default=(), metadata=LEFT_OUT)
    late: Late | None = field(default=None, metadata=LEFT_OUT)  # what the product does about late data
    sinks: Mapping[str, Sink] = field(default_factory=dict, metadata=LEFT_OUT)  # and what this run does with each
    repairs: tuple[CopyRepair, ...] = field(default=(), metadata=LEFT_OUT)  # of copies; main is not changed
    reconstruct: Reconstruction | None = field(default=None, metadata=LEFT_OUT)  # rules for missing events
    made_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=LEFT_OUT)  # column → INPUT.COLUMN
    campaign: str | None = field(default=None, metadata=LEFT_OUT)  # digest of the campaign that it is a member of
    erasure: ErasurePin | None = field(default=None, metadata=LEFT_OUT)  # the list of erased subjects
    clusters: tuple[SealedCluster, ...] = field(default=(), metadata=LEFT_OUT)  # on which workers may be started

    @property
    def changes_table(self) -> bool:
        """Whether the run may change its table; one that may not needs no approval and is never published."""
        return find_kind(self.kind).changes_table

    @property
    def leaves_out_prior_rows(self) -> bool:
        """Whether a merge starts from the target's rows without those of erased subjects."""
        return self.publish.merge is not None and self.erasure is not None and bool(self.erasure.columns)

    def has_override(self, rule: str) -> bool:
        """Whether a named person set this rule aside when the run was planned."""
        return any(override.rule == rule for override in self.overrides)


def find_transactions_pin(pin: InputPin, inputs: Sequence[InputPin]) -> InputPin:
    """The input with the ends of the transactions of a change log."""
    assert pin.log is not None  # noqa: S101 - only such inputs have one
    return next(one for one in inputs if one.name == pin.log.transactions)


def list_read_parts(pin: InputPin, inputs: Sequence[InputPin]) -> tuple[str, ...]:
    """Digests of the manifest parts that reading an input needs."""
    read = (pin, find_transactions_pin(pin, inputs)) if pin.log is not None else (pin,)
    return tuple(one.files_part for one in read if one.files_part)


def list_divisible_inputs(manifest: Manifest) -> list[InputPin]:
    """Inputs each of whose rows belongs to one partition of the product, so that one chunk can account for it."""
    grain = manifest.target.grain
    return [
        pin
        for pin in manifest.inputs
        if pin.partition is not None and not pin.own and not rule_of_pin(pin, grain).is_wider
    ]


def with_list_at(manifest: Manifest, snapshot_id: str | None) -> Manifest:
    """The manifest for a reading of the list of erased subjects at this snapshot."""
    if manifest.erasure is None or snapshot_id is None:
        return manifest
    return replace(manifest, erasure=replace(manifest.erasure, snapshot_id=snapshot_id))


def find_new_partitions(manifest: Manifest) -> tuple[str, ...]:
    """Partitions in scope that held no file at planning."""
    empty = digest_of([])
    return tuple(name for name in manifest.partitions if manifest.target.fingerprints.get(name) == empty)


def count_untouched_partitions(manifest: Manifest) -> int:
    """Number of partitions the table had at planning outside the scope."""
    return max(0, manifest.target.total_partitions - len(manifest.partitions) + len(find_new_partitions(manifest)))
