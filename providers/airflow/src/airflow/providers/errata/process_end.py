"""Ends a process that Airflow no longer wants, giving it time to record what it has done. Does I/O."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

LAST_SECONDS = 5.0
"""How long a process has after the second request."""


def stop_process(pid: int, patience: float) -> None:
    """Ask a process to end, ask again after ``patience`` seconds, and kill it and its children if it still runs.

    Errata treats the first request like Ctrl-C: chunks in progress are recorded or given back. Runs in a signal
    handler, while the interrupted code may be waiting for the same process, so it takes no lock and collects no exit
    code.
    """
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGTERM, LAST_SECONDS)):
        if has_ended(pid):
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if _wait_for_end(pid, seconds):
            return
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Whether a child has ended; its exit code stays for whoever waits for it."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return found is not None


def _wait_for_end(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if has_ended(pid):
            return True
        time.sleep(0.1)
    return has_ended(pid)
