"""Actors and audit entries. Pure.

An actor's name is claimed (``--as``); the operating-system user and the host are recorded with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64
"""Previous hash of the first entry."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The person on whose behalf a command acts."""

    person: str
    os_user: str
    host: str
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One link of the chain; ``hash`` covers every other field and the previous hash."""

    seq: int
    previous: str
    hash: str
    at: str
    actor: Actor
    action: str
    run_id: str | None
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a ledger's chain at one moment: number, hash and time of its last entry."""

    ledger: str
    project: str
    seq: int
    hash: str
    at: str
