"""One governed table, as its product file declares it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from errata.canonical import LEFT_OUT
from errata.model.approval import ApprovalRules
from errata.model.change_log.declaration import ChangeCapture
from errata.model.copy.declaration import Copy
from errata.model.file_keys import NOT_A_KEY, Key, OneOf
from errata.model.file_values import (
    Amount,
    Call,
    Column,
    ColumnType,
    Count,
    Duration,
    HoldText,
    Json,
    Length,
    LengthText,
    Line,
    ProductName,
    ScalarText,
    Slug,
    SourceType,
    TableName,
    Text,
    WaveSize,
    YesNo,
)
from errata.model.kafka.declaration import KafkaTopic, RecordValue, TopicPlace
from errata.model.partition import Grain
from errata.model.product.completeness import Completeness
from errata.model.product.eras import Era, RowLimits, RowRule
from errata.model.product.input_policy import HASH, Classification, InputPolicy
from errata.model.product.late import Late
from errata.model.product.reconstruction import Reconstruction
from errata.model.product.rules import Check, Comparison, Control, Distribution, Reconciliation
from errata.model.product.sinks import Sink
from errata.model.product.throttle import Signal, Throttle
from errata.model.product.watch import Watch
from errata.model.recording.declaration import name_recording

LINEAGE_COLUMNS = (
    "produced_by_run_id",
    "produced_by_transform",
    "transform_version",
    "input_snapshot_id",
    "input_range_start",
    "input_range_end",
    "processing_mode",
    "reference_data_version",
    "restatement_reason",
    "produced_at",
)
LINEAGE_BY_DEFAULT = LINEAGE_COLUMNS[:-1]
"""What ``lineage_columns: true`` means; ``produced_at`` came later and is named where a table has it."""


@dataclass(frozen=True, slots=True)
class Target:
    """The governed table."""

    table: TableName
    column: Annotated[Column, Key(path="partition.column")]
    grain: Annotated[Grain, Key(path="partition.grain")]
    key: tuple[Column, ...] = ()
    zone: Annotated[str, NOT_A_KEY] = "UTC"  # zone of the grain; transforms of timestamps count in UTC
    add_columns: Annotated[
        Mapping[Column, ColumnType],
        Key("New output columns with their Iceberg types, visible with the publication."),
    ] = field(default_factory=dict)
    subjects: Annotated[
        tuple[Column, ...], Key("Columns that identify the data subject. Rows of erased subjects are rejected.")
    ] = ()
    copies: Annotated[tuple[Copy, ...], Key("Tables in warehouses that follow this one.")] = field(
        default=(), metadata=LEFT_OUT
    )
    classification: Annotated[
        Classification | None, Key("How secret its rows are; at least as much as every input's.")
    ] = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Transform:
    """What computes the product: a Python function, or one SQL query."""

    call: Call  # module:function, or the file of the query
    version: ScalarText
    config: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_sql(self) -> bool:
        """Whether it is a query in a SQL file."""
        return is_sql_file(self.call)


def is_sql_file(call: str) -> bool:
    """Whether what a product calls is a SQL file rather than a Python function."""
    return call.endswith(".sql")


READ_AT_ITS_TIME = ("as_recorded", "as_decided")
"""References whose snapshot depends on the partition that is computed."""


@dataclass(frozen=True, slots=True)
class Input:
    """What the transform reads: a table, files by a pattern, a recording, a topic, or its own earlier output."""

    name: Annotated[str, NOT_A_KEY]
    table: TableName | None = None
    files: Line | None = None
    recording: Annotated[Slug | None, Key("A source of errata.yaml, whose recorded files are read.")] = None
    partition: Column | None = None  # None: read whole (reference data)
    grain: Annotated[
        Grain | None,
        Key("Grain of the input's partitions, if it is not the target's: a daily product of hourly files has hour."),
    ] = None
    lookback: Duration = "0d"
    lookahead: Duration = "0d"
    reference: Annotated[
        Annotated[str, OneOf("as_recorded", "corrected_truth", "current", "as_decided")] | None,
        Key(
            "as_recorded: as it was at the end of each partition; as_decided: as the accepted run of each partition "
            "read it; others: the newest snapshot, and rows say which meaning it has."
        ),
    ] = None
    # those staged by this run, before them those of its base
    own: Annotated[YesNo, Key("Read the product's own earlier partitions; needs lookback.")] = False
    columns: Annotated[
        Mapping[Column, SourceType],
        Key("Columns that the transform sees. A missing column needs a rename or an explicit default."),
    ] = field(default_factory=dict)
    eras: tuple[Era, ...] = ()
    rows: tuple[RowRule, ...] = ()
    version: Annotated[Line | None, Key("Tag of the table (default: its newest snapshot).")] = None
    complete: Annotated[
        Completeness | None, Key("When a partition has all its rows. A plan that reads others is refused.")
    ] = None
    drift: Annotated[
        str,
        OneOf("approve", "live"),
        Key("If it changes after a campaign was approved: approve again, or read it as it is when the member starts."),
    ] = "approve"
    snapshot_id: Annotated[str | None, NOT_A_KEY] = None  # read it there, instead of at its newest snapshot
    kafka: Annotated[KafkaTopic | None, Key("A topic of Kafka, read by offsets that the plan seals.")] = field(
        default=None, metadata=LEFT_OUT
    )
    cdc: Annotated[
        ChangeCapture | None,
        Key("Its messages are changes of a database table, which are read as a state, as changes or as a history."),
    ] = field(default=None, metadata=LEFT_OUT)
    # the input whose transactions end in these messages; the transform does not see them
    transactions_of: Annotated[str | None, NOT_A_KEY] = field(default=None, metadata=LEFT_OUT)
    subjects: Annotated[
        tuple[Column, ...], Key("Columns that identify the data subject. Rows of erased subjects are not read.")
    ] = field(default=(), metadata=LEFT_OUT)
    policy: Annotated[InputPolicy, Key("What it may be used for, and which values nobody sees.")] = field(
        default_factory=InputPolicy, metadata=LEFT_OUT
    )

    @property
    def is_message_log(self) -> bool:
        """Whether all its messages are read for every partition."""
        return self.cdc is not None or self.transactions_of is not None

    value: Annotated[
        RecordValue | None, Key("recording of a topic: what the values of its records hold, in place of columns.")
    ] = field(default=None, metadata=LEFT_OUT)

    @property
    def has_own_snapshots(self) -> bool:
        """Whether each partition of the run reads it at a snapshot of its own."""
        return self.reference in READ_AT_ITS_TIME

    @property
    def location(self) -> str:
        """Table, file pattern, recording or topic."""
        return self.table or self.files or (self.kafka.location if self.kafka else name_recording(self.recording))

    @property
    def needs_schema(self) -> bool:
        """Whether planning must read the schemas of the source's files."""
        is_screened = self.columns or self.rows or self.subjects or self.policy.mask
        return bool(is_screened or (self.complete and self.complete.rows_from))


