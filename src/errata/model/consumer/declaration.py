"""Channels, databases and consumers, as errata.yaml declares them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf
from errata.model.file_values import (
    Amount,
    Column,
    Credential,
    Expression,
    Identifier,
    KeyText,
    Length,
    Line,
    Query,
    ScalarText,
    Slug,
    TableName,
    YesNo,
)

EVENTS = ("planned", "approved", "holding", "published", "rolled_back", "recovered", "failed")
"""Events that a consumer can get a message about, in the order in which they happen."""
CHANNEL_KINDS = ("slack", "webhook", "email", "file", "command")
UNUSUAL = "unusual"
"""The event of a watch that found something; its message goes to the channel of the watch."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that receives messages as JSON."""

    url: Credential = field(repr=False)
    secret: Annotated[Credential | None, Key("Signs every message: HMAC-SHA256 over id, time and body.")] = field(
        default=None, repr=False
    )


@dataclass(frozen=True, slots=True)
class Email:
    """A mailbox, and the server that takes mail for it."""

    smtp: Annotated[Credential, Key("smtp://host:25, smtp+starttls://user:password@host:587 or smtps://…:465.")] = (
        field(repr=False)
    )
    sender: Annotated[Line, Key(path="from")]
    to: Annotated[tuple[Line, ...], AtLeast(1)]


@dataclass(frozen=True, slots=True)
class Channel:
    """Where messages go: one of slack, webhook, email, file and command."""

    name: Annotated[str, NOT_A_KEY]
    slack: Annotated[Credential | None, Key("Address of a Slack-compatible incoming webhook.")] = field(
        default=None, repr=False
    )
    webhook: Webhook | None = None
    email: Email | None = None
    file: Annotated[Line | None, Key("File to which each message is appended as a line of JSON.")] = None
    """Absolute once loaded."""
    command: Annotated[
        tuple[ScalarText, ...], Key("Program and arguments, run without a shell; reads the message as JSON from stdin.")
    ] = field(default=(), repr=False)
    timeout_seconds: Annotated[Length, Key(path="timeout", default="10s")] = 10

    @property
    def kind(self) -> str:
        """How messages go there."""
        return next(kind for kind in CHANNEL_KINDS if getattr(self, kind))


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A database behind the lake: PostgreSQL by its uri, or an account of Snowflake."""

    name: Annotated[str, NOT_A_KEY]
    type: Annotated[str, OneOf("postgres", "snowflake")]
    uri: Annotated[Credential | None, Key("postgres: postgresql://user:password@host/database")] = field(
        default=None, repr=False
    )
    account: Annotated[Line | None, Key("snowflake: name of the account, such as org-account.")] = None
    user: Annotated[Line | None, Key("snowflake: user that owns the key.")] = None
    private_key: Annotated[
        KeyText | None, Key("snowflake: private key of the user: a file, or the key from the environment.")
    ] = field(default=None, repr=False)
    role: Annotated[Line | None, Key("snowflake: role of the session.")] = None
    warehouse: Annotated[Line | None, Key("snowflake: warehouse that runs the statements.")] = None
    database: Annotated[Line | None, Key("snowflake: database of the copies.")] = None
    schema_name: Annotated[Line | None, Key("snowflake: schema of the copies.", path="schema")] = None
    stage: Annotated[Line | None, Key("snowflake: external stage over the lake's files, such as @lake.")] = None
    host: Annotated[Line | None, Key("snowflake: another host than the account's, such as a private link.")] = None


@dataclass(frozen=True, slots=True)
class Tell:
    """Which events a consumer gets a message about, and where."""

    channel: Slug
    on: Annotated[tuple[Annotated[str, OneOf(*EVENTS)], ...], AtLeast(1)] = ("published", "rolled_back")


@dataclass(frozen=True, slots=True)
class Hold:
    """The time that a consumer gets before a publication."""

    on_timeout: Annotated[str, OneOf("go", "stop"), Key("After at_most without an acknowledgement: publish, or not.")]
    before_seconds: Annotated[Length, Key("Notice before the publication.", path="before", default="0s")] = 0
    at_most_seconds: Annotated[Length, Key("A hold ends after this long.", path="at_most", default="2h")] = 7200
    acknowledge: Annotated[YesNo, Key("Wait until the consumer's owner acknowledges.")] = False
    over: Annotated[str, OneOf("wave", "run"), Key("run: one hold from the first wave to the last.")] = "wave"


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request; ``{partition}`` in the path or the query is percent-encoded."""

    url: Credential = field(repr=False)
    method: Annotated[str, OneOf("POST", "PUT", "DELETE", "GET")] = "POST"
    headers: Annotated[Mapping[Line, Credential], Key("Further headers.")] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Refresh:
    """One step that makes a consumer read again: one of redis, sql, http and command."""

    redis: Annotated[Credential | None, Key("redis://…; needs delete.")] = field(default=None, repr=False)
    delete: Annotated[Line | None, Key("redis: pattern of the keys to delete, such as rev:{partition}:*.")] = None
    sql: Annotated[Query | None, Key("A statement; {partition} becomes a bound parameter. Needs on.")] = None
    on: Annotated[Identifier | None, Key("sql: the warehouse in which it runs.")] = None
    http: HttpCall | None = None
    command: Annotated[tuple[ScalarText, ...], Key("Program and arguments; {partition} may be one of them.")] = field(
        default=(), repr=False
    )
    timeout_seconds: Annotated[Length, Key(path="timeout", default="30s")] = 30


