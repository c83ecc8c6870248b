"""Port between the ledger and its database: what each kind of database must provide. Pure.

Implemented by :mod:`errata.ledger.db.sqlite` and :mod:`errata.ledger.db.postgres`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from sqlalchemy import Connection, Engine

from errata.errors import ErrataError
from errata.ledger.schema.trigger_sql import Trigger


class FailureKind(Enum):
    """What a database error means for its transaction."""

    BUSY = auto()
    """Another transaction was in the way; nothing was done, and the whole transaction may be retried."""
    LOST = auto()
    """The server went away or is not up yet. Retry the transaction; a sent commit only after looking for it."""
    FINAL = auto()
    """A retry would not help."""


class Dialect(Protocol):
    """One kind of database at one location."""

    place: str
    """Location for messages, without user or password."""
    clock: str
    """A query for the database's time, as an ISO instant and as milliseconds since 1970."""
    head: str
    """The same plus the head of the audit chain, which no other writer can change until this transaction ends."""
    errors: tuple[type[Exception], ...]
    """Exceptions of the driver, wrapped by SQLAlchemy or not."""
    patience: float
    """Seconds to wait for a server that went away."""

    def connect(self) -> Engine:
        """Build an engine, which connects when it is first used."""
        ...

    def has_place(self) -> bool:
        """Whether there is anything to connect to; False for a file that does not exist."""
        ...

    def make_place(self) -> None:
        """Make what a new ledger needs before it can be created, where that is the client's task."""
        ...

    def begin(self, *, write: bool) -> tuple[str, ...]:
        """Statements that begin a transaction: one consistent view, or the only writer (also to migrate)."""
        ...

    def classify_error(self, error: BaseException) -> FailureKind:
        """Classify this error."""
        ...

    def failed(self, error: BaseException, *, opening: bool, unsure: bool) -> ErrataError:
        """The error to show to the user; ``unsure`` when a commit was sent and its answer never came."""
        ...

    def said(self, error: BaseException) -> str:
        """The database's own message, without the driver's additions."""
        ...

    def version(self, conn: Connection) -> str:
        """Name and version of the database."""
        ...

    def expected_triggers(self, conn: Connection) -> tuple[Trigger, ...]:
        """Triggers that should exist."""
        ...

    def read_triggers(self, conn: Connection) -> dict[str, str]:
        """Triggers that exist, in the form of ``Trigger.seen``, by name."""
        ...

    def drop_triggers(self, conn: Connection) -> None:
        """Remove every trigger of the ledger."""
        ...

    def is_owner(self, conn: Connection) -> bool:
        """Whether this database user could drop the triggers: always with SQLite, the tables' owner with PostgreSQL."""
        ...

    def scrub(self, engine: Engine) -> str:
        """Remove rows deleted from ``subject`` from the database's files too; returns what is left to do, or empty."""
        ...
