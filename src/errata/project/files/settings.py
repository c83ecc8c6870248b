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
    properties: dict[SettingName, Setting] = Field(default={}, description="Further settings, passed to the catalog.")


class S3File(FileModel):
    """S3, or a store with the same protocol. Missing keys come from AWS's own defaults."""

    endpoint: Line | None = Field(default=None, description="Only for stores other than AWS: http://host:port.")
    region: Line | None = None
    path_style: YesNo | None = Field(default=None, description="Put the bucket in the path instead of the host name.")
    access_key_id: Line | None = Field(
        default=None, description="Access key, with its secret as ${NAME} (default: AWS's own chain)."
    )
    secret_access_key: Credential | None = None
    session_token: Credential | None = None


class StorageFile(FileModel):
    """Object stores, for catalogs, source files and Spark."""

    s3: S3File | None = None


class SparkFile(FileModel):
    """The Spark session of workers."""

    master: Line = "local[2]"
    conf: dict[SettingName, Setting] = {}


class PersonFile(FileModel):
    """A person or service account."""

    roles: Annotated[
        list[Literal["requester", "operator", "approver", "publisher", "break_glass"]], Field(min_length=1)
    ]
    teams: list[Line] = Field(
        default=[], description="Teams; a product owned by such a team needs an approval from it."
    )
    service: YesNo = Field(default=False, description="A program; it may not approve, release or accept a warning.")
    aliases: list[PersonName] = Field(default=[], description="Other names of the same person.")


class ApprovalFile(FileModel):
    """Approvals that a plan needs. Missing keys come from errata.yaml, then from the defaults."""

    quorum: Count | None = Field(
        default=None, description="Number of different people who have to approve (default: 1)."
    )
    owner: YesNo | None = Field(
        default=None, description="Require one of the team that owns the product (default: true)."
    )
    valid: Duration | None = Field(default=None, description="How long a decision is valid (default: 30d).")


class AlarmFile(FileModel):
    """The program to run on break-glass."""

    command: Annotated[list[ScalarText], Field(min_length=1)] = Field(
        description="Program and arguments, run without a shell; reads JSON from stdin."
    )
    timeout: Length = Field(default=10, json_schema_extra={"default": "10s"})


class LimitsFile(FileModel):
    """Limits of one request; exceeding them needs a named override."""

    max_partitions: Count = 180
    max_rows: Count | None = None
    max_bytes: Bytes | None = None
    max_usd: DecimalText | None = None


class PriceFile(FileModel):
    """The price of compute, for estimates."""

    core_hour_usd: DecimalText


class EvidenceFile(FileModel):
    """The key that signs audit heads and evidence, and the directory for heads outside the ledger."""

    key: KeyText | None = Field(
        default=None, description="Ed25519 private key: its file, or the key itself from the environment."
    )
    heads: Line | None = Field(default=None, description="Write-once directory for signed heads, away from the ledger.")
    max_lag: Length = Field(
        default=86_400,
        json_schema_extra={"default": "1d"},
        description="How long a publication may be without an exported head before the next one is refused.",
    )
    subject_key: KeyText | None = Field(
        default=None,
        description="Key that wraps the keys of people in the ledger: a file, or the key from the environment.",
    )


class ErasureFile(FileModel):
    """The list of erased subjects, for products that name subject columns."""

    table: TableName = Field(description="Iceberg table of keyed hashes; errata erase add creates and fills it.")
    key: KeyText = Field(
        description="Key of the hashes: the file of a key that errata audit keygen made, or the key itself "
        "from the environment."
    )


class ChunksFile(FileModel):
    """How partitions are packed into chunks: towards a duration by measured speed, or to a fixed size."""

    seconds: Count = Field(default=120, description="Target duration of one chunk.")
    bytes: Bytes | None = Field(default=None, description="Fixed input size of a chunk.")
    attempts: Count = Field(default=5, description="Attempts at one chunk before it is quarantined.")


class WaveFile(FileModel):
    """After this many chunks, no new one starts for the pause."""

    chunks: Count
    pause: Length


class ThrottleFile(FileModel):
    """Limits on the speed of a run, over all its workers. They change no result."""

    chunks: Count | None = Field(default=None, description="Chunks in progress at the same time.")
    cores: Count | None = Field(default=None, description="Cores of each Spark application.")
    rows_per_minute: Count | None = None
    bytes_per_minute: Bytes | None = Field(default=None, description="Bytes of input per minute.")
    commits_per_hour: Count | None = None
    wave: WaveFile | None = None
    hours: Annotated[list[Span], Field(min_length=1)] | None = Field(
        default=None, description="Chunks start only within these spans; a span may cross midnight."
    )
    zone: Line | None = Field(default=None, description="Time zone of the hours, such as Europe/Berlin (default: UTC).")
    pool: Slug | None = Field(default=None, description="Fair-scheduler pool in a shared session.")


class SignalFile(FileModel):
    """A number about the health of the live pipeline; higher is worse. One of sql, http and command."""

    name: Slug
    sql: Query | None = Field(default=None, description="One SELECT whose first value is the number.")
    on: Literal["ledger", "lake"] | None = Field(default=None, description="Where sql runs (default: ledger).")
    http: Line | None = Field(default=None, description="Address that returns the number, or JSON.")
    field: Line | None = Field(default=None, description="http: JSON key of the number.")
    command: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(
        default=None, description="Program and arguments, run without a shell; prints the number."
    )
    slow_above: DecimalText | None = Field(default=None, description="Above this, one chunk at a time.")
    pause_above: DecimalText | None = Field(default=None, description="Above this, no new chunk starts.")
    resume_below: DecimalText | None = Field(default=None, description="Below this, a paused run continues.")
    every: Length = Field(default=30, json_schema_extra={"default": "30s"})
    timeout: Length = Field(default=10, json_schema_extra={"default": "10s"})
    unreadable: Literal["pause", "ignore"] = "pause"


People = Annotated[
    Annotated[dict[PersonName, PersonFile], Field(min_length=1), Tag("<many>")]
    | Annotated[Literal["single-user"], Tag("<one>")],
    Discriminator(detect_form),
]


class ProjectFile(FileModel):
    """errata.yaml: ledger, catalogs, people and defaults."""

    project: Slug
    ledger: Credential = Field(description="sqlite:///relative/path or postgresql+psycopg://…")
    catalogs: Annotated[dict[Identifier, CatalogFile], Field(min_length=1)]
    storage: StorageFile = StorageFile()
    spark: SparkFile = SparkFile()
    people: People = Field(description="People and their roles, or single-user, which is then recorded everywhere.")
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
