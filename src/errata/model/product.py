"""Products and projects as the rest of Errata knows them. Pure.

These are the values; ``errata.project`` reads them from YAML and says what is wrong with a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from errata.model.approval import Approval
from errata.model.eras import Era, RowLimits, RowRule
from errata.model.evidence import EvidenceSettings
from errata.model.partition import Grain
from errata.model.secrets import spellings
from errata.model.throttle import Signal, Throttle

__all__ = [
    "INEXACT",
    "LINEAGE_COLUMNS",
    "PII_KINDS",
    "S3",
    "Alarm",
    "Catalog",
    "Check",
    "Comparison",
    "Control",
    "Freeze",
    "GroupKey",
    "Groups",
    "Input",
    "Limits",
    "Merge",
    "Metric",
    "Person",
    "Product",
    "Project",
    "Protect",
    "Publish",
    "Reconciliation",
    "References",
    "Role",
    "Target",
    "Threshold",
    "Transform",
]

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
)
INEXACT = ("float", "double", "decimal")
"""Column types that may have a tolerance in a diff."""


PII_KINDS = ("email", "phone", "iban", "card", "ssn", "ipv4", "ipv6")
"""Kinds of personal data that a check can look for."""


class Role(StrEnum):
    """What a person may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    APPROVER = "approver"
    PUBLISHER = "publisher"
    BREAK_GLASS = "break_glass"


class Metric(StrEnum):
    """The library metrics of the Open Data Contract Standard, and what else checks count."""

    ROW_COUNT = "rowCount"
    NULL_VALUES = "nullValues"
    MISSING_VALUES = "missingValues"
    INVALID_VALUES = "invalidValues"
    DUPLICATE_VALUES = "duplicateValues"
    EXPRESSION = "expression"
    FRESHNESS = "freshness"
    TIMESTAMP_BOUNDS = "timestampBounds"
    MISSING_REFERENCES = "missingReferences"
    PII_VALUES = "piiValues"


@dataclass(frozen=True, slots=True)
class Threshold:
    """``mustBe…`` of a check: an operator name of the standard and its operand (a decimal as text, or a pair)."""

    operator: str  # mustBe, mustNotBe, mustBeGreaterThan, … mustNotBeBetween
    operand: str
    upper: str | None = None


@dataclass(frozen=True, slots=True)
class References:
    """Where the keys that a check looks up must be: columns of an input, as it is pinned."""

    input: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One data-quality rule, judged per partition or over the run."""

    name: str
    metric: Metric
    threshold: Threshold
    columns: tuple[str, ...] = ()
    expression: str | None = None
    valid_values: tuple[str, ...] = ()
    pattern: str | None = None
    missing_values: tuple[str, ...] = ()
    unit: str = "rows"  # rows | percent; of an age minutes | hours | days
    severity: str = "block"  # warn | block
    per: str = "partition"  # partition | run
    minimum: str | None = None  # both ends belong to the range
    maximum: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    before: str = "0s"  # how far timestamps may lie outside their partition
    after: str = "0s"
    references: References | None = None
    kinds: tuple[str, ...] = ()  # of personal data
    must_hold: bool = False  # the expression says what is right instead of what is wrong


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the rows of a balance are grouped by: a name, and the expression that gives it on each side."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An aggregate of an input that must equal an aggregate of the output, in every group where it has groups."""

    name: str
    input: str
    source: str
    target: str
    tolerance: str = "0"  # absolute decimal, or "0.5%"
    by: tuple[GroupKey, ...] = ()
    where: str | None = None  # row condition on both sides
    source_where: str | None = None
    target_where: str | None = None
    per: str = "partition"  # partition | run


