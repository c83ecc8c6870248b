"""A project: catalogs, ledger, people, limits and secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from errata.model.approval import ApprovalRules
from errata.model.cluster.declaration import Clusters
from errata.model.consumer.declaration import Channel, Consumer, ReadyTable, Warehouse
from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf
from errata.model.file_values import (
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
    ScalarText,
    Setting,
    SettingName,
    Slug,
    YesNo,
)
from errata.model.kafka.declaration import KafkaCluster
from errata.model.lineage.declaration import LineageSettings
from errata.model.product.erasure import ErasureSettings
from errata.model.product.product import Product
from errata.model.product.throttle import Signal, Throttle
from errata.model.recording.declaration import RecordingSettings, Source
from errata.model.refs import RUN_DAYS, STEP_DAYS
from errata.text.secrets import list_spellings


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """The key that signs audit heads and evidence, and the directory for heads outside the ledger."""

    key: Annotated[KeyText | None, Key("Ed25519 private key: its file, or the key itself from the environment.")] = (
        field(default=None, repr=False)
    )
    """A path relative to the project, or the private key itself; ``${NAME}`` while that variable is not set."""
    heads: Annotated[Line | None, Key("Write-once directory for signed heads, away from the ledger.")] = None
    """Absolute."""
    max_lag_seconds: Annotated[
        Length,
        Key(
            "How long a publication may be without an exported head before the next one is refused.",
            path="max_lag",
            default="1d",
        ),
    ] = 86_400
    subject_key: Annotated[
        KeyText | None, Key("Key that wraps the keys of people in the ledger: a file, or the key from the environment.")
    ] = field(default=None, repr=False)
    """In the same form as ``key``."""


class Role(StrEnum):
    """What a person may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    APPROVER = "approver"
    PUBLISHER = "publisher"
    BREAK_GLASS = "break_glass"


@dataclass(frozen=True, slots=True)
class S3:
    """S3, or a store with the same protocol. Missing keys come from AWS's own defaults."""

    endpoint: Annotated[Line | None, Key("Only for stores other than AWS: http://host:port.")] = None
    region: Line | None = None
    path_style: Annotated[YesNo | None, Key("Put the bucket in the path instead of the host name.")] = None
    access_key_id: Annotated[Line | None, Key("Access key, with its secret as ${NAME} (default: AWS's own chain).")] = (
        field(default=None, repr=False)
    )
    secret_access_key: Credential | None = field(default=None, repr=False)
    session_token: Credential | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Catalog:
    """An Iceberg catalog. A relative uri or warehouse is relative to errata.yaml."""

    name: Annotated[str, NOT_A_KEY]
    type: Annotated[str, OneOf("jdbc", "rest", "glue", "hive")]
    # both are absolute once loaded; not in repr, because they may hold credentials from the environment
    uri: Credential | None = field(default=None, repr=False)
    warehouse: Line | None = field(default=None, repr=False)
    properties: Annotated[Mapping[SettingName, Setting], Key("Further settings, passed to the catalog.")] = field(
        default_factory=dict, repr=False
    )
    s3: Annotated[S3 | None, NOT_A_KEY] = None  # the project's; ``properties`` take precedence


@dataclass(frozen=True, slots=True)
class Person:
    """A person or service account."""

    name: Annotated[str, NOT_A_KEY]
    roles: Annotated[tuple[Role, ...], AtLeast(1)]
    teams: Annotated[tuple[Line, ...], Key("Teams; a product owned by such a team needs an approval from it.")] = ()
    service: Annotated[YesNo, Key("A program; it may not approve, release or accept a warning.")] = False
    aliases: Annotated[tuple[PersonName, ...], Key("Other names of the same person.")] = ()


@dataclass(frozen=True, slots=True)
class Alarm:
    """The program to run on break-glass."""

    command: Annotated[
        tuple[ScalarText, ...],
        AtLeast(1),
        Key("Program and arguments, run without a shell; reads JSON from stdin."),
    ] = field(repr=False)  # may hold a value from the environment
    timeout_seconds: Annotated[Length, Key(path="timeout", default="10s")] = 10


