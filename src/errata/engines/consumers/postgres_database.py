"""Statements in a PostgreSQL database behind the lake, and the watermarks that incremental jobs keep there.

Every statement runs on its own, outside of a transaction block, because some cannot run inside one. Moving a watermark
is one transaction, which also inserts the key of the move into ``errata_effects``: a repeated move finds its key.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from errata.errors import EngineError, SetupError, UsageError
from errata.model.consumer.declaration import WatermarkState
from errata.model.consumer.partition_text import HOLE, BoundSql, bind_sql
from errata.model.consumer.watermark import WatermarkType
from errata.ports.consumers import Watermark, WatermarkMove, Watermarks

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

EFFECTS = "errata_effects"
"""Table with the keys of what was done once, in the search path of the connection."""
_CREATE = (
    f"CREATE TABLE {EFFECTS} (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " old_value text, new_value text)"
)
_TYPES = {
    "date": WatermarkType.DATE,
    "timestamp without time zone": WatermarkType.TIMESTAMP,
    "timestamp with time zone": WatermarkType.TIMESTAMPTZ,
    "text": WatermarkType.TEXT,
    "character varying": WatermarkType.TEXT,
}
_CONNECT_SECONDS = 10
_MOVE_SECONDS = 30
_ANSWER_SECONDS = 2
"""How long after the time limit of a statement the server may take to say that it ended it."""


def run_statements(uri: str, template: str, partitions: Sequence[str], timeout_seconds: float) -> None:
    """Run a statement for each partition, or once if it does not name one."""
    with _connect(uri, timeout_seconds) as conn:
        for name in partitions if HOLE in template else partitions[:1]:
            _execute(conn, bind_sql(template, name))


def read_values(uri: str, template: str, partitions: Sequence[str], timeout_seconds: float) -> dict[str, str | None]:
    """The one value that the query gives for each partition; None for NULL and for no row."""
    found: dict[str, str | None] = {}
    with _connect(uri, timeout_seconds) as conn:
        # not even a function in the query may write
        conn.execute("SET default_transaction_read_only = on")
        for name in partitions:
            cursor = _execute(conn, bind_sql(template, name))
            if cursor.description is None or len(cursor.description) != 1:
                raise EngineError("the query has to give one column")
            rows = cursor.fetchmany(2)
            if len(rows) > 1:
                raise EngineError("the query gave more than one row for a partition")
            found[name] = None if not rows or rows[0][0] is None else str(rows[0][0])
    return found


def _execute(conn: psycopg.Connection[Any], bound: BoundSql) -> psycopg.Cursor[Any]:
    # the text comes from errata.yaml, partitions are parameters
    if bound.parameters:
        return conn.execute(bound.text, bound.parameters)
    # without parameters the driver takes percent signs as they are
    return conn.execute(bound.text.replace("%%", "%"))


@dataclass(frozen=True, slots=True)
class PostgresWatermarks:
    """Watermarks in tables of the databases with these addresses."""

    uris: Mapping[str, str]

    def read(self, state: WatermarkState) -> Watermark:
        """See the port."""
        with self._open(state) as conn:
            return _read_row(conn, state)

    def find_move(self, state: WatermarkState, key: str) -> WatermarkMove | None:
        """See the port."""
        with self._open(state) as conn:
            return _find_move(conn, key) if _has_effects(conn) else None

    def move(self, state: WatermarkState, key: str, expected: str | None, new: str | None) -> WatermarkMove | None:
        """See the port."""
        from psycopg import errors, sql

        with self._open(state) as conn:
            _ensure_effects(conn)
            try:
                with conn.transaction():
                    found = _read_row(conn, state, lock=True)
                    # after the lock: a move with this key by someone else has been committed
                    if done := _find_move(conn, key):
                        return done
                    if found.value != expected:
                        return None
                    if new != expected:
                        statement = sql.SQL("UPDATE {} SET {} = %s WHERE {}").format(
                            _name_table(state), sql.Identifier(state.column), _match_row(state)
                        )
                        conn.execute(statement, (new, *state.key.values()))
                    conn.execute(
                        f"INSERT INTO {EFFECTS} (key, old_value, new_value) VALUES (%s, %s, %s)",  # noqa: S608
                        (key, expected, new),
                    )
            except errors.UniqueViolation:
                pass  # another payer, which found another row to lock, was faster
            return _find_move(conn, key)

    @contextmanager
    def _open(self, state: WatermarkState) -> Iterator[psycopg.Connection[Any]]:
        with _connect(find_uri(self.uris, state.on), _MOVE_SECONDS) as conn:
            yield conn


_conforms: type[Watermarks] = PostgresWatermarks


def find_uri(uris: Mapping[str, str], name: str | None) -> str:
    """The address of a database."""
    if name is None or name not in uris:
        raise UsageError(f"there is no warehouse {name}; expected one of {', '.join(sorted(uris)) or 'none'}")
    return uris[name]


def _read_row(conn: psycopg.Connection[Any], state: WatermarkState, *, lock: bool = False) -> Watermark:
    from psycopg import sql

    column = sql.Identifier(state.column)
    query = sql.SQL("SELECT {}, pg_typeof({})::text FROM {} WHERE {}{}").format(
        column, column, _name_table(state), _match_row(state), sql.SQL(" FOR UPDATE" if lock else "")
    )
    rows = conn.execute(query, tuple(state.key.values())).fetchmany(2)
    if len(rows) != 1:
        raise UsageError(
            f"the watermark in {state.table} was not found; expected one row, found {'more' if rows else 'none'}",
            state="nothing was changed",
        )
    value, type_name = rows[0]
    if type_name not in _TYPES:
        raise UsageError(
            f"the watermark {state.column} of {state.table} was refused; expected date, timestamp or text, "
            f"found {type_name}",
            state="nothing was changed",
            hint="rerun: a command that gets the partitions",
        )
    return Watermark(None if value is None else _to_text(value), _TYPES[type_name])


def _to_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def _name_table(state: WatermarkState) -> sql.Composable:
    from psycopg import sql

    return sql.Identifier(*state.table.split("."))


def _match_row(state: WatermarkState) -> sql.Composable:
    from psycopg import sql

    return sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(column)) for column in state.key)


def _has_effects(conn: psycopg.Connection[Any]) -> bool:
    row = conn.execute("SELECT to_regclass(%s) IS NOT NULL", (EFFECTS,)).fetchone()
    return bool(row and row[0])


def _ensure_effects(conn: psycopg.Connection[Any]) -> None:
    """Create the table of keys unless it exists; a role that may not create tables gets by if it does."""
    from psycopg import errors

    if _has_effects(conn):
        return
    try:
        conn.execute(_CREATE)
    except (errors.DuplicateTable, errors.UniqueViolation):
        pass  # another process was faster


def _find_move(conn: psycopg.Connection[Any], key: str) -> WatermarkMove | None:
    row = conn.execute(f"SELECT old_value, new_value, at FROM {EFFECTS} WHERE key = %s", (key,)).fetchone()  # noqa: S608
    return WatermarkMove(row[0], row[1], row[2].isoformat(timespec="milliseconds")) if row else None


@contextmanager
def _connect(uri: str, timeout_seconds: float) -> Iterator[psycopg.Connection[Any]]:
    try:
        import psycopg
    except ModuleNotFoundError as missing:
        raise SetupError(
            "a PostgreSQL database cannot be reached; expected the Python package psycopg, found none",
            state="nothing was changed",
            hint='pip install "errata[postgres]"',
        ) from missing
    address = uri.replace("postgresql+psycopg://", "postgresql://", 1)
    connect_seconds = max(2, min(_CONNECT_SECONDS, int(timeout_seconds)))
    limit = _TimeLimit(timeout_seconds + _ANSWER_SECONDS)

    class Connection(psycopg.Connection[Any]):
        def wait(self, *arguments: Any, **more: Any) -> Any:
            with limit.holding(self.fileno()):
                return super().wait(*arguments, **more)

    try:
        with Connection.connect(
            address, autocommit=True, connect_timeout=connect_seconds, application_name="errata"
        ) as conn:
            conn.execute("SET TIME ZONE 'UTC'")
            conn.execute("SELECT set_config('statement_timeout', %s, false)", (f"{int(timeout_seconds * 1000)}ms",))
            yield conn
    except psycopg.Error as error:
        if limit.is_over:
            raise EngineError(f"the database did not answer within {limit.seconds:g} s") from None
        raise _translate_error(error) from None


@dataclass(slots=True)
class _TimeLimit:
    """How long an answer may take. The server ends a statement itself, but one that is gone ends nothing."""

    seconds: float
    is_over: bool = False

    @contextmanager
    def holding(self, connection: int) -> Iterator[None]:
        """Cut the connection, which has this file descriptor, when the time is over."""
        # a copy of the descriptor, which is nobody else's when the timer is late
        with socket.socket(fileno=os.dup(connection)) as sock:
            timer = threading.Timer(self.seconds, self._cut_off, [sock])
            timer.daemon = True
            timer.start()
            try:
                yield
            finally:
                timer.cancel()

    def _cut_off(self, sock: socket.socket) -> None:
        self.is_over = True
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _translate_error(error: psycopg.Error) -> EngineError:
    """What went wrong, without values: messages of the server may quote what a row or a parameter holds."""
    kind, state = type(error).__name__, error.sqlstate
    if state is None:
        return EngineError(f"the database cannot be reached: {kind}")
    # names of tables, columns and functions, and rights on them
    told = f": {error.diag.message_primary}" if state.startswith("42") and error.diag.message_primary else ""
    return EngineError(f"the database refused a statement with {state} {kind}{told}")