@dataclass(frozen=True, slots=True)
class Protect:
    """Partitions that can be corrected only with a named override."""

    recent: Duration = "0d"
    locked: tuple[ScalarText, ...] = ()  # partitions or inclusive spans


@dataclass(frozen=True, slots=True)
class Merge:
    """Which row of a key wins when the transform returns another one."""

    version: Annotated[Column | None, Key("Version column. A row with an older version changes nothing.")] = None
    delete: Annotated[Line | None, Key("Condition on the transform's rows; where it is true, the key is removed.")] = (
        None
    )
    sql: Annotated[str, NOT_A_KEY] = ""  # normal form of the delete condition
    markers: Annotated[tuple[str, ...], NOT_A_KEY] = ()  # columns that the delete condition uses


@dataclass(frozen=True, slots=True)
class Waves:
    """Compute, judge and publish a part of the run at a time."""

    size: Annotated[WaveSize, Key("Partitions in a wave: a number, or a length of time such as 30d.")]
    pause: Annotated[HoldText, Key("Minimum time between two waves.")] = "0s"
    order: Annotated[
        Annotated[str, OneOf("newest", "oldest")] | None,
        Key("Which partitions go first (default: as the run computes them)."),
    ] = None
    release: Annotated[
        str,
        OneOf("each", "first", "none"),
        Key("A person releases each wave, or only the first; none: with manual false, no person."),
    ] = "each"
    within: Annotated[
        Mapping[Line, Amount],
        Key("release first: largest change of rows, or of a metric in compare, for a wave that goes without a person."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Freeze:
    """How long cooperating live jobs are kept out."""

    idle: Annotated[
        Length, Key("The freeze ends when no command has worked on the run for this long.", default="1h")
    ] = 3600
    at_most: Annotated[Length, Key("Longest time from the start of the run, or of each wave.", default="8h")] = 28_800


@dataclass(frozen=True, slots=True)
class Publish:
    """How the correction reaches readers."""

    mode: Annotated[str, OneOf("replace_partitions", "append", "merge", "swap_view", "version", "corrections")] = (
        "replace_partitions"
    )
    merge: Annotated[Merge | None, Key("mode merge: which row of a key wins.")] = None
    view: Annotated[
        TableName | None,
        Key("mode swap_view: the view that readers use; mode version: a view of the current versions."),
    ] = None
    versions: Annotated[TableName | None, Key("mode version: the table of versions.")] = (
        None  # mode swap_view has one too, named after the target
    )
    corrections: Annotated[
        TableName | None,
        Key("Table of old and new values by key; with any mode, or alone in mode corrections."),
    ] = None
    corrections_topic: Annotated[TopicPlace | None, NOT_A_KEY] = field(default=None, metadata=LEFT_OUT)
    creates: Annotated[tuple[str, ...], NOT_A_KEY] = ()  # statements that create the tables missing at planning
    groups: Annotated[Mapping[str, Any] | None, NOT_A_KEY] = None  # only in plans of earlier versions
    waves: Annotated[Waves | None, Key("Publish in waves, one at a time.")] = field(default=None, metadata=LEFT_OUT)
    on_live_write: Annotated[
        str,
        OneOf("conflict", "freeze", "live_wins"),
        Key("On a live write to the partitions: refuse to publish, keep live jobs out, or compute them again."),
    ] = "conflict"
    freeze: Annotated[Freeze | None, Key("on_live_write freeze: how long at most.")] = None


@dataclass(frozen=True, slots=True)
class Live:
    """Jobs that write the table in ordinary operation."""

    jobs: Annotated[
        tuple[Line, ...], Key("Registered live jobs: application names or ids, or names given to errata.live.")
    ] = ()
    longest_run: Annotated[
        LengthText | None,
        Key("Longest time from reading an input to the commit. Without it, times never show that output is current."),
    ] = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What a plan needs before it is accepted."""

    require: Annotated[
        tuple[Annotated[str, OneOf("dry_run", "canary")], ...],
        Key("dry_run: a trial of the same code on record; canary: a canary in the plan."),
    ] = ()
    expected_rows: Annotated[
        ScalarText | None, Key("Rows that a run may write: N, A..B, A.. or ..B (default: any number).")
    ] = None


@dataclass(frozen=True, slots=True)
class Product:
    """products/NAME.yaml: one governed product."""

    name: Annotated[ProductName, Key(path="product")]
    owner: Line
    target: Target
    transform: Transform
    inputs: Annotated[tuple[Input, ...], NOT_A_KEY]
    description: Text = ""
    publish: Publish = field(default_factory=Publish)
    rollback_window: Annotated[str, NOT_A_KEY] = "30d"
    checks: tuple[Check, ...] = ()
    reconcile: tuple[Reconciliation, ...] = ()
    compare: tuple[Comparison, ...] = ()
    control: tuple[Control, ...] = ()
    distribution: tuple[Distribution, ...] = ()
    row_limits: Annotated[tuple[RowLimits, ...], NOT_A_KEY] = ()  # of quarantine, by input
    protect: Protect = field(default_factory=Protect)
    policy: Policy = field(default_factory=Policy)
    lineage_columns: Annotated[tuple[str, ...], NOT_A_KEY] = ()
    made_from: Annotated[
        Mapping[Column, tuple[Line, ...]],
        Key("For lineage: the columns of inputs, as INPUT.COLUMN, that a column is computed from."),
    ] = field(default_factory=dict, metadata=LEFT_OUT)
    consumers: tuple[Line, ...] = ()
    live: Annotated[Live, Key("Registered live jobs, as a list or with their longest run.")] = field(
        default_factory=Live
    )
    late: Annotated[Late | None, Key("What to do about late data.")] = None
    reconstruct: Annotated[Reconstruction | None, Key("Rules for events that were never recorded.")] = None
    watch: Annotated[Watch | None, Key("What to look at after a publication, and for how long.")] = None
    sinks: Annotated[Mapping[Slug, Sink], Key("Where the transform sends rows beside its output, by ctx.emit.")] = (
        field(default_factory=dict)
    )
    prove_determinism: Annotated[
        Count,
        Key("Number of sample chunks to compute twice, at different parallelism.", "determinism.prove"),
    ] = 0
    repeatable: Annotated[
        YesNo,
        Key("Whether the same inputs, code and clock always give the same rows.", "determinism.repeatable"),
    ] = True
    tolerance: Annotated[
        Mapping[Column, Amount],
        Key(
            "Largest difference per column that is no change. All other columns are compared exactly.", "diff.tolerance"
        ),
    ] = field(default_factory=dict)
    classified: Annotated[tuple[Column, ...], Key("Columns whose values are masked in all output.")] = ()
    purpose: Annotated[Slug | None, Key("What the product is for; inputs may allow only some purposes.")] = field(
        default=None, metadata=LEFT_OUT
    )
    throttle: Annotated[Throttle | None, Key("Keys that differ from the project's.")] = None  # once loaded, merged
    health: Annotated[tuple[Signal, ...], Key("Signals in addition to the project's.")] = ()
    approval: Annotated[ApprovalRules, Key("Keys that differ from the project's.")] = field(
        default_factory=ApprovalRules
    )  # once loaded, merged
    manual: Annotated[bool, NOT_A_KEY] = True  # a person releases each candidate
    path: Annotated[str, NOT_A_KEY] = ""  # the file, relative to the project
    # line of each rule in the file
    lines: Annotated[Mapping[str, int], NOT_A_KEY] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names_subjects(self) -> bool:
        """Whether rows of erased subjects are left out or searched for."""
        return bool(self.target.subjects or any(source.subjects for source in self.inputs))

    @property
    def needs_list(self) -> bool:
        """Whether a run needs the list of erased subjects, or only its key, to hash values."""
        return self.names_subjects or any(HASH in source.policy.mask.values() for source in self.inputs)
