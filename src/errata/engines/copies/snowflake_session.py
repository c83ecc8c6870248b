"""Sessions with Snowflake: connected once, never reopened, with errors that quote no address, no key and no value.

Autocommit is off, so that a statement of a transaction whose session was lost is not committed by itself. A transaction
has only queries and DML: anything else would commit it. Its session and its number are read after its beginning, are a
condition of the statement that changes the marker, and are read again before the commit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from errata.errors import CopyLocked, EngineError, MissingDriver, OutcomeUnknown
from errata.model.copy.snowflake_account import SnowflakeAccount

if TYPE_CHECKING:
    import pyarrow as pa
    from snowflake.connector import SnowflakeConnection

LOGIN_SECONDS = 30
NETWORK_SECONDS = 60
"""How long the connector repeats a request that gets no answer; without a limit it does so for ever."""
STATEMENT_SECONDS = 3_600
_BATCH_ROWS = 20_000
_LONG_DIGITS = 18
"""A whole number with at most this many digits fits into 64 bits."""
_LOCKED = 625
_NOT_THERE = (2003, 2043)
# what is wrong with names and rights; any other message may quote a value
_ABOUT_NAMES = (*_NOT_THERE, 3001, 904, 2140)
_HOLDER = re.compile(r"in transaction (\d+)")
_WHO = "SELECT CURRENT_SESSION(), CURRENT_TRANSACTION()"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement returned: its rows, how many rows it changed or returned, its id, and the names of columns."""

    rows: list[tuple[Any, ...]]
    count: int = 0
    query: str = ""
    columns: tuple[str, ...] = ()

    def read(self, *names: str) -> list[tuple[Any, ...]]:
        """Some columns of the rows, by their names in any case; None for one that is not there."""
        known = {name.lower(): at for at, name in enumerate(self.columns)}
        places = [known.get(name) for name in names]
        return [tuple(None if at is None else row[at] for at in places) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Identity:
    """A session and the transaction that is open in it."""

    session: str
    transaction: str | None


class StatementRefused(Exception):
    """Snowflake answered that it did not run a statement; the message has no values."""

    def __init__(self, message: str, number: int, query: str, blocked_by: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.number = number
        self.query = query
        self.blocked_by = tuple(blocked_by)

    @property
    def is_missing_table(self) -> bool:
        """Whether a table does not exist, or the role may not see it."""
        return self.number in _NOT_THERE

    @property
    def is_locked(self) -> bool:
        """Whether another session kept a lock for too long."""
        return self.number == _LOCKED


class AnswerLost(Exception):
    """No answer came: nobody knows whether the statement ran."""


class Session(Protocol):
    """A session in which statements run one after the other."""

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        """Run one statement. Raises ``StatementRefused`` or ``AnswerLost``."""

    def close(self) -> None:
        """End the session, which rolls back what is not committed; never raises."""


@dataclass(slots=True)
class ConnectorSession:
    """A session of the Python connector."""

    conn: SnowflakeConnection

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        """See the protocol."""
        try:
            with self.conn.cursor() as cursor:
                cursor.execute(statement, tuple(parameters) or None)
                rows = [tuple(row) for row in cursor.fetchall()]
                columns = tuple(column.name for column in cursor.description or ())
                return Answer(rows, cursor.rowcount or 0, cursor.sfqid or "", columns)
        except Exception as error:  # noqa: BLE001 - the connector also lets errors of its HTTP library out
            raise translate_error(error) from None

    def close(self) -> None:
        """See the protocol."""
        try:
            self.conn.close(retry=False)
        except Exception:  # noqa: BLE001, S110 - whatever it is, the server ends a session that nobody uses
            pass


def stream_query(session: Session, query: str) -> tuple[str, pa.Schema, Iterator[pa.RecordBatch]]:
    """The id of a query, its columns, and its rows batch by batch, with all digits of numbers.

    The connector's own Arrow needs pandas, so rows come as Python has them. Raises ``StatementRefused`` or
    ``AnswerLost``, here or while rows are read.
    """
    import pyarrow as pa

    if not isinstance(session, ConnectorSession):
        raise EngineError("rows can be streamed from a session of the connector only")
    try:
        cursor = session.conn.cursor()
        cursor.execute(query)
    except Exception as error:  # noqa: BLE001 - as above
        raise translate_error(error) from None
    # Snowflake writes names without quotes in upper case; here they are as in other databases
    names = [one.name.lower() if one.name.isupper() else one.name for one in cursor.description or ()]
    kinds = [_to_arrow_type(one) for one in cursor.description or ()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))

    def read() -> Iterator[pa.RecordBatch]:
        try:
            while rows := cursor.fetchmany(_BATCH_ROWS):
                columns = zip(*rows, strict=True)
                arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
                yield pa.record_batch(arrays, schema=schema)
        except pa.ArrowException:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise translate_error(error) from None
        finally:
            cursor.close()

    return cursor.sfqid or "", schema, read()


def _to_arrow_type(column: Any) -> pa.DataType:
    """The type that keeps every value; what has no type of its own comes as text."""
    import pyarrow as pa
    from snowflake.connector.constants import FIELD_ID_TO_NAME

    kind, precision, scale = FIELD_ID_TO_NAME[column.type_code], column.precision or 38, column.scale or 0
    if kind == "FIXED":
        is_long = scale == 0 and precision <= _LONG_DIGITS
        return pa.int64() if is_long else pa.decimal128(precision, scale)
    known = {
        "REAL": pa.float64(), "DATE": pa.date32(), "BOOLEAN": pa.bool_(), "BINARY": pa.binary(),
        "TIMESTAMP_NTZ": pa.timestamp("us"), "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"), "TIMESTAMP_TZ": pa.timestamp("us", "UTC"), "TIME": pa.time64("us"),
    }  # fmt: skip
    return known.get(kind, pa.string())


