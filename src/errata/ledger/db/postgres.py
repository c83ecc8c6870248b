"""A ledger in a PostgreSQL database, shared by workers on many machines.

Writers queue for one advisory lock, first come, first served, and then lock the row of ``audit_head``. This keeps the
audit chain linear, and what a writer reads stays true until it commits. The row lock alone would be correct, but with
many workers the wait for a row that keeps changing is not fair. Readers see one snapshot and block no one. The server
disconnects a client that hangs in the middle of a transaction, so that it cannot hold up the queue for ever.

Settings in the URL (``sslmode``, ``connect_timeout``, ``options`` …) override the defaults given here. One setting is
Errata's own: ``errata_patience=SECONDS``, how long to wait for a server that went away.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError

from errata.errors import EngineError, ErrataError, LedgerUnavailable, SetupError, UsageError
from errata.ledger.db.dialect import FailureKind
from errata.ledger.schema.definition import metadata
from errata.ledger.schema.trigger_sql import (
    FUNCTION_PREFIX,
    Trigger,
    build_postgres_triggers,
    format_postgres_trigger,
)

_PATIENCE = "errata_patience"
_PATIENCE_SECONDS = 120.0
# One worker needs two connections: its work and its heartbeat. More are opened at need and closed after use.
_KEPT_CONNECTIONS, _MORE_CONNECTIONS = 2, 8
_OPTIONS = {
    "lock_timeout": "20s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "30s",
    "client_min_messages": "warning",
}
_CONNECT = {
    "application_name": "errata",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

_BUSY_CODES = frozenset({"40001", "40P01", "55P03", "53300"})
"""Serialisation failure, deadlock, lock timeout, too many connections."""
_LOST_CODES = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25006"})
"""Shutting down, crashed, starting up, disconnected while idle, and a replica that is not promoted yet."""
# Before a session exists the server's answer has no code, only a message.
_PERMANENT = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|certificate|permission denied"
    r"|unsupported|invalid",
    re.IGNORECASE,
)
_DENIED_CODE = "42501"
_FAULT_CLASSES = frozenset({"22", "42"})
"""SQLSTATE classes of invalid values and statements, which no retry makes valid."""

# Any number works that no other program uses for advisory locks in this database: "errata" in ASCII.
_BEGIN_WRITE = ("BEGIN ISOLATION LEVEL READ COMMITTED", f"SELECT pg_advisory_xact_lock({0x657272617461})")
_BEGIN_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)

_TIME = (
    "to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),"
    " (floor(extract(epoch FROM now) * 1000))::bigint"
)


class PostgresDialect:
    """The dialect of a PostgreSQL database."""

    errors: tuple[type[Exception], ...] = (DBAPIError,)
    clock = f"SELECT {_TIME} FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock"  # noqa: S608
    # The time is read after the lock is acquired, not before the wait, so that times follow the order of the chain.
    head = (
        f"SELECT {_TIME}, seq, hash FROM"  # noqa: S608
        " (SELECT seq, hash FROM audit_head FOR UPDATE) AS head, LATERAL"
        " (SELECT clock_timestamp() AS now, head.seq AS after OFFSET 0) AS clock"
    )

    def __init__(self, url: URL) -> None:
        query = dict(url.query)
        self.patience = _parse_seconds(query.pop(_PATIENCE, _PATIENCE_SECONDS))
        own = " ".join(f"-c {name}={value}" for name, value in _OPTIONS.items())
        # The URL's options come last: of two settings with the same name the server takes the last.
        query = _CONNECT | query | {"options": f"{own} {query.get('options', '')}".strip()}
        self._url = url.set(drivername="postgresql+psycopg", query=query)
        host = self._url.host or query.get("host") or "local socket"
        self.place = f"{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"

    def has_place(self) -> bool:
        return True

    def make_place(self) -> None:
        pass

    def connect(self) -> Engine:
        try:
            return create_engine(
                self._url,
                connect_args={"autocommit": True},  # only Database begins and ends transactions
                pool_pre_ping=True,
                pool_size=_KEPT_CONNECTIONS,
                max_overflow=_MORE_CONNECTIONS,
                use_native_hstore=False,
                hide_parameters=True,  # keep values out of error messages
            )
        except ModuleNotFoundError as missing:
            raise SetupError(
                "the ledger was not opened; expected the PostgreSQL driver psycopg, found none",
                state="nothing was changed",
                hint='pip install "errata[postgres]"',
            ) from missing

    def begin(self, *, write: bool) -> tuple[str, ...]:
        return _BEGIN_WRITE if write else _BEGIN_READ

    def classify_error(self, error: BaseException) -> FailureKind:
        code = _read_sqlstate(error)
        if code in _BUSY_CODES:
            return FailureKind.BUSY
        if code in _LOST_CODES or code.startswith("08"):
            return FailureKind.LOST
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return FailureKind.LOST
        if isinstance(error, OperationalError) and not code and not _PERMANENT.search(self.said(error)):
            return FailureKind.LOST
        return FailureKind.FINAL

    def failed(self, error: BaseException, *, opening: bool, unsure: bool) -> ErrataError:
        cause = self.said(error)
        if _read_sqlstate(error) == _DENIED_CODE:
            return SetupError(
                f"the ledger at {self.place} was not used; expected a role with the ledger's rights, found: {cause}",
                state="nothing was changed",
                hint="the owner of the tables creates and migrates them; see docs/guides/postgresql-ledger.md",
            )
        if opening:
            return SetupError(
                f"the ledger was not opened; expected a PostgreSQL server at {self.place}, found: {cause}",
                state="nothing was changed",
                hint="check that the server runs and that host, database, user and password are right",
            )
        state = (
            "whether the last change was recorded is not known: the answer to its commit was lost"
            if unsure
            else "the transaction was rolled back; nothing was changed"
        )
        kind = EngineError if _read_sqlstate(error)[:2] in _FAULT_CLASSES else LedgerUnavailable
        return kind(
            f"the ledger at {self.place} could not be used: {cause}",
            state=state,
            hint="repeat the command when the database is back; what was recorded is not done twice",
            cause=cause,
        )

    def said(self, error: BaseException) -> str:
        cause: Any = getattr(error, "orig", None) or error
        diagnosis = getattr(cause, "diag", None)
        primary = getattr(diagnosis, "message_primary", None)
        # psycopg adds a line for every address it tried.
        lines = str(primary or cause).strip().splitlines()
        return lines[0] if lines else type(cause).__name__

    def version(self, conn: Connection) -> str:
        return f"PostgreSQL {conn.execute(text('SHOW server_version')).scalar_one()}".split(" (")[0]

    def expected_triggers(self, conn: Connection) -> tuple[Trigger, ...]:
        return build_postgres_triggers(conn.execute(text("SELECT quote_ident(current_schema())")).scalar_one())

    def read_triggers(self, conn: Connection) -> dict[str, str]:
        return {row.tgname: format_postgres_trigger(row.relname, row.tgtype, row.tgenabled, row.setting, row.prosrc)
                for row in _load_triggers(conn)}  # fmt: skip

    def drop_triggers(self, conn: Connection) -> None:
        quote = conn.dialect.identifier_preparer.quote
        for row in _load_triggers(conn):
            conn.exec_driver_sql(f"DROP TRIGGER {quote(row.tgname)} ON {quote(row.relname)}")
            if row.proname.startswith(FUNCTION_PREFIX):
                conn.exec_driver_sql(f"DROP FUNCTION {quote(row.proname)}()")

    def is_owner(self, conn: Connection) -> bool:
        return bool(conn.exec_driver_sql(_OWNS_SQL).scalar())

    def scrub(self, engine: Engine) -> str:
        return _vacuum_subjects(engine)


_OWNS_SQL = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'subject'::regclass"


def _vacuum_subjects(engine: Engine) -> str:
    """Rewrite the table so that no dead row is left; only the tables' owner may do that."""
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute(_OWNS_SQL)
        is_owner = cursor.fetchone() == (True,)
        if is_owner:
            cursor.execute("VACUUM (FULL) subject")
    finally:
        raw.close()
    left = "name and key are deleted; for dead rows in its files the tables' owner runs VACUUM (FULL) subject"
    return "" if is_owner else left


_TRIGGERS_SQL = text(
    "SELECT t.tgname, c.relname, t.tgtype, t.tgenabled::text AS tgenabled, p.proname, p.prosrc,"
    " concat_ws(' ', array_to_string(p.proconfig, ' '), pg_get_expr(t.tgqual, t.tgrelid)) AS setting"
    " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid"
    " WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(:tables)"
)


def _load_triggers(conn: Connection) -> list[Any]:
    return list(conn.execute(_TRIGGERS_SQL, {"tables": sorted(metadata.tables)}).all())


def _read_sqlstate(error: BaseException) -> str:
    cause: Any = getattr(error, "orig", None) or error
    return str(getattr(cause, "sqlstate", None) or "")


def _parse_seconds(value: object) -> float:
    try:
        found = float(str(value))
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86_400:
        raise UsageError(f"the ledger was not opened; expected {_PATIENCE} as seconds, found {value!r}")
    return found
