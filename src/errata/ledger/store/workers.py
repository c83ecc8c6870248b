"""Which process holds an attempt, and whether it is certainly gone.

A process number alone says little: it is reused, and containers count their own. ``started`` therefore names the boot,
the process name space and the start time of the process. Only when all of that is this machine's may a process be
called dead; anything else is left to the lease.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from errata.ledger.records import Owner

_PROC = Path("/proc")


def current_owner(name: str | None = None) -> Owner:
    """The running process as an owner."""
    pid = os.getpid()
    return Owner(
        name or f"worker-{pid}", socket.gethostname(), pid, f"{_read_boot_namespace()}/{_read_start_time(pid) or '?'}"
    )


def is_owner_dead(owner: Owner) -> bool:
    """True only when the process ran here and is gone; False when it lives or nobody can tell from here."""
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
    """The start time in clock ticks since boot; empty when only remains are left; None when it cannot be read."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and brackets; fields are counted after its last bracket.
    fields = stat[stat.rindex(")") + 2 :].split()
    return "" if fields[0] in "ZX" else fields[19]


def _is_gone(pid: int) -> bool:
    # Where /proc hides other users' processes, a signal still tells "not yours" from "not there".
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
