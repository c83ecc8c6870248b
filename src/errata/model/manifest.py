"""The run manifest: everything a run will read, run and write, resolved before anyone approves it. Pure.

Its canonical bytes (RFC 8785) are what is digested, stored and approved. Long lists (the files of an input, the files
expected live in the target) are *parts*: stored beside the manifest, named in it by their own digest. Snapshot ids
are text, because 64 bits do not survive every JSON reader. No clock value is in here: the same request on the same
world gives the same manifest. ``as_of`` is the newest instant among the pinned facts and serves as the run's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from errata.canonical import digest_of
from errata.model.approval import ApprovalRules
from errata.model.partition import Grain
from errata.model.product import Check, Comparison, Control, Limits, Publish, Reconciliation
from errata.model.product.eras import Era, RowLimits, RowRule

FORMAT = "errata.manifest/1"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A data or delete file that is live in a partition: what the publication will find and take out."""

    path: str
    rows: int
    content: str  # data | position_deletes | equality_deletes


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A pinned source file."""

    path: str
    size: int
    version: str  # "mtime:<ns>" or "etag:<…>"
    schema: int = 0  # which of the input's schemas it has, where they were looked at


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole partitions computed by one Spark job."""

    chunk_id: str
    partitions: tuple[str, ...]
    rows: int
    bytes: int
    wave: int = 1  # 0: the canary, which must pass before any other chunk starts


@dataclass(frozen=True, slots=True)
class InputPin:
    """One input as it will be read."""

    name: str
    kind: str  # table | files
    location: str  # table identifier or file pattern
    partition: str | None
    column_type: str | None  # date | timestamp | timestamptz | string | int | long, of the partition column
    lookback: int  # in partitions of the product's grain
    lookahead: int
    input_partitions: tuple[str, ...]  # what is read; wider than what is published when there is look-back
    fingerprints: Mapping[str, str]  # per input partition
    rows: int
    bytes: int
    file_count: int
    reference: str | None = None
    snapshot_id: str | None = None
    table_uuid: str | None = None
    files_part: str | None = None  # digest of {partition: [SourceFile…]}
    own: bool = False  # the target itself: staged partitions of this run first, the base for the rest
    columns: Mapping[str, str] = field(default_factory=dict)  # what the transform sees; empty: as it is
    eras: tuple[Era, ...] = ()
    era_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # per input partition
    schemas: tuple[Mapping[str, str], ...] = ()  # every shape that was found; files say which is theirs
    counts: Mapping[str, int] = field(default_factory=dict)  # rows of each partition by its files' own account
    row_rules: tuple[RowRule, ...] = ()
    version: str | None = None  # the tag that named the snapshot

    @property
    def is_screened(self) -> bool:
        """Whether rows may be taken out before the transform sees them."""
        return bool(self.columns or self.row_rules)


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column that the target gets with the publication; staged files carry its field id before the target does."""

    name: str
    type: str  # Iceberg type text
    field_id: int


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Why partitions of the target are not sets of files, and what of their files holds other partitions as well."""

    why: str
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TargetPin:
    """The target as it was when the run was planned, read before any input."""

    table: str
    table_uuid: str
    base_snapshot_id: str | None  # None: the table had no snapshot yet
    schema_id: int
    spec_id: int
    column: str
    column_type: str  # date | timestamp | timestamptz | string | int | long
    transform: str  # identity | hour | day | month | year
    grain: Grain
    columns: Mapping[str, str]  # name → Iceberg type text, the contract of the output; new ones included
    key: tuple[str, ...]
    expected_part: str  # digest of {partition: [ExpectedFile…]}
    fingerprints: Mapping[str, str]  # per partition in scope
    total_partitions: int
    mode: str = "metadata"  # how it will be published; rewrite: Spark carries over what shares a file with the scope
    required: tuple[str, ...] = ()  # columns that may not hold NULL
    last_column_id: int = 0  # the highest field id that the table had ever given, where new columns come after it
    new_columns: tuple[NewColumn, ...] = ()  # not in the table yet
    shadow: str | None = None  # the table that takes staged files where the target cannot: new columns, mode rewrite
    rewrite: Rewrite | None = None  # in mode rewrite, as far as metadata tells

    @property
    def staging(self) -> TargetPin:
        """Where staged output lives: the target itself, or its shadow, which has new columns and partitions already."""
        return replace(self, table=self.shadow, shadow=None) if self.shadow else self


@dataclass(frozen=True, slots=True)
class Code:
    """The code that will run."""

    call: str
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
    """What the run will probably cost, and from what that was concluded."""

    rows: int
    bytes: int
    seconds_low: int
    seconds_high: int
    usd: str
    basis: str


@dataclass(frozen=True, slots=True)
class Restored:
    """Where the rows come from when nothing is computed: the target itself, as it was."""

    snapshot_id: str
    at: str  # when main had it
    asked: str  # as the requester named it: a snapshot, a tag or a time
    columns: Mapping[str, str]  # of the target → its name then; what is not here was added since and is NULL


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
    control_partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # comparable ones, by partition
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

    def has_override(self, rule: str) -> bool:
        """Whether a named person set this rule aside when the run was planned."""
        return any(override.rule == rule for override in self.overrides)


def find_new_partitions(manifest: Manifest) -> tuple[str, ...]:
    """Partitions of the scope that held no file when it was planned."""
    empty = digest_of([])
    return tuple(name for name in manifest.partitions if manifest.target.fingerprints.get(name) == empty)


def count_untouched_partitions(manifest: Manifest) -> int:
    """Partitions the table had when it was planned and that the scope does not name."""
    return max(0, manifest.target.total_partitions - len(manifest.partitions) + len(find_new_partitions(manifest)))