def translate_error(error: Exception) -> StatementRefused | AnswerLost:
    """What became of a statement, without values: messages of the server may quote what a row or a parameter holds."""
    from snowflake.connector.errors import IntegrityError, ProgrammingError

    # only these are answers of Snowflake to a statement; all others come from the way to it
    if not isinstance(error, (ProgrammingError, IntegrityError)) or not 0 <= error.errno < 250_000:
        return AnswerLost(type(error).__name__)
    message = error.raw_msg or ""
    told = f": {' '.join(message.split())}" if error.errno in _ABOUT_NAMES else ""
    number, query = error.errno, error.sfqid or ""
    where = f" (query {query})" if query else ""
    return StatementRefused(
        f"Snowflake refused a statement with {number:06d}, SQLSTATE {error.sqlstate or 'unknown'}{told}{where}",
        number,
        query,
        _HOLDER.findall(message) if number == _LOCKED else (),
    )


@contextmanager
def open_session(name: str, account: SnowflakeAccount, lock_seconds: float, tag: dict[str, Any]) -> Iterator[Session]:
    """A session in the account of this name; any error closes it. The history shows ``tag`` with each statement."""
    session = ConnectorSession(_connect(name, account, build_options(account, lock_seconds, tag)))
    with close_session(name, session):
        yield session


@contextmanager
def close_session(name: str, session: Session) -> Iterator[None]:
    """Close a session at the end, whatever happens in it, and describe what it could not answer."""
    try:
        yield
    except StatementRefused as refused:
        raise EngineError(f"{name}: {refused}") from None
    except AnswerLost as lost:
        raise EngineError(f"{name} gave no answer: {lost}") from None
    finally:
        session.close()


def build_options(account: SnowflakeAccount, lock_seconds: float, tag: dict[str, Any]) -> dict[str, Any]:
    """How the connector opens a session. The tag is a setting of it, because no transaction may set one."""
    return {
        "account": account.account,
        "user": account.user,
        "authenticator": "SNOWFLAKE_JWT",
        "private_key": account.read_key(),
        "role": account.role,
        "warehouse": account.warehouse,
        "database": account.database,
        "schema": account.schema,
        "application": "Errata",
        "paramstyle": "qmark",
        "autocommit": False,
        "login_timeout": LOGIN_SECONDS,
        "network_timeout": NETWORK_SECONDS,
        "platform_detection_timeout_seconds": 0.0,
        "client_session_keep_alive": False,
        "session_parameters": {
            "AUTOCOMMIT": False,
            "QUERY_TAG": json.dumps({"errata": tag}, separators=(",", ":")),
            # zero would mean: do not wait at all
            "LOCK_TIMEOUT": max(1, math.ceil(lock_seconds)),
            "STATEMENT_TIMEOUT_IN_SECONDS": STATEMENT_SECONDS,
            "ABORT_DETACHED_QUERY": True,
            "TIMEZONE": "UTC",
        },
        **account.split_host(),
    }


