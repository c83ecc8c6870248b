"""The shape of ``errata.yaml`` and of product files: every key there is. Pure.

These models exist at this border only; the rest of Errata knows the values of ``errata.model.product``. What needs
more than one key to judge is in ``errata.project.rules``. The docstrings and descriptions reach the JSON schema, so
an editor shows them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from errata.model.product import LINEAGE_COLUMNS, PII_KINDS
from errata.project.fields import (
    Amount,
    Bytes,
    Call,
    Column,
    ColumnType,
    Count,
    Credential,
    DecimalText,
    Duration,
    Expression,
    HoldText,
    Identifier,
    InputName,
    Json,
    KeyText,
    Length,
    LengthText,
    Line,
    PersonName,
    ProductName,
    Query,
    ScalarText,
    Setting,
    SettingName,
    Slug,
    SourceType,
    Span,
    TableName,
    Text,
    Title,
    YesNo,
)

__all__ = [
    "THRESHOLDS",
    "ApprovalFile",
    "CatalogFile",
    "CheckFile",
    "CompareFile",
    "ControlFile",
    "EraFile",
    "InputFile",
    "PersonFile",
    "ProductFile",
    "ProjectFile",
    "ReconcileFile",
    "RowLimitsFile",
    "SignalFile",
    "ThrottleFile",
]


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


def _either(value: Any) -> str:
    return "<many>" if isinstance(value, (dict, list)) else "<one>"


class CatalogFile(_File):
    """An Iceberg catalog. A relative uri or warehouse is relative to errata.yaml."""

    type: Literal["jdbc", "rest", "glue", "hive"]
    uri: Credential | None = None
    warehouse: Line | None = None
    properties: dict[SettingName, Setting] = Field(default={}, description="Further settings, passed on.")


class S3File(_File):
    """S3, or a store that speaks its protocol. What is left out comes from AWS's own defaults."""

    endpoint: Line | None = Field(default=None, description="Only for stores other than AWS: http://host:port.")
    region: Line | None = None
    path_style: YesNo | None = Field(default=None, description="Bucket in the path instead of the host name.")
    access_key_id: Line | None = Field(default=None, description="With its secret as ${NAME}; else AWS's own chain.")
    secret_access_key: Credential | None = None
    session_token: Credential | None = None


class StorageFile(_File):
    """How object stores are reached: said once, for catalogs, source files and Spark."""

    s3: S3File | None = None


class SparkFile(_File):
    """The Spark session of workers."""

    master: Line = "local[2]"
    conf: dict[SettingName, Setting] = {}


class PersonFile(_File):
    """Someone who may act."""

    roles: Annotated[
        list[Literal["requester", "operator", "approver", "publisher", "break_glass"]], Field(min_length=1)
    ]
    teams: list[Line] = Field(default=[], description="A product whose owner is such a team needs an approval of it.")
    service: YesNo = Field(default=False, description="A program: it never approves, releases or accepts a warning.")
    aliases: list[PersonName] = Field(default=[], description="Other names of the same person.")


class ApprovalFile(_File):
    """What it takes before a plan may run. What is left out is as errata.yaml says, else as the defaults."""

    quorum: Count | None = Field(default=None, description="So many different people; 1 if absent.")
    owner: YesNo | None = Field(default=None, description="One is of the team that owns the product; true if absent.")
    valid: Duration | None = Field(default=None, description="How long a decision counts; 30d if absent.")


class AlarmFile(_File):
    """Who is told when someone breaks the glass."""

    command: Annotated[list[ScalarText], Field(min_length=1)] = Field(
        description="A program and its arguments, which reads JSON from stdin. No shell is involved."
    )
    timeout: Length = Field(default=10, json_schema_extra={"default": "10s"})


class LimitsFile(_File):
    """What one request may touch without a named override."""

    max_partitions: Count = 180
    max_rows: Count | None = None
    max_bytes: Bytes | None = None
    max_usd: DecimalText | None = None


class PriceFile(_File):
    """What compute costs, for estimates."""

    core_hour_usd: DecimalText


