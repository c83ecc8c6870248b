"""Processes of this machine that were started with a token: found, and ended with everything they started.

The token is in their environment, so that they are found without a record of their ids. Reads /proc.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

TOKEN = "ERRATA_WORKER_TOKEN"  # noqa: S105 - the name of a variable
_PROC = Path("/proc")
_PATIENCE_SECONDS = 20.0


def list_processes(token: str) -> list[int]:
    """Ids of the processes with this token that are running."""
    mark = f"{TOKEN}={token}".encode()
    found = []
    for place in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0") and not _is_zombie(place):
                found.append(int(place.name))
    return sorted(found)


def end_processes(token: str) -> None:
    """End all of them, politely first; returns when none is left."""
    for number, patience in ((signal.SIGTERM, _PATIENCE_SECONDS), (signal.SIGKILL, _PATIENCE_SECONDS)):
        until = time.monotonic() + patience
        signalled: set[int] = set()
        while running := list_processes(token):
            for pid in running:
                # once each: a second signal would cut short what the first one began
                if pid not in signalled:
                    signalled.add(pid)
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
            if time.monotonic() > until:
                break
            time.sleep(0.1)


def _is_zombie(place: Path) -> bool:
    return (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