@dataclass(frozen=True, slots=True)
class Verify:
    """What the consumer shows for a partition, and what it has to equal: one of sql, redis, http and command."""

    equals: Annotated[Expression, Key("Aggregate over the published partition, such as sum(revenue_usd).")]
    sql: Annotated[Query | None, Key("A query of one value; {partition} becomes a bound parameter. Needs on.")] = None
    on: Annotated[Identifier | None, Key("sql: the warehouse in which it runs.")] = None
    redis: Annotated[Credential | None, Key("redis://…; needs get.")] = field(default=None, repr=False)
    get: Annotated[Line | None, Key("redis: key of the value, such as rev:{partition}:total.")] = None
    http: HttpCall | None = None
    answer: Annotated[Line | None, Key("http: JSON key of the value.", path="field")] = None
    command: Annotated[tuple[ScalarText, ...], Key("Program and arguments; the last word of its output counts.")] = (
        field(default=(), repr=False)
    )
    tolerance: Annotated[Amount, Key("Largest difference that is no difference.")] = "0"
    timeout_seconds: Annotated[Length, Key(path="timeout", default="30s")] = 30


@dataclass(frozen=True, slots=True)
class WatermarkState:
    """The row in which an incremental job keeps how far it has read."""

    on: Identifier
    table: Line
    key: Annotated[Mapping[Column, ScalarText], AtLeast(1), Key("Columns and values that find the row.")]
    column: Annotated[Column, Key("Column with the last partition that was read.")]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program or a team that reads products: a dashboard, a job, a stream."""

    name: Annotated[str, NOT_A_KEY]
    reads: Annotated[tuple[Line, ...], AtLeast(1), Key("Products that it reads.")]
    owner: Annotated[Line, Key("Team or person that acknowledges holds and confirms repairs.")] = ""
    kind: Annotated[
        str,
        OneOf("reader", "iceberg-stream", "watermark"),
        Key("How it reads: all of it each time, as a stream, or incrementally."),
    ] = "reader"
    tell: Tell | None = None
    hold: Hold | None = None
    refresh: tuple[Refresh, ...] = ()
    refill_seconds: Annotated[
        Length, Key("Longest time that a reader takes to fill its cache; refreshed again after it.", "refill", "0s")
    ] = 0
    verify: Verify | None = None
    recover_within_seconds: Annotated[
        Length | None, Key("The consumer has to show what was published within this time.", "recover_within")
    ] = None
    checkpoint: Annotated[Line | None, Key("iceberg-stream: location of its checkpoint.")] = None
    on_replace: Annotated[
        str,
        OneOf("skip", "rewind", "stop"),
        Key("iceberg-stream: pass replaced partitions, prepare a repaired checkpoint, or refuse to publish."),
    ] = "stop"
    state: Annotated[WatermarkState | None, Key("watermark: where it keeps how far it has read.")] = None
    rerun: Annotated[tuple[ScalarText, ...], Key("watermark: command that gets the partitions instead.")] = ()


@dataclass(frozen=True, slots=True)
class ReadyTable:
    """The table in the lake that says which partitions are ready."""

    table: TableName