class EvidenceFile(_File):
    """Who signs the heads of the audit and evidence, and where heads are kept out of the ledger's reach."""

    key: KeyText | None = Field(
        default=None, description="An Ed25519 private key: its file, or the key itself from the environment."
    )
    heads: Line | None = Field(
        default=None, description="A directory for signed heads, which nobody can write over; not beside the ledger."
    )
    max_lag: Length = Field(
        default=86_400,
        json_schema_extra={"default": "1d"},
        description="How long a publication may stand without an exported head before the next one is refused.",
    )
    subject_key: KeyText | None = Field(
        default=None,
        description="What wraps the keys of people in the ledger: a file, or the key from the environment.",
    )


class ChunksFile(_File):
    """How the work is cut. Sizes follow from what was measured, towards a wall time, unless bytes are given."""

    seconds: Count = Field(default=120, description="Wall time that one chunk aims at.")
    bytes: Bytes | None = Field(default=None, description="A fixed size of a chunk's input, never changed.")
    attempts: Count = Field(default=5, description="At one chunk, before it is quarantined.")


class WaveFile(_File):
    """After so many chunks nothing new starts for so long."""

    chunks: Count
    pause: Length


class ThrottleFile(_File):
    """How fast a run may go, over all its workers. None of this changes a result."""

    chunks: Count | None = Field(default=None, description="Chunks in flight at the same time.")
    cores: Count | None = Field(default=None, description="Cores of each Spark application.")
    rows_per_minute: Count | None = None
    bytes_per_minute: Bytes | None = Field(default=None, description="Of input.")
    commits_per_hour: Count | None = None
    wave: WaveFile | None = None
    hours: Annotated[list[Span], Field(min_length=1)] | None = Field(
        default=None, description="Chunks start within these spans only; a span may cross midnight."
    )
    zone: Line | None = Field(default=None, description="Time zone of the hours, such as Europe/Berlin; UTC if absent.")
    pool: Slug | None = Field(default=None, description="Fair-scheduler pool in a session that is shared.")


class SignalFile(_File):
    """A number that says how the live pipeline is doing; higher is worse. One of sql, http and command."""

    name: Slug
    sql: Query | None = Field(default=None, description="One SELECT whose first value is the number.")
    on: Literal["ledger", "lake"] | None = Field(default=None, description="Where sql is asked; the ledger if absent.")
    http: Line | None = Field(default=None, description="An address that answers with the number, or with JSON.")
    field: Line | None = Field(default=None, description="http: the key of the JSON answer that holds the number.")
    command: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(
        default=None, description="A program and its arguments; it prints the number. No shell is involved."
    )
    slow_above: DecimalText | None = Field(default=None, description="Above it one chunk at a time.")
    pause_above: DecimalText | None = Field(default=None, description="Above it no new chunk.")
    resume_below: DecimalText | None = Field(default=None, description="A paused run goes on below it.")
    every: Length = Field(default=30, json_schema_extra={"default": "30s"})
    timeout: Length = Field(default=10, json_schema_extra={"default": "10s"})
    unreadable: Literal["pause", "ignore"] = "pause"


People = Annotated[
    Annotated[dict[PersonName, PersonFile], Field(min_length=1), Tag("<many>")]
    | Annotated[Literal["single-user"], Tag("<one>")],
    Discriminator(_either),
]


class ProjectFile(_File):
    """errata.yaml: where things are, who may do what, defaults."""

    project: Slug
    ledger: Credential = Field(description="sqlite:///relative/path or postgresql+psycopg://…")
    catalogs: Annotated[dict[Identifier, CatalogFile], Field(min_length=1)]
    storage: StorageFile = StorageFile()
    spark: SparkFile = SparkFile()
    people: People = Field(description="People and their roles, or single-user, which every record then says.")
    limits: LimitsFile = LimitsFile()
    price: PriceFile | None = None
    chunks: ChunksFile = ChunksFile()
    chunk_bytes: Bytes | None = Field(default=None, description="Older spelling of chunks.bytes.")
    throttle: ThrottleFile = ThrottleFile()
    health: list[SignalFile] = []
    evidence: EvidenceFile = EvidenceFile()
    approval: ApprovalFile = ApprovalFile()
    alarm: AlarmFile | None = None


