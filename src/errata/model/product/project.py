"""A project: where things are, who may act, and what may not be told. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from errata.model.approval import ApprovalRules
from errata.model.product.erasure import ErasureSettings
from errata.model.product.product import Product
from errata.model.product.throttle import Signal, Throttle
from errata.text.secrets import list_spellings


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """``evidence`` of errata.yaml."""

    key: str | None = field(default=None, repr=False)
    """A path from the project, or the private key itself; ``${NAME}`` while that variable is not set."""
    heads: str | None = None
    """An absolute directory that the ledger's owner cannot write to again what was written once."""
    max_lag_seconds: int = 86_400
    """How long a publication may stand without a signed head that covers it before the next one is refused."""
    subject_key: str | None = field(default=None, repr=False)
    """What the keys of people are wrapped with in the ledger, in the same form as ``key``."""


class Role(StrEnum):
    """What a person may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    APPROVER = "approver"
    PUBLISHER = "publisher"
    BREAK_GLASS = "break_glass"


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
    erasure: ErasureSettings | None = None
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    alarm: Alarm | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # what each ``${NAME}`` stood for
    credentials: tuple[str, ...] = field(default=(), repr=False)  # passwords that errata.yaml spells out

    def resolve_alias(self, name: str) -> str:
        """The listed name of a person, by that name or an alias as it is written; any other name as it is."""
        if name in self.people:
            return name
        return next((person.name for person in self.people.values() if name in person.aliases), name)

    def find_case_variant(self, name: str) -> str | None:
        """The listed name that differs from this one in letter case alone."""
        wanted = name.casefold()
        names = ((listed, person.name) for person in self.people.values() for listed in (person.name, *person.aliases))
        return next((found for listed, found in names if listed.casefold() == wanted), None)

    def is_same_person(self, one: str, other: str) -> bool:
        """Whether two names are one person's, whatever the alias or the letter case."""
        first, second = (self.find_case_variant(name.strip()) or name.strip() for name in (one, other))
        return first.casefold() == second.casefold()

    def is_service(self, name: str) -> bool:
        """Whether a name is a service account."""
        person = self.people.get(name)
        return person is not None and person.service

    def list_with_role(self, *roles: Role) -> tuple[str, ...]:
        """Who has one of these roles now."""
        return tuple(sorted(name for name, person in self.people.items() if set(roles) & set(person.roles)))

    def redact(self, text: str) -> str:
        """Text for people, logs and records, with every value from the environment as ``${NAME}`` again.

        Passwords that errata.yaml spells out become ``…``. Values of fewer than four characters are left alone, and
        short ones inside a longer word: they would turn ordinary words into noise and digests into others.
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
    """What stands for each spelling of each secret, the longest first."""
    found = {spelling: "…" for word in credentials for spelling in list_spellings(word)}
    for name, value in secrets:
        found |= dict.fromkeys(list_spellings(value) if len(value) >= 4 else (), f"${{{name}}}")
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


_SHORT = 12


def _redact_spelling(text: str, spelling: str, sign: str) -> str:
    if len(spelling) >= _SHORT:
        return text.replace(spelling, sign)
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(spelling)}(?![A-Za-z0-9_])", lambda _: sign, text)