@dataclass(frozen=True, slots=True)
class DbtSettings:
    """A project of dbt that reads the tables."""

    manifest: Annotated[Line, Key("The manifest.json in dbt's target directory, relative to errata.yaml.")]
    """Absolute once loaded."""
    project: Annotated[Line | None, Key("Directory of dbt's project, to build models in campaigns.")] = None
    """Absolute once loaded."""
    build: Annotated[
        tuple[Line, ...],
        Key("Models that a campaign builds last; each microbatch or insert_overwrite, with an event_time."),
    ] = ()
    command: Annotated[tuple[Line, ...], AtLeast(1), Key("How dbt is started, in an environment of its own.")] = (
        "dbt",
    )


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """Corrections of a product together with those that read it."""

    valid_for: Annotated[
        Duration, Key("Members must start this soon after planning; their partitions are reserved so long.")
    ] = "7d"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Log lines of every command, for programs."""

    format: Annotated[str, OneOf("json"), Key("One JSON object per line.")] = "json"
    file: Annotated[Line | None, Key("Where every process appends, relative to errata.yaml (default: stderr).")] = None
    """Absolute once loaded."""
    level: Annotated[str, OneOf("info", "warning", "error"), Key("The least level that is written.")] = "info"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request; exceeding them needs a named override."""

    max_partitions: Count = 180
    max_rows: Count | None = None
    max_bytes: Bytes | None = None
    max_usd: DecimalText | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long branches and tags of a run live if nobody removes them."""

    pins: Annotated[Duration, Key("Tags on the snapshots that a run reads and replaces.")] = f"{RUN_DAYS}d"
    staged: Annotated[Duration, Key("The branch with the output of a run.")] = f"{RUN_DAYS}d"
    candidates: Annotated[Duration, Key("The branch with a candidate.")] = f"{STEP_DAYS}d"


@dataclass(frozen=True, slots=True)
class Project:
    """errata.yaml: ledger, catalogs, people and defaults."""

    name: Annotated[Slug, Key(path="project")]
    root: Annotated[str, NOT_A_KEY]  # absolute
    # absolute once loaded; may hold a password
    ledger: Annotated[Credential, Key("sqlite:///relative/path or postgresql+psycopg://…")] = field(repr=False)
    catalogs: Annotated[Mapping[Identifier, Catalog], AtLeast(1)]
    products: Annotated[Mapping[str, Product], NOT_A_KEY] = field(repr=False)
    spark_master: Annotated[Line, Key(path="spark.master")] = field(default="local[2]", repr=False)
    spark_conf: Annotated[Mapping[SettingName, Setting], Key(path="spark.conf")] = field(
        default_factory=dict, repr=False
    )
    s3: Annotated[S3 | None, Key(path="storage.s3")] = None
    people: Annotated[Mapping[str, Person], NOT_A_KEY] = field(default_factory=dict)  # empty in single-user mode
    single_user: Annotated[bool, NOT_A_KEY] = False
    limits: Limits = field(default_factory=Limits)
    core_hour_usd: Annotated[DecimalText, Key(path="price.core_hour_usd", needed=True)] = "0"
    chunk_seconds: Annotated[Count, Key("Target duration of one chunk.", path="chunks.seconds")] = 120
    chunk_bytes: Annotated[Bytes | None, Key("Fixed input size of a chunk.", path="chunks.bytes")] = None
    attempts: Annotated[Count, Key("Attempts at one chunk before it is quarantined.", path="chunks.attempts")] = 5
    throttle: Throttle = field(default_factory=Throttle)
    health: tuple[Signal, ...] = ()
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    erasure: ErasureSettings | None = None
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    alarm: Alarm | None = None
    logging: Annotated[LogSettings | None, Key("Log lines for programs (default: none).")] = None
    lineage: Annotated[LineageSettings | None, Key("OpenLineage events of every run (default: none).")] = None
    dbt: Annotated[DbtSettings | None, Key("Models and exposures of dbt that read the tables.")] = None
    campaign: CampaignSettings = field(default_factory=CampaignSettings)
    clusters: Annotated[Clusters, Key("Clusters on which `errata submit --start` starts workers.")] = field(
        default_factory=Clusters
    )
    channels: Annotated[Mapping[Slug, Channel], Key("Where messages go.")] = field(default_factory=dict)
    warehouses: Annotated[Mapping[Identifier, Warehouse], Key("Databases behind the lake.")] = field(
        default_factory=dict
    )
    kafka: Annotated[Mapping[Identifier, KafkaCluster], Key("Kafka clusters with topics that products read.")] = field(
        default_factory=dict
    )
    consumers: Annotated[Mapping[Slug, Consumer], Key("Who reads the products, and what they need.")] = field(
        default_factory=dict
    )  # once loaded, also those that product files name
    sources: Annotated[
        Mapping[Slug, Source], Key("Where files come from that are recorded before a run reads them.")
    ] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)
    recordings: RecordingSettings = field(default_factory=RecordingSettings)
    ready: Annotated[ReadyTable | None, Key("Where readers look up which partitions they may read.")] = None
    # value of each ``${NAME}``, and passwords written out in errata.yaml
    secrets: Annotated[Mapping[str, str], NOT_A_KEY] = field(default_factory=dict, repr=False)
    credentials: Annotated[tuple[str, ...], NOT_A_KEY] = field(default=(), repr=False)
    # variables that are not set and that only some commands need
    unset: Annotated[frozenset[str], NOT_A_KEY] = frozenset()

    def list_consumers(self, product: str) -> tuple[Consumer, ...]:
        """Consumers that read a product, in the order in which they were declared."""
        return tuple(one for one in self.consumers.values() if product in one.reads)

    def find_product(self, table: str) -> Product | None:
        """The product with this target table."""
        return next((one for one in self.products.values() if one.target.table == table), None)

    def find_unset_variable(self, declared: Any) -> str | None:
        """A variable that a channel, a database or a step needs and that is not set: it cannot be used here.

        The command has not the rights that the variable would give, which says nothing about the consumer.
        """
        names = (name for text in _iterate_texts(declared) for name in _VARIABLE.findall(text))
        return next((name for name in names if name in self.unset), None)

    def resolve_alias(self, name: str) -> str:
        """Listed name of the person with this name or alias (exact spelling); an unknown name is returned as it is."""
        if name in self.people:
            return name
        return next((person.name for person in self.people.values() if name in person.aliases), name)

    def find_case_variant(self, name: str) -> str | None:
        """The listed name that differs from this one only in letter case."""
        wanted = name.casefold()
        names = ((listed, person.name) for person in self.people.values() for listed in (person.name, *person.aliases))
        return next((found for listed, found in names if listed.casefold() == wanted), None)

    def is_same_person(self, one: str, other: str) -> bool:
        """Whether two names belong to one person, regardless of alias and letter case."""
        first, second = (self.find_case_variant(name.strip()) or name.strip() for name in (one, other))
        return first.casefold() == second.casefold()

    def is_service(self, name: str) -> bool:
        """Whether a name is a service account."""
        person = self.people.get(name)
        return person is not None and person.service

    def list_with_role(self, *roles: Role) -> tuple[str, ...]:
        """People who currently have one of these roles."""
        return tuple(sorted(name for name, person in self.people.items() if set(roles) & set(person.roles)))

    def redact(self, text: str) -> str:
        """Text for people, logs and records, with every value from the environment replaced by ``${NAME}``.

        Passwords written out in errata.yaml become ``…``. Values of fewer than four characters are left alone, as are
        short values inside a longer word: replacing them would garble ordinary words and digests.
        """
        if not self.secrets and not self.credentials:
            return text
        for spelling, sign in _build_replacements(tuple(self.secrets.items()), self.credentials):
            if spelling in text:
                text = _redact_spelling(text, spelling, sign)
        return text


@cache
def _build_replacements(
    secrets: tuple[tuple[str, str], ...], credentials: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Replacement for each spelling of each secret, longest first."""
    found = {spelling: "…" for word in credentials for spelling in list_spellings(word)}
    for name, value in secrets:
        found |= dict.fromkeys(list_spellings(value) if len(value) >= 4 else (), f"${{{name}}}")
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_SHORT = 12


def _iterate_texts(value: Any) -> Iterator[str]:
    """Every text in a declared value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _iterate_texts(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _iterate_texts(item)
    elif is_dataclass(value):
        for one in fields(value):
            yield from _iterate_texts(getattr(value, one.name))


def _redact_spelling(text: str, spelling: str, sign: str) -> str:
    if len(spelling) >= _SHORT:
        return text.replace(spelling, sign)
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(spelling)}(?![A-Za-z0-9_])", lambda _: sign, text)