class PartitionFile(_File):
    """The partition column of the target and how wide a partition is."""

    column: Column
    grain: Literal["hour", "day", "month", "year", "value"]


class TargetFile(_File):
    """The governed table."""

    table: TableName
    partition: PartitionFile
    key: list[Column] = []
    add_columns: dict[Column, ColumnType] = Field(
        default={}, description="New output columns with their Iceberg types; readers see them with the publication."
    )


class TransformFile(_File):
    """The function that computes the product."""

    call: Call
    version: ScalarText
    config: dict[str, Json] = {}


class EraFile(_File):
    """A span in which a source had one shape, by partitions or by what its files hold, and what to make of it."""

    name: Slug | None = None
    from_: ScalarText | None = Field(default=None, alias="from", description="The first partition of the era.")
    until: ScalarText | None = Field(default=None, description="The last partition of the era, included.")
    has: list[Line] = Field(default=[], description="Columns that files of this era have.")
    lacks: list[Line] = Field(default=[], description="Columns that files of this era do not have.")
    rename: dict[Line, Column] = Field(default={}, description="Column of the source: column of the transform.")
    cast: dict[Column, SourceType] = Field(default={}, description="Rows whose value cannot be cast are quarantined.")
    default: dict[Column, ScalarText | None] = Field(default={}, description="Values of columns that are not there.")
    drop: list[Line] = Field(default=[], description="Columns of the source that count as not there.")


class RowRuleFile(_File):
    """Rows for which the expression is true are taken out before the transform sees them."""

    name: Title
    expression: Line
    action: Literal["quarantine", "suppress"]


class RowLimitsFile(_File):
    """How many rows of a partition, and of the run, may be in quarantine."""

    warn: Amount | None = None
    block: Amount | None = None


class InputFile(_File):
    """What the transform reads: an Iceberg table, files with {partition} in the pattern, or its own earlier output."""

    table: TableName | None = None
    files: Line | None = None
    own: YesNo = Field(default=False, description="The product's own earlier partitions; needs a look-back.")
    partition: Column | None = None
    lookback: Duration = "0d"
    lookahead: Duration = "0d"
    reference: Literal["as_recorded", "corrected_truth", "current", "as_decided"] | None = None
    version: Line | None = Field(default=None, description="A tag of the table; its newest snapshot by default.")
    columns: dict[Column, SourceType] = Field(
        default={}, description="What the transform sees. A column that a file lacks is never NULL in silence."
    )
    eras: list[EraFile] = []
    rows: list[RowRuleFile] = []
    quarantine: RowLimitsFile | None = None


class MergeFile(_File):
    """Which row of a key stays when the transform gives another one."""

    version: Column | None = Field(default=None, description="A row with an older version changes nothing.")
    delete: Line | None = Field(
        default=None, description="A condition on the transform's rows: where it is true, the key is taken out."
    )


class GroupsFile(_File):
    """A few partitions at a time, with a hold in between."""

    size: Count = Field(description="Partitions in one publication, at most.")
    hold: HoldText = Field(description="How long readers have each group before the next one goes.")
    order: Literal["newest", "oldest"] | None = Field(
        default=None, description="Which partitions go first; else as the run computes them."
    )


class FreezeFile(_File):
    """How long cooperating live jobs are held off."""

    idle: Length = Field(
        default=3600,
        json_schema_extra={"default": "1h"},
        description="A run on which no command has worked for so long lets them go on.",
    )
    at_most: Length = Field(
        default=28_800, json_schema_extra={"default": "8h"}, description="Since the run started, whatever happens."
    )


