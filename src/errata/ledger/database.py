"""The database under the ledger: one engine, whole transactions, the database's clock.

A write transaction holds the write lock from its first statement (``BEGIN IMMEDIATE``), so what it reads stays true
until it commits, and ``SQLITE_BUSY`` can only come before anything was done: the whole transaction is tried again.
Nothing in here knows what the rows mean.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, OperationalError, ProgrammingError

from errata.errors import EngineError, ErrataError, NotFound, SetupError, UsageError
from errata.ledger.filesystem import refuse_network

__all__ = ["Database", "Tx"]

T = TypeVar("T")

_BUSY_TIMEOUT_SECONDS = 5.0
_RETRY_SECONDS = 60.0
_BUSY_CODES = frozenset({5, 6})  # SQLITE_BUSY, SQLITE_LOCKED; extended codes keep them in the low byte
_BROKEN_CODES = frozenset({11, 26})  # SQLITE_CORRUPT, SQLITE_NOTADB

# SQLite before 3.42 has no sub-second unixepoch; julianday keeps milliseconds.
_NOW = text(
    "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),"
    " CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), seq, hash FROM audit_head"
)
_CLOCK = text(
    "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
)


@dataclass(slots=True)
class Tx:
    """One open write transaction: its connection, the database's time when it began, and the head of the audit."""

    conn: Connection
    at: str
    now_ms: int
    head_seq: int
    head_hash: str
    redact: Callable[[str], str] = str


class Database:
    """Runs work inside transactions; see :meth:`read` and :meth:`write`."""

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.redact: Callable[[str], str] = str
        self.url = _parsed(url)
        self.path = _path_of(self.url)
        refuse_network(self.path.parent)
        if not create and not self.path.exists():
            raise NotFound(
                f"there is no ledger at {self.path}",
                state="nothing was created",
                hint="the first `errata plan` creates it; -C DIR picks another project",
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.engine = create_engine(self.url, connect_args={"timeout": _BUSY_TIMEOUT_SECONDS})
        event.listen(self.engine, "connect", _on_connect)
        event.listen(self.engine, "begin", _on_begin)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one consistent view of the database."""
        return self._whole(lambda: self._reading(work))

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one write transaction: all of it is kept, or nothing."""
        return self._whole(lambda: self._writing(work))

    def bare(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a write transaction on a database that may have no tables yet."""
        return self._whole(lambda: self._bare(work))

    @staticmethod
    def clock(conn: Connection) -> tuple[str, int]:
        """The database's time, as an ISO instant and as milliseconds since 1970."""
        at, now_ms = conn.execute(_CLOCK).one()
        return str(at), int(now_ms)

    def close(self) -> None:
        """Give back every connection."""
        self.engine.dispose()

    def _reading(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect() as conn, conn.begin():
            return work(conn)

    def _writing(self, work: Callable[[Tx], T]) -> T:
        def with_time(conn: Connection) -> T:
            at, now_ms, seq, head = conn.execute(_NOW).one()
            return work(Tx(conn, at, now_ms, seq, head, self.redact))

        return self._bare(with_time)

    def _bare(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect().execution_options(errata_write=True) as conn, conn.begin():
            return work(conn)

    def _whole(self, once: Callable[[], T]) -> T:
        try:
            try:
                return once()
            except (OperationalError, sqlite3.OperationalError) as error:
                if not _is_busy(error):
                    raise
                return _again(once)
        except (IntegrityError, ProgrammingError):
            raise
        except (DatabaseError, sqlite3.DatabaseError) as error:
            raise _failed(error, self.path) from error


def _again(once: Callable[[], T]) -> T:
    # Needed on a busy day only, and its import costs more than a transaction.
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

    tries = Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_random_exponential(multiplier=0.02, max=1.0),
        stop=stop_after_delay(_RETRY_SECONDS),
        reraise=True,
    )
    return tries(once)


def _is_busy(error: BaseException) -> bool:
    return _code(error) in _BUSY_CODES


def _code(error: BaseException) -> int:
    cause: Any = getattr(error, "orig", None) or error
    return int(getattr(cause, "sqlite_errorcode", 0)) & 0xFF


def _failed(error: Exception, path: Path) -> ErrataError:
    cause = getattr(error, "orig", None) or error
    if _code(error) in _BROKEN_CODES:
        return SetupError(
            f"the ledger {path} was not opened; expected a SQLite database, found: {cause}",
            state="nothing was changed",
            hint="restore it from a backup; without the ledger published tables stay as they are",
        )
    return EngineError(
        f"the ledger {path} could not be used: {cause}",
        state="the transaction was rolled back; nothing was changed",
        hint="free the disk or the lock and repeat the command",
        cause=str(cause),
    )


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    # The driver must not begin transactions of its own accord.
    connection.isolation_level = None
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise SetupError(f"the ledger was not opened; expected SQLite's write-ahead log, found journal mode {mode}")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _on_begin(conn: Connection) -> None:
    writes = conn.get_execution_options().get("errata_write", False)
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise _not_opened(f"found {_scheme(url)}, which cannot be read as a URL") from None


def _path_of(url: URL) -> Path:
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise _not_opened(f"found {_scheme(str(url))}")
    if not url.database or url.database == ":memory:":
        raise _not_opened("found a database in memory")
    return Path(url.database)


def _scheme(url: str) -> str:
    # What follows may hold a password.
    scheme, colon, _ = url.partition("://")
    return f"{scheme}{colon}…" if colon else scheme


def _not_opened(found: str) -> UsageError:
    return UsageError(
        f"the ledger was not opened; expected a SQLite file, {found}",
        state="nothing was created",
        hint="ledger: sqlite:///.errata/ledger.db works; PostgreSQL and other databases are not supported yet",
    )
