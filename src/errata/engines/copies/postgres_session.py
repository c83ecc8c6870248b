"""Sessions with PostgreSQL: connected once, never reopened, with errors that quote no address and no value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from errata.errors import CopyLocked, EngineError, ErrataError, MissingDriver, OutcomeUnknown

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
# a server that is gone without a word is noticed within half a minute
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_IDLE = "60s"
_LOCK_NOT_AVAILABLE, _DEADLOCK = "55P03", "40P01"
# modes that keep a swap waiting, or that a swap and a fence hold on the markers
_HOLDERS = """\
SELECT DISTINCT pid::text FROM pg_locks
WHERE relation = to_regclass(%s) AND granted AND pid <> pg_backend_pid()
  AND mode IN ('RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
               'AccessExclusiveLock')
ORDER BY 1"""


def clean_address(uri: str) -> str:
    """The address as the drivers of PostgreSQL take it."""
    return uri.replace("postgresql+psycopg://", "postgresql://", 1)


def missing_driver(package: str) -> MissingDriver:
    """The error when a package is not installed."""
    return MissingDriver(
        f"a copy in PostgreSQL cannot be reached; expected the Python package {package}, found none",
        state="nothing was changed",
        hint='pip install "errata[postgres-copy]"',
    )


@contextmanager
def open_session(warehouse: str, uri: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in which every statement is committed by itself; an error closes it."""
    try:
        import psycopg
    except ModuleNotFoundError:
        raise missing_driver("psycopg") from None
    try:
        with psycopg.connect(
            clean_address(uri),
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name="errata",
            **_KEEPALIVES,  # type: ignore[arg-type]
        ) as conn:
            # texts of statements are built with these in mind
            conn.execute("SET TIME ZONE 'UTC'")
            conn.execute("SET standard_conforming_strings = on")
            conn.execute("SET DateStyle = 'ISO'")
            yield conn
    except psycopg.Error as error:
        raise translate_error(warehouse, error) from None


@contextmanager
def open_transaction(
    warehouse: str, conn: psycopg.Connection[Any], lock_seconds: float, locked: Sequence[str]
) -> Iterator[None]:
    """One transaction, read committed, in which no lock is waited for longer than this; any error rolls it back.

    ``locked`` are the tables whose locks may be in the way. Raises ``OutcomeUnknown`` only if the answer to the commit
    is lost.
    """
    import psycopg

    conn.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        conn.execute("SELECT set_config('lock_timeout', %s, true)", (f"{int(lock_seconds * 1000)}ms",))
        # a client that is stopped in the middle must not keep other writers waiting for ever
        conn.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, true)", (_IDLE,))
        yield
    except psycopg.Error as error:
        if error.sqlstate in (_LOCK_NOT_AVAILABLE, _DEADLOCK):
            conn.execute("ROLLBACK")
            _raise_locked(warehouse, conn, lock_seconds, locked)
        # closing the session, which the caller does, rolls back what is not committed
        raise
    except BaseException:
        if not conn.closed:
            conn.execute("ROLLBACK")
        raise
    try:
        conn.execute("COMMIT")
    except psycopg.Error as error:
        if _is_answer(error):
            raise
        raise OutcomeUnknown(
            f"the connection to {warehouse} broke during the commit; only the marker tells whether it landed",
            hint="errata deliver",
        ) from None


def _is_answer(error: psycopg.Error) -> bool:
    """Whether the server itself refused: then nothing was committed."""
    state = error.sqlstate
    return state is not None and not state.startswith(("08", "57P")) and state != "40003"


def _raise_locked(
    warehouse: str, conn: psycopg.Connection[Any], lock_seconds: float, locked: Sequence[str]
) -> NoReturn:
    found = [row[0] for table in locked for row in conn.execute(_HOLDERS, (table,)).fetchall()]
    pids = list(dict.fromkeys(found))
    told = f"sessions {', '.join(pids)}" if pids else "a session that has ended since"
    raise CopyLocked(
        f"{locked[0]} in {warehouse} was locked for more than {lock_seconds:g} s by {told}",
        state="nothing was written",
        hint="errata deliver, when they have ended",
        blocked_by=pids,
    )


# what libpq says before there is a session, and what a person can do something about; its own text has the address
_UNREACHABLE = {
    "Connection refused": "nothing listens at its address",
    "could not translate host name": "its host name is not known",
    "password authentication failed": "the password was refused",
    "no password supplied": "it wants a password",
    "no pg_hba.conf entry": "it lets nobody in from here",
    'role "': "there is no such role",
    'database "': "there is no such database",
    "timeout expired": "it gave no answer in time",
}


def translate_error(warehouse: str, error: psycopg.Error) -> ErrataError:
    """What went wrong, without values: messages of the server may quote what a row or a parameter holds."""
    kind, state = type(error).__name__, error.sqlstate
    if state is None:
        why = next((said for text, said in _UNREACHABLE.items() if text in str(error)), kind)
        return EngineError(f"{warehouse} cannot be reached: {why}", hint="errata doctor")
    # names of tables, columns and functions, and rights on them
    told = f": {error.diag.message_primary}" if state.startswith("42") and error.diag.message_primary else ""
    named = error.diag.constraint_name or error.diag.column_name
    where = f" ({named})" if named and not told else ""
    return EngineError(f"{warehouse} refused a statement with {state} {kind}{told}{where}")