def _connect(name: str, account: SnowflakeAccount, options: dict[str, Any]) -> SnowflakeConnection:
    try:
        from snowflake import connector
    except ModuleNotFoundError:
        raise MissingDriver(
            "a copy in Snowflake cannot be reached; expected the Python package snowflake-connector-python, found none",
            state="nothing was changed",
            hint='pip install "errata[snowflake]"',
        ) from None
    try:
        return connector.connect(**options)
    except Exception as error:  # noqa: BLE001 - the connector also lets errors of its HTTP library out
        errno = getattr(error, "errno", None)
        number = f" {errno:06d}" if isinstance(errno, int) and errno >= 0 else ""
        raise EngineError(
            f"{name} cannot be reached as {account.user}: {type(error).__name__}{number}", state="nothing was changed"
        ) from None


@contextmanager
def open_transaction(name: str, session: Session, locked: str) -> Iterator[Identity]:
    """One transaction; any error rolls it back. ``locked`` is the table whose lock others may keep.

    Raises ``CopyLocked`` for that, and ``OutcomeUnknown`` if the answer to the commit is lost, and only then.
    """
    try:
        session.run("BEGIN TRANSACTION")
        identity = read_identity(session)
        if identity.transaction is None:
            raise EngineError(f"{name} has opened no transaction", state="nothing was written")
        yield identity
        # a driver that connected again would now be in another session, in which nothing of this happened
        if read_identity(session) != identity:
            raise EngineError(f"{name} ended the session of a transaction", state="nothing was written")
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _roll_back(session)
        raise _describe_failure(name, session, error, locked) from None
    try:
        session.run("COMMIT")
    except AnswerLost:
        raise OutcomeUnknown(
            f"the connection to {name} broke during the commit; only the marker tells whether it landed",
            hint="errata deliver",
        ) from None


def read_identity(session: Session) -> Identity:
    """The session, and the transaction that is open in it."""
    (row,) = session.run(_WHO).rows
    return Identity(str(row[0]), None if row[1] is None else str(row[1]))


def _roll_back(session: Session) -> None:
    # a statement that failed leaves the transaction open, with everything that was changed before it
    try:
        session.run("ROLLBACK")
    except (StatementRefused, AnswerLost):
        # the session is closed next, which rolls back as well
        pass


def _describe_failure(name: str, session: Session, error: BaseException, locked: str) -> BaseException:
    if not isinstance(error, (StatementRefused, AnswerLost)):
        return error
    if isinstance(error, AnswerLost):
        return EngineError(f"{name} gave no answer: {error}", state="nothing was written", hint="errata deliver")
    if not error.is_locked:
        return EngineError(f"{name}: {error}", state="nothing was written")
    holders = error.blocked_by or find_holders(session)
    told = f"transactions {', '.join(holders)}" if holders else "a transaction that this role may not see"
    return CopyLocked(
        f"{locked} in {name} was locked for too long by {told} (query {error.query or 'unknown'})",
        state="nothing was written",
        hint="errata deliver, when they have ended; select system$abort_transaction(ID) ends one that is abandoned",
        blocked_by=list(holders),
    )


def find_holders(session: Session) -> tuple[str, ...]:
    """Transactions that hold locks, as far as the role may see them."""
    try:
        locks = session.run("SHOW LOCKS").read("transaction", "status")
    except (StatementRefused, AnswerLost):
        return ()
    return tuple(dict.fromkeys(str(transaction) for transaction, status in locks if status == "HOLDING"))
