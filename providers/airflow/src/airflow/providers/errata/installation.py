"""Where Errata is installed and which project a task works on; starts its program and reads the answer. Does I/O."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any

from airflow.providers.errata.outcome import Outcome, read_outcome
from airflow.providers.errata.process_end import stop_process

KEPT_BACK = ("AIRFLOW_", "_AIRFLOW_", "PYTHON", "VIRTUAL_ENV")
"""Beginnings of names that Errata's process does not get: Airflow's secrets, and the environment Airflow runs in."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An Errata project, the program that works on it, and who it acts as."""

    project: str
    program: str = "errata"
    account: str | None = None
    reports: str | None = None  # directory for reports of rejected candidates
    reports_url: str | None = None  # where a web server shows that directory
    spark_url: str | None = None  # Spark's history server

    def build_call(self, arguments: Sequence[str], account: str | None = None) -> list[str]:
        """The whole argument list of a command; shared options come first, where no program of a command reads them."""
        person = account or self.account
        return [self.program, "-C", self.project, "--json", *(["--as", person] if person else []), *arguments]

    def to_data(self) -> dict[str, Any]:
        """As plain values, for a trigger; contains no secret."""
        return asdict(self)


class Command:
    """One call of Errata; can be stopped from a signal handler while it runs."""

    def __init__(self, installation: Installation, log: Callable[[str], None]) -> None:
        self._installation = installation
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, arguments: Sequence[str], account: str | None = None) -> Outcome:
        """Run to the end; what it prints to stderr goes to the log line by line."""
        call = self._installation.build_call(arguments, account)
        # a file, because a program that outlives a killed command would keep a pipe open
        with tempfile.TemporaryFile() as printed:
            self._process = start_process(call, stdout=printed)
            reader = Thread(target=self._copy_lines, args=(self._process.stderr,), daemon=True)
            reader.start()
            exit_code = self._process.wait()
            reader.join(timeout=5)
            printed.seek(0)
            return read_outcome(exit_code, printed.read().decode("utf-8", "replace"))

    def stop(self, patience: float) -> None:
        """Let the command finish what it is about to record, then end it."""
        if self._process is not None:
            stop_process(self._process.pid, patience)

    def _copy_lines(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._log(line.decode("utf-8", "replace").rstrip())


async def ask(installation: Installation, arguments: Sequence[str], at_most: float | None = None) -> Outcome:
    """Run a short command from a trigger, without blocking the others; it is killed after ``at_most`` seconds."""
    process = await asyncio.create_subprocess_exec(
        *installation.build_call(arguments),
        env=choose_environment(os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    printed = b""
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), at_most)
    except TimeoutError:
        pass  # its exit code says that it was killed
    finally:
        if process.returncode is None:
            process.kill()
    return read_outcome(await process.wait(), printed.decode("utf-8", "replace"))


def start_process(call: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that it gets signals from its task only."""
    given = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(call, env=choose_environment(os.environ), start_new_session=True, **given)


def choose_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for Errata: that of the worker without Airflow's settings and Python's paths."""
    return {name: value for name, value in environ.items() if not name.startswith(KEPT_BACK)}


def name_report(installation: Installation, run_id: str) -> Path | None:
    """File of the report of a run; None if the connection names no directory."""
    return Path(installation.reports) / f"{run_id}.html" if installation.reports else None