@dataclass(frozen=True, slots=True)
class Comparison:
    """An aggregate of the candidate against the same of the output accepted before."""

    name: str
    metric: str
    warn: str | None = None  # "5%" or an absolute decimal
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An aggregate of a partition against the same of comparable partitions that the run does not touch."""

    name: str
    metric: str
    reach: int = 4  # weeks around a day or hour, years around a month
    least: int = 3  # fewer controls are a warning
    warn: str | None = "3.5"  # robust z-scores
    block: str | None = "8"


@dataclass(frozen=True, slots=True)
class Target:
    """The governed table."""

    table: str  # catalog.namespace.table
    column: str
    grain: Grain
    key: tuple[str, ...] = ()
    zone: str = "UTC"  # of the grain; transforms of timestamps count in UTC
    add_columns: Mapping[str, str] = field(default_factory=dict)  # name → Iceberg type; visible with a publication


@dataclass(frozen=True, slots=True)
class Transform:
    """Which function computes the product."""

    call: str  # module:function
    version: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """What a transform reads: an Iceberg table or files; ``partition`` None means read whole (reference data)."""

    name: str
    table: str | None = None
    files: str | None = None
    partition: str | None = None
    lookback: str = "0d"
    lookahead: str = "0d"
    reference: str | None = None  # as_recorded | corrected_truth | current | as_decided
    own: bool = False  # the product's own earlier partitions: those this run staged, before them those of its base
    columns: Mapping[str, str] = field(default_factory=dict)  # what the transform sees; empty: as it is
    eras: tuple[Era, ...] = ()
    rows: tuple[RowRule, ...] = ()
    version: str | None = None  # a tag of the table; None: its newest snapshot

    @property
    def needs_schema(self) -> bool:
        """Whether a plan must know what the source's files look like inside."""
        return bool(self.columns or self.rows)


@dataclass(frozen=True, slots=True)
class Protect:
    """Partitions that need a named override to be touched."""

    recent: str = "0d"
    locked: tuple[str, ...] = ()  # partitions or inclusive spans


@dataclass(frozen=True, slots=True)
class Merge:
    """How rows of a transform meet those that are there, by the target's key."""

    version: str | None = None  # a column; a row with an older one changes nothing
    delete: str | None = None  # a condition on the transform's rows: those take their key out
    sql: str = ""  # its normal form
    markers: tuple[str, ...] = ()  # columns that the condition speaks about


@dataclass(frozen=True, slots=True)
class Groups:
    """Partitions become visible a few at a time, with a hold between two publications of the run."""

    size: int  # partitions in one publication, at most
    hold: str  # how long at least, such as 30min
    order: str | None = None  # newest | oldest; None: as the run computes them


@dataclass(frozen=True, slots=True)
class Freeze:
    """How long cooperating live jobs are held off, in seconds."""

    idle: int = 3600  # since a command last worked on the run
    at_most: int = 28_800  # since the first of them


@dataclass(frozen=True, slots=True)
class Publish:
    """How a correction reaches readers, and what becomes of live writes meanwhile."""

    mode: str = "replace_partitions"
    merge: Merge | None = None  # mode merge
    view: str | None = None  # mode version: what is accepted of each partition; mode swap_view: what readers read
    versions: str | None = None  # modes version and swap_view: the table in which outputs stand side by side
    corrections: str | None = None  # the table of old and new values by key; alone in mode corrections
    creates: tuple[str, ...] = ()  # statements that make the tables which were not there when the run was planned
    groups: Groups | None = None  # None: the whole scope at once
    on_live_write: str = "conflict"  # | freeze | live_wins: what a live write into the scope means
    freeze: Freeze | None = None  # on_live_write freeze


@dataclass(frozen=True, slots=True)
class Product:
    """One governed table, as its product file declares it."""

    name: str
    owner: str
    target: Target
    transform: Transform
    inputs: tuple[Input, ...]
    description: str = ""
    publish: Publish = field(default_factory=Publish)
    rollback_window: str = "30d"
    checks: tuple[Check, ...] = ()
    reconcile: tuple[Reconciliation, ...] = ()
    compare: tuple[Comparison, ...] = ()
    control: tuple[Control, ...] = ()
    row_limits: tuple[RowLimits, ...] = ()  # of quarantine, by input
    protect: Protect = field(default_factory=Protect)
    lineage_columns: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    prove_determinism: int = 0  # sample chunks that are computed twice before a run may start
    tolerance: Mapping[str, str] = field(default_factory=dict)  # diff: column → "0.01" or "0.5%" that is no change
    classified: tuple[str, ...] = ()  # columns whose values are masked wherever rows are shown
    throttle: Throttle | None = None  # instead of the project's
    health: tuple[Signal, ...] = ()  # besides the project's
    approval: Approval = field(default_factory=Approval)  # the project's, with what the product says otherwise
    manual: bool = True  # a person releases each candidate; False: one that is clean publishes by itself
    path: str = ""  # the file, relative to the project
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)  # where rules stand in it


