"""Database access for the ledger: whole transactions, retried when that is safe, and the database's clock.

A write transaction is the only writer from its first statement on, so what it reads stays true until it commits. A
transaction that fails before its commit was sent did not happen and is run again as a whole: at once behind other
writers (``BUSY``), or for as long as the dialect's patience lasts when the server went away (``LOST``).

A commit whose answer was lost may have happened, so it is not repeated blindly. The next try takes the writers' lock,
which proves that the lost transaction has ended, and looks for the audit entry it wrote, by number and hash. If the
entry exists, the transaction happened and its result is returned. Hence the rule for callers: **a write that appends
no audit entry must be idempotent**, because it is simply repeated (heartbeats, leases, parts by their digest). Work
must not have effects outside its transaction. This module knows nothing about the meaning of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError

from errata.errors import UsageError
from errata.failpoints import failpoint
from errata.ledger.audit.log_lines import log_entries
from errata.ledger.db.dialect import Dialect, FailureKind
from errata.ledger.privacy.pseudonyms import PersonRegistry, WrappingKeyLoader, use_registry
from errata.ledger.schema.definition import audit
from errata.model.audit import Actor, AuditEntry

T = TypeVar("T")

_OPENING_SECONDS = 10.0
"""Someone is waiting for the command, so a server that was never reached is reported soon."""


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Null characters, which PostgreSQL cannot store, and lone surrogates, which no database can."""


@dataclass(slots=True)
class Tx:
    """One open write transaction: its connection, the database's time at its start, and the head of the audit chain."""

    conn: Connection
    at: str
    now_ms: int
    head_seq: int
    head_hash: str
    redact: Callable[[str], str] = str
    entries: list[AuditEntry] = field(default_factory=list)  # those that it appended
    actor: Actor | None = None  # of the last of them, by name


