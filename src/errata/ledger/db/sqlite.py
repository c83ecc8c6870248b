"""A ledger in one SQLite file: write-ahead log, every commit synced to disk, one writer from the first statement on.

``SQLITE_BUSY`` can only occur before anything was done, because a write transaction begins IMMEDIATE.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from errata.errors import ErrataError, LedgerUnavailable, SetupError, StorageRefused
from errata.ledger.db.dialect import FailureKind
from errata.ledger.db.filesystem import refuse_network
from errata.ledger.schema.trigger_sql import Trigger, build_sqlite_triggers

_BUSY_TIMEOUT_SECONDS = 5.0
_BUSY_CODES = frozenset({5, 6})  # SQLITE_BUSY, SQLITE_LOCKED; extended codes keep them in the low byte
_STORAGE_CODES = frozenset({8, 10, 13, 14})  # SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN
_BROKEN_CODES = frozenset({11, 26})  # SQLITE_CORRUPT, SQLITE_NOTADB

# SQLite before 3.42 has no sub-second unixepoch; julianday keeps milliseconds.
_TIME = (
    "strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
)  # fmt: skip


class SqliteDialect:
    """The dialect of a SQLite file."""

    clock = f"SELECT {_TIME}"
    head = f"SELECT {_TIME}, seq, hash FROM audit_head"  # noqa: S608
    errors: tuple[type[Exception], ...] = (
        DBAPIError,
        sqlite3.DatabaseError,
    )  # errors raised in a connect hook are not wrapped by SQLAlchemy
    patience = 0.0

    def __init__(self, url: URL, path: Path) -> None:
        self._url, self._path = url, path
        self.place = str(path)

    def has_place(self) -> bool:
        return self._path.exists()

    def make_place(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def connect(self) -> Engine:
        refuse_network(self._path.parent)
        engine = create_engine(
            self._url,
            connect_args={} if "timeout" in self._url.query else {"timeout": _BUSY_TIMEOUT_SECONDS},
            hide_parameters=True,  # keep values out of error messages
        )
        event.listen(engine, "connect", _on_connect)
        return engine

    def begin(self, *, write: bool) -> tuple[str, ...]:
        return ("BEGIN IMMEDIATE",) if write else ("BEGIN",)

    def classify_error(self, error: BaseException) -> FailureKind:
        return FailureKind.BUSY if _read_error_code(error) in _BUSY_CODES else FailureKind.FINAL

    def failed(self, error: BaseException, *, opening: bool, unsure: bool) -> ErrataError:  # noqa: ARG002
        cause = self.said(error)
        if _read_error_code(error) in _BROKEN_CODES:
            return SetupError(
                f"the ledger {self.place} was not opened; expected a SQLite database, found: {cause}",
                state="nothing was changed",
                hint="restore it from a backup; without the ledger published tables stay as they are",
            )
        kind = StorageRefused if _read_error_code(error) in _STORAGE_CODES else LedgerUnavailable
        return kind(
            f"the ledger {self.place} could not be used: {cause}",
            state="the transaction was rolled back; nothing was changed",
            hint="free the disk or the lock and repeat the command",
            cause=cause,
        )

    def said(self, error: BaseException) -> str:
        return str(getattr(error, "orig", None) or error)

    def version(self, conn: Connection) -> str:
        return f"SQLite {conn.execute(text('SELECT sqlite_version()')).scalar_one()}"

    def expected_triggers(self, conn: Connection) -> tuple[Trigger, ...]:  # noqa: ARG002
        return build_sqlite_triggers()

    def read_triggers(self, conn: Connection) -> dict[str, str]:
        rows = conn.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        return {str(name): str(sql) for name, sql in rows}

    def drop_triggers(self, conn: Connection) -> None:
        for name in self.read_triggers(conn):
            conn.exec_driver_sql(f"DROP TRIGGER {conn.dialect.identifier_preparer.quote(name)}")

    def is_owner(self, conn: Connection) -> bool:  # noqa: ARG002
        return True

    def scrub(self, engine: Engine) -> str:
        return _vacuum_file(engine)


def _vacuum_file(engine: Engine) -> str:
    """Rewrite all pages, then truncate the write-ahead log, which still holds the old pages."""
    with engine.connect() as conn:
        driver: Any = conn.connection.dbapi_connection
        driver.execute("VACUUM")
        busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    left = "name and key are deleted, but the write-ahead log still holds them while another process reads the ledger"
    return f"{left}; erase the pseudonym again when nobody else uses it" if busy else ""


def _read_error_code(error: BaseException) -> int:
    cause: Any = getattr(error, "orig", None) or error
    return int(getattr(cause, "sqlite_errorcode", 0)) & 0xFF


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    # The driver must not begin transactions by itself: only Database does.
    connection.isolation_level = None
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise SetupError(f"the ledger was not opened; expected SQLite's write-ahead log, found journal mode {mode}")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
