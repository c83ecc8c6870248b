"""Workers as driver processes of this machine, whose executors are on a standalone cluster.

A driver holds a lock on a file for as long as it runs. The lock decides between two processes that would start the
same driver, and says to others whether it runs. The token in its environment finds its processes. Its exit code is in a
file, so that it is known to those who did not start it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from errata.engines.clusters.driver_processes import TOKEN, end_processes, list_processes
from errata.errors import EngineError, MissingDriver, Refused
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder

_SHELL = ("/bin/sh", "-c", 'code="$0"; "$@" & wait $!; echo $? > "$code"')
_LAST_LINES = 4000
_MOMENT_SECONDS = 0.05
_children: list[subprocess.Popen[bytes]] = []
"""Drivers that this process started. They outlive it; it only has to take note of their ends."""
_NOISE = re.compile(r"^(\s|$|WARNING: |Using |Setting |To adjust |\d\d/\d\d/\d\d )")


@dataclass(frozen=True, slots=True)
class Standalone:
    """Drivers of one project; ``directory`` keeps their logs, locks and exit codes."""

    directory: Path
    spark: str | None = None  # version of the installed Spark, which drivers run

    def locate(self) -> str:
        """See the port."""
        return f"{socket.gethostname()}:{self.directory.resolve()}"

    def check(self, release: str | None) -> None:
        """See the port."""
        if not f"{self.spark}.".startswith(f"{release}."):
            raise Refused(
                f"--start standalone was refused; the plan seals Spark {release}, this machine has "
                f"{self.spark or 'none'}",
                state="nothing was started; main is unchanged",
                hint="start from an environment with that version, or declare this one and plan again",
            )

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port."""
        while not self._was_started(order.token):
            with self._lock(order.token, fcntl.LOCK_EX) as lock:
                if lock is None:  # somebody else is about to start it, or only looks whether it runs
                    time.sleep(_MOMENT_SECONDS)
                elif not self._was_started(order.token):
                    self._launch(order, lock)
        return self.read(order.token)

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        return self.read(order.token) if self._was_started(order.token) else None

    def read(self, job_id: str) -> JobStatus:
        """See the port. The id of a driver is its token."""
        log = self._log(job_id)
        for child in _children:
            child.poll()
        if self._is_running(job_id):
            return JobStatus(job_id, JobState.RUNNING, log=str(log))
        if not log.exists():
            return JobStatus(job_id, JobState.STOPPED, f"{self.directory} does not know it any more")
        code = self._code(job_id)
        if code is None:
            return JobStatus(job_id, JobState.STOPPED, "it was stopped or killed", str(log))
        if code == 0:
            return JobStatus(job_id, JobState.SUCCEEDED, log=str(log))
        said = _find_last_line(log)
        told = f"its driver ended with {code}" + (f": {said}" if said else "")
        return JobStatus(job_id, JobState.FAILED, told, str(log))

    def stop(self, job_id: str) -> None:
        """See the port."""
        end_processes(job_id)

    def _was_started(self, token: str) -> bool:
        """Whether there was a start: its log is created before the process, and is kept."""
        return self._log(token).exists() or bool(list_processes(token))

    def _is_running(self, token: str) -> bool:
        """Whether somebody has the lock, or a process of it is left although the one with the lock was killed."""
        with self._lock(token, fcntl.LOCK_SH) as lock:
            return lock is None or bool(list_processes(token))

    def _launch(self, order: WorkerOrder, lock: int) -> None:
        argv = [_find_program(order.request["argv"][0]), *order.request["argv"][1:]]
        with self._log(order.token).open("xb") as log:
            try:
                process = subprocess.Popen(
                    [*_SHELL, str(self._file(order.token, "code")), *argv],
                    env=os.environ | {TOKEN: order.token},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(lock,),
                    start_new_session=True,
                )
            except OSError as error:
                self._log(order.token).unlink()
                raise EngineError(f"the driver of {order.name} cannot be started: {error.strerror}") from None
        _children.append(process)

    @contextmanager
    def _lock(self, token: str, kind: int) -> Iterator[int | None]:
        """The lock of a driver, or None while somebody has it; a process that is started meanwhile keeps it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._file(token, "lock"), os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(lock, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield lock
        finally:
            os.close(lock)

    def _code(self, token: str) -> int | None:
        try:
            return int(self._file(token, "code").read_text())
        except (OSError, ValueError):
            return None

    def _log(self, token: str) -> Path:
        return self._file(token, "log")

    def _file(self, token: str, ending: str) -> Path:
        return self.directory / f"worker-{token}.{ending}"


def _find_program(name: str) -> str:
    """The program that came with this Python, or one in PATH."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise MissingDriver(
            f"{name} was found neither beside {sys.executable} nor in PATH",
            state="nothing was started",
            hint="pip install 'errata[spark]'",
        )
    return found


def _find_last_line(log: Path) -> str:
    """The last line that says something, which is what the driver ended with."""
    lines: Sequence[str] = log.read_bytes()[-_LAST_LINES:].decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if not _NOISE.match(line)), "")[:300]


_conforms: type[Cluster] = Standalone