class Database:
    """Runs work inside transactions; see :meth:`read` and :meth:`write`.

    ``busy_seconds`` is how long to wait behind other writers.
    """

    def __init__(
        self,
        url: str,
        *,
        redact: Callable[[str], str] = str,
        wrapping: WrappingKeyLoader | None = None,
        busy_seconds: float = 60.0,
    ) -> None:
        parsed = _parse_url(url)
        self._busy_seconds = busy_seconds
        self._wrapping = wrapping
        self.follow: Callable[[Tx], None] | None = None
        """Called at the end of every transaction that has appended audit entries."""
        self.proposed: dict[str, str] = {}
        """Pseudonyms of people without a row in ``subject`` yet; plans that name them are being sealed."""
        self.dialect = _choose_dialect(parsed)
        self._redact = redact
        self._opened = False
        self._shared: ContextVar[Connection | None] = ContextVar("shared_connection", default=None)
        self._clock, self._head = text(self.dialect.clock), text(self.dialect.head)
        self._ledger_id: str | None = None
        self.engine = self.dialect.connect()
        event.listen(self.engine, "begin", self._on_begin)

    @property
    def place(self) -> str:
        """Location of the ledger, for messages."""
        return self.dialect.place

    def open(self, *, create: bool = False) -> str:
        """Open the ledger and return its id; the first read or write does so as well.

        Raises ``NotFound`` if there is none, unless ``create`` allows to make it.
        """
        if self._ledger_id is None:
            from errata.ledger.db.migrate import migrate_ledger  # it imports this module

            self._ledger_id = migrate_ledger(self, create=create)
        return self._ledger_id

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one consistent view of the database."""
        shared = self._shared.get()
        if shared is not None:
            return work(shared)
        self.open()
        return self.peek(work)

    def peek(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which only reads, on a database that may have no tables yet."""
        return self._run_with_retries(lambda: self.transact(work, write=False))

    def read_together(self, work: Callable[[], T]) -> T:
        """Run ``work``, which only reads, with one transaction for all its reads in this thread.

        What it reads fits together. It is run again as a whole if the transaction fails.
        """
        if self._shared.get() is not None:
            return work()

        def share(conn: Connection) -> T:
            token = self._shared.set(conn)
            try:
                return work()
            finally:
                self._shared.reset(token)

        return self.read(share)

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one write transaction: it takes effect completely and once, or not at all."""
        self.open()
        attempt = _WriteAttempt(self, work)
        return self._run_with_retries(attempt.run_once, lambda: attempt.sent is not None)

    def bare(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which must be idempotent, in a write transaction on a database that may have no tables yet."""
        return self._run_with_retries(lambda: self.transact(work, write=True))

    def clock(self, conn: Connection) -> tuple[str, int]:
        """The database's time, as an ISO instant and as milliseconds since 1970."""
        at, now_ms = conn.execute(self._clock).one()
        return str(at), int(now_ms)

    def begin_tx(self, conn: Connection) -> Tx:
        """A write transaction with the time and the head of the chain; from here on it is the only writer."""
        at, now_ms, seq, head = conn.execute(self._head).one()
        return Tx(conn, at, now_ms, seq, head, self.redact)

    def redact(self, message: str) -> str:
        """``message`` without secrets and without characters that a database cannot store."""
        return _UNSTORABLE.sub("\ufffd", self._redact(message))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def transact(self, work: Callable[[Connection], T], *, write: bool) -> T:
        """Run ``work`` in one transaction, without retries."""
        with (
            self.engine.connect().execution_options(errata_write=write) as conn,
            conn.begin(),
            use_registry(PersonRegistry(conn, self._wrapping, self.proposed, self.redact)),
        ):
            return work(conn)

    def _on_begin(self, conn: Connection) -> None:
        for statement in self.dialect.begin(write=conn.get_execution_options().get("errata_write", False)):
            conn.exec_driver_sql(statement)

    def _run_with_retries(self, once: Callable[[], T], unsure: Callable[[], bool] = lambda: False) -> T:
        try:
            try:
                result = once()
            except self.dialect.errors as error:
                if self.dialect.classify_error(error) is FailureKind.FINAL:
                    raise
                result = self._retry(once)
        except IntegrityError:
            raise
        except self.dialect.errors as error:
            raise self._translate_error(error, unsure=unsure()) from error
        self._opened = True
        return result

    def _retry(self, once: Callable[[], T]) -> T:
        # Imported here because retries are rare and the import costs more than a transaction.
        from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

        patience = self.dialect.patience if self._opened else min(self.dialect.patience, _OPENING_SECONDS)
        limits = {FailureKind.BUSY: self._busy_seconds, FailureKind.LOST: patience, FailureKind.FINAL: 0.0}

        def is_over(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            limit = limits[self.dialect.classify_error(error)] if error else 0.0
            return (state.seconds_since_start or 0.0) >= limit

        tries = Retrying(
            retry=retry_if_exception(lambda error: self.dialect.classify_error(error) is not FailureKind.FINAL),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            stop=is_over,
            reraise=True,
        )
        return tries(once)

    def _translate_error(self, error: Exception, *, unsure: bool) -> Exception:
        failed = self.dialect.failed(error, opening=not self._opened, unsure=unsure)
        failed.message = self.redact(failed.message)
        return failed


@dataclass(frozen=True, slots=True)
class _SentCommit(Generic[T]):
    """A commit that was sent: the result of the transaction and its last audit entry."""

    result: T
    seq: int
    hash: str

    def is_committed(self, conn: Connection) -> bool:
        query = audit.select().where(audit.c.seq == self.seq, audit.c.hash == self.hash)
        return conn.execute(query).first() is not None


class _WriteAttempt(Generic[T]):
    """One write, from its first try until it is known to be committed."""

    def __init__(self, database: Database, work: Callable[[Tx], T]) -> None:
        self._database, self._work = database, work
        self.sent: _SentCommit[T] | None = None
        self._kept = False
        self._entries: list[AuditEntry] = []

    def run_once(self) -> T:
        try:
            result = self._database.transact(self._inside, write=True)
        except self._database.dialect.errors:
            if self.sent is None or not self._kept:
                raise
            # This try only confirmed the earlier commit and wrote nothing, so its own failure does not matter.
            result = self.sent.result
        self.sent = None
        log_entries(self._entries)
        failpoint("ledger.after_commit")
        return result

    def _inside(self, conn: Connection) -> T:
        tx = self._database.begin_tx(conn)
        if self.sent is not None and self.sent.is_committed(conn):
            self._kept = True
            return self.sent.result
        self.sent = None
        before = tx.head_seq
        result = self._work(tx)
        if tx.entries and self._database.follow is not None:
            self._database.follow(tx)
        self._entries = tx.entries
        # Set only when nothing but the commit is left: a failure before this line certainly committed nothing.
        self.sent = _SentCommit(result, tx.head_seq, tx.head_hash) if tx.head_seq > before else None
        failpoint("ledger.before_commit")
        return result


def _parse_url(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise _not_opened_error(f"found {_mask_url(url)}, which cannot be read as a URL") from None


def _choose_dialect(url: URL) -> Dialect:
    match url.drivername:
        case "sqlite" | "sqlite+pysqlite":
            from errata.ledger.db.sqlite import SqliteDialect

            if not url.database or url.database == ":memory:":
                raise _not_opened_error("found a database in memory")
            return SqliteDialect(url, Path(url.database))
        case "postgresql" | "postgresql+psycopg":
            from errata.ledger.db.postgres import PostgresDialect

            return PostgresDialect(url)
        case _:
            raise _not_opened_error(f"found {_mask_url(str(url))}")


def _mask_url(url: str) -> str:
    # The rest of the URL may contain a password.
    scheme, colon, _ = url.partition("://")
    return f"{scheme}{colon}…" if colon else scheme


def _not_opened_error(found: str) -> UsageError:
    return UsageError(
        f"the ledger was not opened; expected a SQLite file or a PostgreSQL database, {found}",
        state="nothing was created",
        hint="ledger: sqlite:///.errata/ledger.db, or postgresql+psycopg://user@host/database",
    )
