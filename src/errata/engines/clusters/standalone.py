"""Workers as driver processes of this machine, whose executors are on a standalone cluster.

A driver holds a lock on a file for as long as it runs. The lock decides between two processes that would start the
same driver, and the token in its environment finds it again. Its exit code is in a file, so that it is known to those
who did not start it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from errata.engines.clusters.driver_processes import TOKEN, end_processes, list_processes
from errata.errors import EngineError, MissingDriver, Refused
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder

_SHELL = ("/bin/sh", "-c", 'code="$0"; "$@" & wait $!; echo $? > "$code"')
_LAST_LINES = 4000
_children: list[subprocess.Popen[bytes]] = []
"""Drivers that this process started. They outlive it; it only has to take note of their ends."""
_NOISE = re.compile(r"^(\s|$|WARNING: |Using |Setting |To adjust |\d\d/\d\d/\d\d )")


@dataclass(frozen=True, slots=True)
class Standalone:
    """Drivers of one project; ``directory`` keeps their logs, locks and exit codes."""

    directory: Path

    def check(self, release: str | None) -> None:
        """See the port. The driver's Spark is the one that is installed here."""
        installed = version("pyspark")
        if not f"{installed}.".startswith(f"{release}."):
            raise Refused(
                f"--start standalone was refused; the plan seals Spark {release}, this machine has {installed}",
                state="nothing was started; main is unchanged",
                hint="start from an environment with that version, or declare this one and plan again",
            )

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._lock(order.token) as lock:
            # a log without a process: it was started and has ended
            if lock is not None and not self._log(order.token).exists():
                self._launch(order, lock)
        return self.read(_name_job(order.token))

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        return self.read(_name_job(order.token)) if self._log(order.token).exists() else None

    def read(self, job_id: str) -> JobStatus:
        """See the port."""
        token, log = _require_own(job_id), str(self._log(_require_own(job_id)))
        if not self._log(token).exists():
            return JobStatus(job_id, JobState.STOPPED, "it was never started")
        for child in _children:
            child.poll()
        if list_processes(token):
            return JobStatus(job_id, JobState.RUNNING, log=log)
        code = self._code(token)
        if code is None:
            return JobStatus(job_id, JobState.STOPPED, "it was killed", log)
        if code == 0:
            return JobStatus(job_id, JobState.SUCCEEDED, log=log)
        said = _find_last_line(self._log(token))
        return JobStatus(job_id, JobState.FAILED, f"its driver ended with {code}" + (f": {said}" if said else ""), log)

    def stop(self, job_id: str) -> None:
        """See the port."""
        end_processes(_require_own(job_id))

    def _launch(self, order: WorkerOrder, lock: int) -> None:
        argv = [_find_program(order.request["argv"][0]), *order.request["argv"][1:]]
        # the output is created first, and the process only then: it is what says that there was a start
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
    def _lock(self, token: str) -> Iterator[int | None]:
        """The lock of a driver, or None while somebody has it; a process that is started meanwhile keeps it."""
        lock = os.open(self._file(token, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def _name_job(token: str) -> str:
    return f"{token}@{socket.gethostname()}"


def _require_own(job_id: str) -> str:
    """The token of a driver of this machine; drivers of others cannot be asked from here."""
    token, _, host = job_id.partition("@")
    if host != socket.gethostname():
        raise EngineError(
            f"driver {token} was started on {host}; it can be followed and stopped only there",
            hint=f"repeat the command on {host}",
        )
    return token


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