@dataclass(frozen=True, slots=True)
class S3:
    """How S3, or a store that speaks its protocol, is reached; what is None is left to AWS's own defaults."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Catalog:
    """An Iceberg catalog; ``uri`` and ``warehouse`` are absolute by now."""

    name: str
    type: str  # jdbc | rest | glue | hive
    # not in repr: they may hold credentials that came from the environment
    uri: str | None = field(default=None, repr=False)
    warehouse: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    s3: S3 | None = None  # the project's; what ``properties`` say comes first


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who may act, and in which roles."""

    name: str
    roles: tuple[Role, ...]
    teams: tuple[str, ...] = ()
    service: bool = False  # a program: it never approves, releases or accepts
    aliases: tuple[str, ...] = ()  # other names of the same person


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is run when someone breaks the glass."""

    command: tuple[str, ...] = field(repr=False)  # may hold a value from the environment
    timeout_seconds: int = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may touch without a named override."""

    max_partitions: int = 180
    max_rows: int | None = None
    max_bytes: int | None = None
    max_usd: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """``errata.yaml`` and the products beside it. ``people`` empty means single-user mode."""

    name: str
    root: str  # absolute
    ledger: str = field(repr=False)  # SQLAlchemy URL, absolute; may hold a password
    catalogs: Mapping[str, Catalog]
    products: Mapping[str, Product] = field(repr=False)
    spark_master: str = field(default="local[2]", repr=False)
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    s3: S3 | None = None  # serves catalogs, source files and Spark alike
    people: Mapping[str, Person] = field(default_factory=dict)
    single_user: bool = False
    limits: Limits = field(default_factory=Limits)
    core_hour_usd: str = "0"
    chunk_bytes: int | None = None  # fixed size of a chunk's input; None: sized and resized towards chunk_seconds
    chunk_seconds: int = 120
    attempts: int = 5  # at one chunk, before it is quarantined
    throttle: Throttle = field(default_factory=Throttle)
    health: tuple[Signal, ...] = ()
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    approval: Approval = field(default_factory=Approval)
    alarm: Alarm | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # what each ``${NAME}`` stood for
    credentials: tuple[str, ...] = field(default=(), repr=False)  # passwords that errata.yaml spells out

    def known_as(self, name: str) -> str:
        """The listed name of a person, by that name or an alias as it is written; any other name as it is."""
        if name in self.people:
            return name
        return next((person.name for person in self.people.values() if name in person.aliases), name)

    def spelt(self, name: str) -> str | None:
        """The listed name that differs from this one in letter case alone."""
        wanted = name.casefold()
        names = ((listed, person.name) for person in self.people.values() for listed in (person.name, *person.aliases))
        return next((found for listed, found in names if listed.casefold() == wanted), None)

    def is_same_person(self, one: str, other: str) -> bool:
        """Whether two names are one person's, whatever the alias or the letter case."""
        first, second = (self.spelt(name.strip()) or name.strip() for name in (one, other))
        return first.casefold() == second.casefold()

    def with_role(self, *roles: Role) -> tuple[str, ...]:
        """Who has one of these roles now."""
        return tuple(sorted(name for name, person in self.people.items() if set(roles) & set(person.roles)))

    def redact(self, text: str) -> str:
        """Text for people, logs and records, with every value from the environment as ``${NAME}`` again.

        Passwords that errata.yaml spells out become ``…``. Values of fewer than four characters are left alone, and
        short ones inside a longer word: they would turn ordinary words into noise and digests into others.
        """
        if not self.secrets and not self.credentials:
            return text
        for spelling, sign in _signs(tuple(self.secrets.items()), self.credentials):
            if spelling in text:
                text = _hidden(text, spelling, sign)
        return text


@cache
def _signs(secrets: tuple[tuple[str, str], ...], credentials: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What stands for each spelling of each secret, the longest first."""
    found = {spelling: "…" for word in credentials for spelling in spellings(word)}
    for name, value in secrets:
        found |= dict.fromkeys(spellings(value) if len(value) >= 4 else (), f"${{{name}}}")
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


_SHORT = 12


def _hidden(text: str, spelling: str, sign: str) -> str:
    if len(spelling) >= _SHORT:
        return text.replace(spelling, sign)
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(spelling)}(?![A-Za-z0-9_])", lambda _: sign, text)