class PublishFile(_File):
    """How the correction reaches readers."""

    mode: Literal["replace_partitions", "append", "merge", "swap_view", "version", "corrections"] = "replace_partitions"
    rollback_window: Duration = "30d"
    manual: YesNo = Field(default=True, description="false: what the gate finds nothing in publishes by itself.")
    merge: MergeFile | None = Field(default=None, description="mode merge: which row of a key stays.")
    versions: TableName | None = Field(
        default=None, description="mode version: the table in which outputs stand side by side."
    )
    view: TableName | None = Field(
        default=None, description="mode swap_view: what readers read; mode version: a view of what is accepted."
    )
    corrections: TableName | None = Field(
        default=None, description="A table of old and new values by key, beside any mode, or alone in mode corrections."
    )
    groups: GroupsFile | None = Field(default=None, description="Progressive publication: in groups, one at a time.")
    on_live_write: Literal["conflict", "freeze", "live_wins"] = Field(
        default="conflict",
        description="A live write into the partitions: refuse to publish, hold live jobs off, or compute those again.",
    )
    freeze: FreezeFile | None = Field(default=None, description="on_live_write freeze: for how long at most.")


THRESHOLDS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
_Pair = Annotated[list[DecimalText], Field(min_length=2, max_length=2)]
_MetricName = Literal[
    "rowCount",
    "nullValues",
    "missingValues",
    "invalidValues",
    "duplicateValues",
    "expression",
    "freshness",
    "timestampBounds",
    "missingReferences",
    "piiValues",
    "not_null",
    "unique",
    "accepted_values",
    "relationships",
    "unique_combination_of_columns",
    "accepted_range",
    "expression_is_true",
]
_PiiKind = Literal[PII_KINDS]  # type: ignore[valid-type]


class ReferencesFile(_File):
    """Columns of an input, as it is pinned, in which the keys must be."""

    input: InputName
    columns: Annotated[list[Column], Field(min_length=1)]


class CheckFile(_File):
    """A data-quality rule in the words of the Open Data Contract Standard, judged per partition or over the run."""

    name: Title | None = None
    metric: _MetricName | None = None
    column: Column | None = None
    columns: Annotated[list[Column], Field(min_length=1)] | None = None
    expression: Expression | None = Field(default=None, description="A row condition; rows where it holds are counted.")
    valid_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="validValues")
    pattern: Line | None = Field(default=None, description="A Java regular expression that the value must contain.")
    minimum: ScalarText | None = Field(default=None, description="The smallest valid value.")
    maximum: ScalarText | None = Field(default=None, description="The largest valid value.")
    min_length: Count | None = Field(default=None, alias="minLength", description="Characters, at least.")
    max_length: Count | None = Field(default=None, alias="maxLength", description="Characters, at most.")
    missing_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="missingValues")
    before: LengthText | None = Field(default=None, description="How long before its partition a timestamp may lie.")
    after: LengthText | None = Field(default=None, description="How long after its partition a timestamp may lie.")
    references: ReferencesFile | None = Field(default=None, description="Where the keys must be.")
    kinds: Annotated[list[_PiiKind], Field(min_length=1)] | None = Field(
        default=None, description="Kinds of personal data to look for; all of them if absent."
    )
    per: Literal["partition", "run"] = Field(default="partition", description="Judged for each partition, or once.")
    unit: Literal["rows", "percent", "minutes", "hours", "days"] | None = Field(
        default=None, description="rows or percent of rows; of freshness minutes, hours or days."
    )
    severity: Literal["warn", "block"] = "block"
    must_be: DecimalText | None = Field(default=None, alias="mustBe")
    must_not_be: DecimalText | None = Field(default=None, alias="mustNotBe")
    must_be_greater_than: DecimalText | None = Field(default=None, alias="mustBeGreaterThan")
    must_be_greater_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeGreaterOrEqualTo")
    must_be_less_than: DecimalText | None = Field(default=None, alias="mustBeLessThan")
    must_be_less_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeLessOrEqualTo")
    must_be_between: _Pair | None = Field(default=None, alias="mustBeBetween")
    must_not_be_between: _Pair | None = Field(default=None, alias="mustNotBeBetween")


