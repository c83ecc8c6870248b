"""What a failed command says, as text and as JSON, and its exit code. Touches: the session's streams."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from errata.canonical import plain
from errata.cli.app.session import Session
from errata.cli.render.error import error_lines, page_of
from errata.errors import ErrataError, UsageError
from errata.text.escape import visible
from errata.text.secrets import without_passwords

EXIT_INTERRUPTED = 130


class Internal(ErrataError):
    """Something nobody foresaw."""

    code = "internal"


class Interrupted(ErrataError):
    """Ctrl-C."""

    code = "interrupted"
    exit_code = EXIT_INTERRUPTED


def guarded(session: Session, work: Callable[[], int | None]) -> int:
    """Run a command; every way it can end is an exit code."""
    try:
        return work() or 0
    except ErrataError as error:
        return report(session, error)
    except KeyboardInterrupt:
        return report(session, _interrupted(session))
    except BrokenPipeError:
        # whoever read stdout went away (`| head`); keep the interpreter from complaining about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except Exception as problem:  # noqa: BLE001 (the last border: people get a sentence, not a traceback)
        if session.world.environ.get("ERRATA_DEBUG"):
            for line in _without_secrets(session, traceback.format_exc()).splitlines():
                session.world.err.write(f"{visible(line)}\n")
        return report(session, _internal(session, problem))


def report(session: Session, error: ErrataError) -> int:
    """Say what went wrong, in the form that was asked for."""
    if session.json:
        session.write_json(_without_secrets(session, error_data(error)))
        return error.exit_code
    lines = page_of(error, session.width)
    if lines:
        session.page([*(_without_secrets(session, line) for line in lines), ""])
    for line in error_lines(error):
        told: str = _without_secrets(session, line)
        session.tell(session.local(told) if not told.startswith("error[") else told)
    return error.exit_code


def _without_secrets(session: Session, said: Any) -> Any:
    """Messages of engines may quote an address with a password in it, however deep in an answer."""
    if isinstance(said, str):
        return without_passwords(session.redact(said))
    if isinstance(said, Mapping):
        return {key: _without_secrets(session, item) for key, item in said.items()}
    if isinstance(said, (list, tuple)):
        return [_without_secrets(session, item) for item in said]
    return said


def error_data(error: ErrataError) -> dict[str, Any]:
    """The JSON shape of an error."""
    fixed = {"code": error.code, "message": error.message, "hint": error.hint, "state": error.state}
    return {"error": {**fixed, **{key: plain(item) for key, item in error.fields.items() if key not in fixed}}}


def usage_error(message: str, where: str | None) -> UsageError:
    """A command line that typer could not make sense of."""
    return UsageError(message, hint=f"{where or 'errata'} --help")


def _interrupted(session: Session) -> ErrataError:
    return Interrupted(
        "interrupted",
        state="the state is safe: what was finished is recorded, what was not will be looked at again",
        hint=f"to go on: {shlex.join(['errata', *session.world.argv])}",
    )


def _internal(session: Session, problem: Exception) -> ErrataError:
    said = str(problem).strip().splitlines()[0] if str(problem).strip() else "no reason given"
    log = f"; log: {session.client_log}" if session.client_log else ""
    return Internal(
        f"unexpected {type(problem).__name__}: {said}{log}",
        state="the ledger has what was finished; repeating a command is safe",
        hint="ERRATA_DEBUG=1 shows where it came from",
    )
