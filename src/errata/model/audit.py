"""Who acted, and what an audit entry holds. Pure.

The name is claimed (``--as``); the operating-system user and the host are recorded beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64
"""The previous hash of the first entry."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The person a command acts for."""

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
    """Where the chain of one ledger stood: its last entry, by number, hash and time."""

    ledger: str
    project: str
    seq: int
    hash: str
    at: str
