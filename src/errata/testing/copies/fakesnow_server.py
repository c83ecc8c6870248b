"""fakesnow, the Snowflake emulator, with what copies need and it lacks. Run by the Python that has fakesnow:

    python fakesnow_server.py PORT

It imports nothing of Errata. It adds ``CURRENT_SESSION()`` and ``CURRENT_TRANSACTION()``, and empty answers to ``SHOW
LOCKS``, ``SHOW STREAMS`` and questions about policies. That two transactions write the same rows is reported as
Snowflake reports a lock, where fakesnow has an internal error that the connector repeats for minutes.
``POST /end-transactions`` rolls back every open transaction, as Snowflake does some minutes after a client disappeared.

What it does not add: waiting for a lock (it refuses at once), read committed (a transaction sees the state at its
beginning), time travel, masking and row access policies.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import duckdb
import fakesnow.server
import uvicorn
from fakesnow.cursor import FakeSnowflakeCursor
from snowflake.connector.errors import ProgrammingError
from starlette.responses import JSONResponse
from starlette.routing import Route

_EMPTY = {
    r"\s*show locks": 'select null as "session", null as "transaction", null as "status" where false',
    r"\s*show streams": 'select null as "name", null as "table_name" where false',
    r"\s*show dynamic tables": 'select null as "name", null as "text" where false',
    r".*\bpolicy_references\(": 'select null as "POLICY_NAME", null as "POLICY_KIND" where false',
}
_SESSION = re.compile(r"current_session\(\)", re.IGNORECASE)
_TRANSACTION = re.compile(r"current_transaction\(\)", re.IGNORECASE)
_execute = FakeSnowflakeCursor.execute


def execute(self: Any, command: str, params: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Run a statement; replaces the method of fakesnow."""
    for pattern, answer in _EMPTY.items():
        if re.match(pattern, command, re.IGNORECASE | re.DOTALL):
            command = answer
    command = _SESSION.sub(f"'{id(self._conn)}'", command)
    if _TRANSACTION.search(command):
        command = _TRANSACTION.sub(_name_transaction(self._conn), command)
    try:
        return _execute(self, command, params, *args, **kwargs)
    except duckdb.TransactionException as error:
        raise ProgrammingError(
            msg=f"Another statement has locked a table, and this lock has not yet been released. {error}",
            errno=625,
            sqlstate="57014",
        ) from error


def _name_transaction(conn: Any) -> str:
    if not conn._in_transaction:
        return "null"
    return f"'{conn._duck_conn.execute('select txid_current()').fetchone()[0]}'"


def end_transactions(_: Any) -> JSONResponse:
    """Roll back every open transaction and end its session."""
    ended = 0
    for token, conn in list(fakesnow.server.sessions.items()):
        if conn._in_transaction:
            del fakesnow.server.sessions[token]
            conn._duck_conn.rollback()
            ended += 1
    return JSONResponse({"ended": ended})


def main(port: int) -> None:
    """Serve on loopback until the process ends."""
    FakeSnowflakeCursor.execute = execute
    fakesnow.server.app.router.routes.append(Route("/end-transactions", end_transactions, methods=["POST"]))
    uvicorn.run(fakesnow.server.app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]))
