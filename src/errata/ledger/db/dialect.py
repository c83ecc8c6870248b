"""What the ledger asks of the database under it: one small object per kind of database. Pure.

:mod:`errata.ledger.db.sqlite` and :mod:`errata.ledger.db.postgres` are the two there are.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from sqlalchemy import Connection, Engine

from errata.errors import ErrataError
from errata.ledger.schema.triggers import Trigger


class FailureKind(Enum):
    """What an error of the database means for the transaction it hit."""

    BUSY = auto()
    """Another transaction was in the way; nothing was done, the whole may be tried again."""
    LOST = auto()
    """The server went away or is not there yet. The whole is tried again, a commit only after looking for it."""
    FINAL = auto()
    """Trying again would not help."""


class Dialect(Protocol):
    """One kind of database at one place."""

    place: str
    """For messages: where it is, without user or password."""
    clock: str
    """A query for the database's time, as an ISO instant and as milliseconds since 1970."""
    head: str
    """The same and the head of the audit chain; on return no other writer can change it until this transaction ends."""
    errors: tuple[type[Exception], ...]
    """What the driver raises, wrapped by SQLAlchemy or not."""
    patience: float
    """For how many seconds a server that went away is waited for."""

    def connect(self, *, create: bool) -> Engine:
        """An engine; with ``create`` the place for a new ledger is made where that is the client's business."""
        ...

    def begin(self, *, write: bool) -> tuple[str, ...]:
        """The statements that begin a transaction: one consistent view, or the only writer (also to migrate)."""
        ...

    def classify_error(self, error: BaseException) -> FailureKind:
        """What this error means."""
        ...

    def failed(self, error: BaseException, *, opening: bool, unsure: bool) -> ErrataError:
        """The error for a person; ``unsure`` when a commit was sent and its answer never came."""
        ...

    def said(self, error: BaseException) -> str:
        """The database's own sentence, without what surrounds it."""
        ...

    def version(self, conn: Connection) -> str:
        """Name and version of the database."""
        ...

    def expected_triggers(self, conn: Connection) -> tuple[Trigger, ...]:
        """The triggers that should be there."""
        ...

    def read_triggers(self, conn: Connection) -> dict[str, str]:
        """The triggers that are there, as ``Trigger.seen`` shows them."""
        ...

    def drop_triggers(self, conn: Connection) -> None:
        """Remove every trigger of the ledger."""
        ...

    def is_owner(self, conn: Connection) -> bool:
        """Whether this user could lift the rules: whoever writes a file, or owns the tables."""
        ...

    def scrub(self, engine: Engine) -> str:
        """Take what was deleted from ``subject`` out of the database's files; says what is left to do."""
        ...