class GroupKeyFile(_File):
    """One thing to group by that is written differently on the two sides."""

    source: Line
    target: Line


def _listed(value: Any) -> str:
    return "<list>" if isinstance(value, list) else "<mapping>"


_GroupKey = Annotated[
    Annotated[GroupKeyFile, Tag("<many>")] | Annotated[Line, Tag("<one>")],
    Discriminator(_either),
]
GroupBy = Annotated[
    Annotated[list[Column], Tag("<list>"), Field(min_length=1)]
    | Annotated[dict[Identifier, _GroupKey], Tag("<mapping>"), Field(min_length=1)],
    Discriminator(_listed),
]


class ReconcileFile(_File):
    """An aggregate of an input that must equal an aggregate of the output, per partition or over the run, by group."""

    name: Title
    input: InputName
    source: Line
    target: Line
    tolerance: Amount = "0"
    by: GroupBy | None = Field(
        default=None, description="Columns of both sides, or names, each with an expression or one for each side."
    )
    where: Line | None = Field(default=None, description="A row condition on both sides.")
    source_where: Line | None = Field(default=None, description="A row condition on the input alone.")
    target_where: Line | None = Field(default=None, description="A row condition on the output alone.")
    per: Literal["partition", "run"] = "partition"


class CompareFile(_File):
    """An aggregate of the candidate against the same of the output accepted before."""

    name: Title | None = None
    metric: Line
    warn: Amount | None = None
    block: Amount | None = None


class ControlFile(_File):
    """An aggregate of a partition against the same of comparable partitions that the run does not touch."""

    name: Title | None = None
    metric: Line
    weeks: Count | None = Field(default=None, description="Day or hour: weeks before and after; 4 if absent.")
    years: Count | None = Field(default=None, description="Month: years before and after; 4 if absent.")
    least: Count = Field(default=3, description="Fewer controls are a warning.")
    warn: DecimalText | None = Field(default=None, description="A robust z-score; 3.5 if neither is given.")
    block: DecimalText | None = Field(default=None, description="A robust z-score; 8 if neither is given.")


class DiffFile(_File):
    """How old and new rows are compared."""

    tolerance: dict[Column, Amount] = Field(
        default={}, description="Per column: a smaller movement of a number is no change. Every other column is exact."
    )


class ProtectFile(_File):
    """Partitions that need a named override to be touched."""

    recent: Duration = "0d"
    locked: list[ScalarText] = []


_LineageColumn = Literal[LINEAGE_COLUMNS]  # type: ignore[valid-type]
Lineage = Annotated[
    Annotated[list[_LineageColumn], Tag("<many>")] | Annotated[YesNo, Tag("<one>")], Discriminator(_either)
]


class DeterminismFile(_File):
    """Proof, before a long run may start, that the same input gives the same output."""

    prove: Count = Field(description="So many sample chunks are computed twice, at different parallelism.")


class ProductFile(_File):
    """products/NAME.yaml: one governed product."""

    product: ProductName
    owner: Line
    description: Text = ""
    target: TargetFile
    transform: TransformFile
    inputs: Annotated[dict[InputName, InputFile], Field(min_length=1)]
    publish: PublishFile = PublishFile()
    checks: list[CheckFile] = []
    reconcile: list[ReconcileFile] = []
    compare: list[CompareFile] = []
    control: list[ControlFile] = []
    diff: DiffFile = DiffFile()
    classified: list[Column] = Field(default=[], description="Columns whose values are masked wherever rows are shown.")
    protect: ProtectFile = ProtectFile()
    lineage_columns: Lineage = False
    consumers: list[Line] = []
    determinism: DeterminismFile | None = None
    throttle: ThrottleFile | None = Field(default=None, description="Keys that differ from the project's.")
    health: list[SignalFile] = Field(default=[], description="Signals besides the project's.")
    approval: ApprovalFile = Field(default=ApprovalFile(), description="Keys that differ from the project's.")
