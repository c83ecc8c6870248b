"""Run a command of the user: without a shell, with a time limit, and without a trace of it in messages."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from errata.errors import EngineError


def run_command(
    root: Path,
    command: Sequence[str],
    given: bytes,
    timeout_seconds: float,
    *,
    what: str = "the command",
    variables: Mapping[str, str] | None = None,
    keeps_output: bool = False,
) -> bytes:
    """Run it in the project directory with ``given`` on stdin; returns its output if that is kept.

    Everything it started is killed at the time limit. Messages contain neither the command nor its output, which may
    hold secrets.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if keeps_output else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise EngineError(f"{what} cannot be started: {type(error).__name__}") from None
    try:
        output, _ = process.communicate(given, timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise EngineError(f"{what} did not end within {timeout_seconds:g} s") from None
    finally:
        _end_process(process)
    if process.returncode != 0:
        raise EngineError(f"{what} ended with {process.returncode}")
    return output or b""


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that is still running, with every process it started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:
                pass  # it ended without reading its input
    process.wait()
