"""The keys of ``errata.yaml``. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from errata.project.files.section import FileModel, detect_form
from errata.project.yaml.scalars import (
    Bytes,
    Count,
    Credential,
    DecimalText,
    Duration,
    Identifier,
    KeyText,
    Length,
    Line,
    PersonName,
    Query,
    ScalarText,
    Setting,
    SettingName,
    Slug,
    Span,
    TableName,
    YesNo,
)


class CatalogFile(FileModel):
    """An Iceberg catalog. A relative uri or warehouse is relative to errata.yaml."""

    type: Literal["jdbc", "rest", "glue", "hive"]
    uri: Credential | None = None
    warehouse: Line | None = None
    properties: dict[SettingName, Setting] = Field(default={}, description="Further settings, passed on.")


class S3File(FileModel):
    """S3, or a store that speaks its protocol. What is left out comes from AWS's own defaults."""

    endpoint: Line | None = Field(default=None, description="Only for stores other than AWS: http://host:port.")
    region: Line | None = None
    path_style: YesNo | None = Field(default=None, description="Bucket in the path instead of the host name.")
    access_key_id: Line | None = Field(default=None, description="With its secret as ${NAME}; else AWS's own chain.")
    secret_access_key: Credential | None = None
    session_token: Credential | None = None


class StorageFile(FileModel):
    """How object stores are reached: said once, for catalogs, source files and Spark."""

    s3: S3File | None = None


class SparkFile(FileModel):
    """The Spark session of workers."""

    master: Line = "local[2]"
    conf: dict[SettingName, Setting] = {}


class PersonFile(FileModel):
    """Someone who may act."""

    roles: Annotated[
        list[Literal["requester", "operator", "approver", "publisher", "break_glass"]], Field(min_length=1)
    ]
    teams: list[Line] = Field(default=[], description="A product whose owner is such a team needs an approval of it.")
    service: YesNo = Field(default=False, description="A program: it never approves, releases or accepts a warning.")
    aliases: list[PersonName] = Field(default=[], description="Other names of the same person.")


class ApprovalFile(FileModel):
    """What it takes before a plan may run. What is left out is as errata.yaml says, else as the defaults."""

    quorum: Count | None = Field(default=None, description="So many different people; 1 if absent.")
    owner: YesNo | None = Field(default=None, description="One is of the team that owns the product; true if absent.")
    valid: Duration | None = Field(default=None, description="How long a decision counts; 30d if absent.")


class AlarmFile(FileModel):
    """Who is told when someone breaks the glass."""

    command: Annotated[list[ScalarText], Field(min_length=1)] = Field(
        description="A program and its arguments, which reads JSON from stdin. No shell is involved."
    )
    timeout: Length = Field(default=10, json_schema_extra={"default": "10s"})


class LimitsFile(FileModel):
    """What one request may touch without a named override."""

    max_partitions: Count = 180
    max_rows: Count | None = None
    max_bytes: Bytes | None = None
    max_usd: DecimalText | None = None


class PriceFile(FileModel):
    """What compute costs, for estimates."""

    core_hour_usd: DecimalText


class EvidenceFile(FileModel):
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


class ErasureFile(FileModel):
    """Whose rows may not be published or brought back, in tables whose products name subjects."""

    table: TableName = Field(description="An Iceberg table of keyed hashes; errata erase add makes and fills it.")
    key: KeyText = Field(
        description="What the ids are hashed with: the file of a key that errata audit keygen made, or the key itself "
        "from the environment."
    )


class ChunksFile(FileModel):
    """How the work is cut. Sizes follow from what was measured, towards a wall time, unless bytes are given."""

    seconds: Count = Field(default=120, description="Wall time that one chunk aims at.")
    bytes: Bytes | None = Field(default=None, description="A fixed size of a chunk's input, never changed.")
    attempts: Count = Field(default=5, description="At one chunk, before it is quarantined.")


class WaveFile(FileModel):
    """After so many chunks nothing new starts for so long."""

    chunks: Count
    pause: Length


class ThrottleFile(FileModel):
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


class SignalFile(FileModel):
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
    Discriminator(detect_form),
]


class ProjectFile(FileModel):
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
    erasure: ErasureFile | None = None
    approval: ApprovalFile = ApprovalFile()
    alarm: AlarmFile | None = None
