"""Report a failed command as text or JSON, with its exit code. Writes to the session's streams."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from errata import logs
from errata.canonical import to_plain
from errata.cli.app.interrupt import EXIT_INTERRUPTED, describe_next, describe_state
from errata.cli.app.session import Session
from errata.cli.render.error import render_error, render_error_view
from errata.errors import ErrataError, UsageError
from errata.text.escape import escape_text
from errata.text.secrets import hide_passwords


class Internal(ErrataError):
    """An unexpected exception."""

    code = "internal"


class Interrupted(ErrataError):
    """Interrupted by Ctrl-C."""

    code = "interrupted"
    exit_code = EXIT_INTERRUPTED


def run_guarded(session: Session, work: Callable[[], int | None]) -> int:
    """Run a command and turn every way it can end into an exit code."""
    try:
        return work() or 0
    except ErrataError as error:
        return report_error(session, error)
    except KeyboardInterrupt:
        return report_error(session, _build_interrupted(session))
    except BrokenPipeError:
        # the reader of stdout has gone (`| head`); keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except Exception as problem:  # noqa: BLE001 (the last border: people get a sentence, not a traceback)
        if session.world.environ.get("ERRATA_DEBUG"):
            for line in _redact_secrets(session, traceback.format_exc()).splitlines():
                session.world.err.write(f"{escape_text(line)}\n")
        return report_error(session, _build_internal(session, problem))


def report_error(session: Session, error: ErrataError) -> int:
    """Print the error, as text or JSON."""
    logs.log("command.failed", logging.ERROR, command=session.world.command, code=error.code)
    if session.json:
        session.write_json(_redact_secrets(session, error_to_data(error)))
        return error.exit_code
    lines = render_error_view(error, session.width)
    if lines:
        session.page([*(_redact_secrets(session, line) for line in lines), ""])
    for line in render_error(error):
        told: str = _redact_secrets(session, line)
        session.tell(session.localize_command(told) if not told.startswith("error[") else told)
    return error.exit_code


def _redact_secrets(session: Session, said: Any) -> Any:
    """Redact an error at any depth, because engine messages may quote a URL with a password."""
    if isinstance(said, str):
        return hide_passwords(session.redact(said))
    if isinstance(said, Mapping):
        return {key: _redact_secrets(session, item) for key, item in said.items()}
    if isinstance(said, (list, tuple)):
        return [_redact_secrets(session, item) for item in said]
    return said


def error_to_data(error: ErrataError) -> dict[str, Any]:
    """The JSON shape of an error."""
    fixed = {
        "code": error.code, "message": error.message, "hint": error.hint, "state": error.state,
        "retryable": error.retryable,
    }  # fmt: skip
    return {"error": {**fixed, **{key: to_plain(item) for key, item in error.fields.items() if key not in fixed}}}


def build_usage_error(message: str, where: str | None) -> UsageError:
    """Error for a command line that typer could not parse."""
    return UsageError(message, state="nothing was changed", hint=f"{where or 'errata'} --help")


def _build_interrupted(session: Session) -> ErrataError:
    return Interrupted(
        "interrupted",
        state=describe_state(session.world.argv),
        hint=describe_next(session.world.argv),
    )


def _build_internal(session: Session, problem: Exception) -> ErrataError:
    said = str(problem).strip().splitlines()[0] if str(problem).strip() else "no reason given"
    log = f"; log: {session.client_log}" if session.client_log else ""
    return Internal(
        f"unexpected {type(problem).__name__}: {said}{log}",
        state="the ledger has recorded everything that was finished; repeating the command is safe",
        hint="ERRATA_DEBUG=1 shows where it came from",
    )
