"""Whole commands as a user starts them: seconds, CPU and memory of a process and of all that it started."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SET_CHILD_SUBREAPER = 36

__all__ = ["Done", "adopt_orphans", "errata", "family", "pinned", "run"]


@dataclass(frozen=True, slots=True)
class Done:
    """Output, time and memory of a command; ``megabytes`` is the peak of its largest process."""

    stdout: str
    wall: float
    cpu: float
    megabytes: float

    @property
    def answer(self) -> Any:
        """Its standard output, read as JSON."""
        return json.loads(self.stdout)


def run(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run to the end; a failure ends the benchmark and shows the command's output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        adopt_orphans()
        before, started = _children(), time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=cwd, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - started
        cpu, most = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
        for orphan in _children() - before:
            left = os.wait4(orphan, 0)[2]
            cpu, most = cpu + left.ru_utime + left.ru_stime, max(most, left.ru_maxrss)
        out.seek(0), err.seek(0)
        said = out.read().decode()
        if process.returncode:
            sys.exit(
                f"{' '.join(command)} ended with {process.returncode}\n{said[-2000:]}\n{err.read().decode()[-4000:]}"
            )
    return Done(said, wall, cpu, most / 1024)


def adopt_orphans() -> None:
    """A JVM outlives the Python that started it by a moment; as our child its CPU is counted."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> set[int]:
    return {int(p) for task in Path("/proc/self/task").glob("*/children") for p in task.read_text().split()}


def errata(root: Path, *words: str, core: int | None = None) -> Done:
    """One ``errata`` command on a project, answering JSON."""
    return run([*pinned(core), sys.executable, "-m", "errata", "-C", str(root), "--json", "-y", *words])


def pinned(core: int | None) -> list[str]:
    """The words that pin a command to one core."""
    return [] if core is None else ["taskset", "-c", str(core)]


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    pids = [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            pids += [int(child) for child in task.read_text().split()]
    return pids
