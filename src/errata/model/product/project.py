"""A project: catalogs, ledger, people, limits and secrets. Pure."""

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
    """A path relative to the project, or the private key itself; ``${NAME}`` while that variable is not set."""
    heads: str | None = None
    """An absolute directory whose files the ledger's owner cannot overwrite."""
    max_lag_seconds: int = 86_400
    """How long a publication may lack a signed head that covers it before the next publication is refused."""
    subject_key: str | None = field(default=None, repr=False)
    """Key that encrypts people's keys in the ledger, in the same form as ``key``."""


class Role(StrEnum):
    """What a person may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    APPROVER = "approver"
    PUBLISHER = "publisher"
    BREAK_GLASS = "break_glass"


@dataclass(frozen=True, slots=True)
class S3:
    """Access to S3 or a compatible store; None leaves a setting to AWS's own defaults."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Catalog:
    """An Iceberg catalog; ``uri`` and ``warehouse`` are already absolute."""

    name: str
    type: str  # jdbc | rest | glue | hive
    # not in repr: may hold credentials from the environment
    uri: str | None = field(default=None, repr=False)
    warehouse: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    s3: S3 | None = None  # the project's; ``properties`` take precedence


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
    """Command that runs on break-glass."""

    command: tuple[str, ...] = field(repr=False)  # may hold a value from the environment
    timeout_seconds: int = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request without a named override."""

    max_partitions: int = 180
    max_rows: int | None = None
    max_bytes: int | None = None
    max_usd: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """``errata.yaml`` and its products. Empty ``people`` means single-user mode."""

    name: str
    root: str  # absolute
    ledger: str = field(repr=False)  # SQLAlchemy URL, absolute; may hold a password
    catalogs: Mapping[str, Catalog]
    products: Mapping[str, Product] = field(repr=False)
    spark_master: str = field(default="local[2]", repr=False)
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    s3: S3 | None = None  # used for catalogs, source files and Spark
    people: Mapping[str, Person] = field(default_factory=dict)
    single_user: bool = False
    limits: Limits = field(default_factory=Limits)
    core_hour_usd: str = "0"
    chunk_bytes: int | None = None  # fixed input size of a chunk; None: sized and resized towards chunk_seconds
    chunk_seconds: int = 120
    attempts: int = 5  # per chunk, before it is quarantined
    throttle: Throttle = field(default_factory=Throttle)
    health: tuple[Signal, ...] = ()
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    erasure: ErasureSettings | None = None
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    alarm: Alarm | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # value of each ``${NAME}``
    credentials: tuple[str, ...] = field(default=(), repr=False)  # passwords written out in errata.yaml

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


_SHORT = 12


def _redact_spelling(text: str, spelling: str, sign: str) -> str:
    if len(spelling) >= _SHORT:
        return text.replace(spelling, sign)
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(spelling)}(?![A-Za-z0-9_])", lambda _: sign, text)
