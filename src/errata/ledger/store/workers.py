"""Identity of worker processes, and whether a process is certainly gone.

A pid alone is not enough: pids are reused, and containers count their own. ``started`` therefore contains the boot id,
the pid namespace and the start time of the process. A process is called dead only when host, boot and namespace are
this process's own; in all other cases the lease decides.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from errata.ledger.records import Owner

_PROC = Path("/proc")


def current_owner(name: str | None = None) -> Owner:
    """The current process as an owner."""
    pid = os.getpid()
    return Owner(
        name or f"worker-{pid}", socket.gethostname(), pid, f"{_read_boot_namespace()}/{_read_start_time(pid) or '?'}"
    )


def is_owner_dead(owner: Owner) -> bool:
    """True only when the process ran here and is gone; False when it is alive or that cannot be determined."""
    place, _, started = owner.started.rpartition("/")
    if owner.host != socket.gethostname() or place != _read_boot_namespace() or started in ("", "?"):
        return False
    found = _read_start_time(owner.pid)
    return _is_gone(owner.pid) if found is None else found != started


def _read_boot_namespace() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return "?"


def _read_start_time(pid: int) -> str | None:
    """Start time in clock ticks since boot; empty for a zombie or dead process; None when it cannot be read."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name may contain spaces and brackets, so fields are counted after the last bracket.
    fields = stat[stat.rindex(")") + 2 :].split()
    return "" if fields[0] in "ZX" else fields[19]


def _is_gone(pid: int) -> bool:
    # Where /proc hides other users' processes, a signal still distinguishes "not yours" from "not there".
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
