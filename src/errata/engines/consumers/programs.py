"""Run commands of consumers: without a shell, with a time limit, and with everything they started ended after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from errata.errors import EngineError

KEY = "ERRATA_KEY"
"""Environment variable with the key that is the same for every repetition of the same work."""
_MAX_OUTPUT_BYTES = 64 * 1024


def run_program(root: Path, command: Sequence[str], partitions: Sequence[str], key: str, timeout_seconds: float) -> str:
    """Run a command in the project directory and return its output; it gets the partitions as JSON on stdin.

    Messages contain neither the command nor its output, which may hold secrets.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, KEY: key},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise EngineError(f"the command cannot be started: {type(error).__name__}") from None
    try:
        output, _ = process.communicate(json.dumps(list(partitions)).encode(), timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise EngineError(f"the command did not end within {timeout_seconds:g} s") from None
    finally:
        _end_process(process)
    if process.returncode != 0:
        raise EngineError(f"the command ended with {process.returncode}")
    return output[-_MAX_OUTPUT_BYTES:].decode("utf-8", "replace")


def read_last_word(output: str) -> str | None:
    """The last word of a command's output; None if it printed nothing."""
    words = output.split()
    return words[-1] if words else None


def _end_process(process: subprocess.Popen[bytes]) -> None:
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
