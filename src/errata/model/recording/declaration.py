"""Sources whose files are recorded, as errata.yaml declares them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, Key, OneOf
from errata.model.file_values import (
    Bytes,
    Column,
    Count,
    Credential,
    Duration,
    Length,
    Line,
    Query,
    SettingName,
    Slug,
    YesNo,
)
from errata.model.kafka.declaration import TopicPlace

TEXT_FORMATS = ("json", "csv")
"""Formats whose values are text until an input gives them types."""


@dataclass(frozen=True, slots=True)
class RangeRule:
    """How the business range of a file is found; the command line takes precedence."""

    name: Annotated[
        Line | None, Key("Pattern of file names with the time in braces: orders_{%Y-%m-%d}*.csv; the finest is a unit.")
    ] = None
    column: Annotated[
        Column | None, Key("Column with dates or times; the range is from its first to its last day.")
    ] = None


@dataclass(frozen=True, slots=True)
class SqlSource:
    """A query that `errata record` runs in one transaction."""

    warehouse: Annotated[Slug, Key("A warehouse of errata.yaml.")]
    query: Annotated[Query, Key("One SELECT with {start} and {end}, the ends of the window, and an ORDER BY.")]


@dataclass(frozen=True, slots=True)
class HttpToken:
    """Where a token comes from that every request carries."""

    url: Annotated[Credential, Key("Address that gives a token for the form.")] = field(repr=False)
    form: Annotated[Mapping[SettingName, Credential], Key("Fields to send, with secrets as ${NAME}.")] = field(
        default_factory=dict, repr=False
    )
    field_name: Annotated[Line, Key("Field of the answer with the token.", path="field")] = "access_token"


@dataclass(frozen=True, slots=True)
class HttpSource:
    """An API that `errata record` reads page by page."""

    url: Annotated[Credential, Key("Address without user and password.")] = field(repr=False)
    start: Annotated[SettingName | None, Key("Parameter for the beginning of the window, such as updated_since.")] = (
        None
    )
    end: Annotated[SettingName | None, Key("Parameter for its end, which is excluded.")] = None
    window: Annotated[
        str, OneOf("time", "ids", "none"), Key("What --from and --to are: times, ids, or not there: all is read.")
    ] = "time"
    headers: Annotated[Mapping[SettingName, Credential], Key("Headers, with secrets as ${NAME}.")] = field(
        default_factory=dict, repr=False
    )
    token: HttpToken | None = None
    paging: Annotated[
        str,
        OneOf("none", "cursor", "page", "id", "file"),
        Key("cursor: the answer names the next page; page: counted; id: after the last id; file: one file."),
    ] = "none"
    parameter: Annotated[SettingName | None, Key("Parameter for the cursor, the page or the last id.")] = None
    cursor: Annotated[Line | None, Key("Field of the answer with the next cursor, such as paging.next.")] = None
    rows: Annotated[Line | None, Key("Field of the answer with the list of rows (default: the answer itself).")] = None
    id: Annotated[Line | None, Key("Field of a row that is different in every row; repeated ones are drift.")] = None
    total: Annotated[Line | None, Key("Field of the answer with the number of rows; another number is drift.")] = None
    drift: Annotated[
        str, OneOf("reject", "accept"), Key("What to do with a recording whose pages changed while they were read.")
    ] = "reject"
    per_minute: Annotated[Count, Key("Most requests in a minute.")] = 600
    attempts: Annotated[Count, Key("Attempts at one request.")] = 6
    timeout_seconds: Annotated[Length, Key(path="timeout", default="30s")] = 30


@dataclass(frozen=True, slots=True)
class TopicSource(TopicPlace):
    """A topic whose records `errata record` copies, so that they outlive its retention."""

    topic: Line
    lateness_seconds: Annotated[
        Length,
        Key("How far the time of a record may be from its event time.", path="lateness", default="0s"),
    ] = 0
    compacted: Annotated[YesNo, Key("Record a compacted topic, although older values of a key are gone.")] = False
    transactions: Annotated[YesNo, Key("Producers use transactions, so that some offsets have no record.")] = False

    @property
    def has_gaps(self) -> bool:
        """Whether offsets without a record are expected."""
        return self.compacted or self.transactions


@dataclass(frozen=True, slots=True)
class Source:
    """Where files come from that are recorded before a run reads them."""

    name: Annotated[str, NOT_A_KEY]
    format: Annotated[str, OneOf("json", "csv", "parquet"), Key("json: one object per line; json and csv may be .gz.")]
    duplicates: Annotated[
        str,
        OneOf("ignored", "reprocessed", "correction", "rejected"),
        Key("What the same content again is; correction also lets a file of the same name replace the earlier one."),
    ] = "ignored"
    range: Annotated[RangeRule, Key("Which time a file is about; inputs with partitions need it.")] = field(
        default_factory=RangeRule
    )
    sql: Annotated[SqlSource | None, Key("errata record reads it from a database; format parquet.")] = None
    http: Annotated[HttpSource | None, Key("errata record reads it from an API; format json, or that of the file.")] = (
        None
    )
    kafka: Annotated[TopicSource | None, Key("errata record reads it from a topic; format parquet or json.")] = None
    delimiter: Annotated[Line, Key("Character between the fields of a csv file.")] = ","
    keep: Annotated[Duration | None, Key("How long files are kept (default: recordings.keep).")] = None
    max_bytes: Annotated[Bytes, Key("Largest file, unpacked. A larger one is rejected.", default="50GB")] = (
        50_000_000_000
    )

    @property
    def is_text(self) -> bool:
        """Whether its values are text until an input gives them types."""
        return self.format in TEXT_FORMATS

    @property
    def is_untyped(self) -> bool:
        """Whether declared columns are cast without an era: text, and databases whose numbers come as text."""
        return self.is_text or self.sql is not None


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """Where recorded files are kept, and for how long."""

    location: Annotated[Line, Key("Directory or s3:// prefix, relative to errata.yaml.")] = "recordings"
    """Absolute once loaded."""
    keep: Annotated[Duration, Key("How long files are kept. What a run may still need is kept longer.")] = "180d"


def name_recording(source: str | None) -> str:
    """The location of an input that reads recorded files; empty for any other."""
    return f"recording:{source}" if source else ""
