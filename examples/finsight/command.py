"""Errata as a user runs it: the command, its real output, its exit code."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.finsight.workshop import DemoError, environment

ERRATA = Path(sys.executable).with_name("errata")
LIMIT = 300.0


@dataclass(slots=True)
class Errata:
    """The command line of one project directory; records how long each command took."""

    project: Path
    seconds: list[tuple[str, float]] = field(default_factory=list)

    def show(self, person: str, *arguments: str, exits: Collection[int] = (0,)) -> str:
        """Print the command as typed, then its output as it comes; an unexpected exit code ends the demo."""
        print(
            f"\n\033[1m$ {_typed(person, arguments)}\033[0m"
            if sys.stdout.isatty()
            else f"\n$ {_typed(person, arguments)}"
        )
        started = time.monotonic()
        lines: list[str] = []
        with self._start(person, arguments, stderr=subprocess.STDOUT) as process:
            watchdog = threading.Timer(LIMIT, process.kill)
            watchdog.start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    lines.append(line)
                    print(f"  {line}", end="", flush=True)
            finally:
                watchdog.cancel()
        self.seconds.append((_typed(person, arguments), time.monotonic() - started))
        self._expect(person, arguments, process.returncode, exits, "".join(lines))
        return "".join(lines)

    def ask(self, person: str, *arguments: str, exits: Collection[int] = (0,)) -> Any:
        """The JSON output of the same command."""
        started = time.monotonic()
        with self._start(person, ("--json", *arguments), stderr=subprocess.PIPE) as process:
            out, err = process.communicate(timeout=LIMIT)
        self.seconds.append((f"{_typed(person, arguments)} (json)", time.monotonic() - started))
        self._expect(person, arguments, process.returncode, exits, out + err)
        return json.loads(out)

    @contextmanager
    def _start(self, person: str, arguments: tuple[str, ...], *, stderr: int) -> Iterator[subprocess.Popen[str]]:
        command = [str(ERRATA), "--as", person, *arguments]
        with subprocess.Popen(
            command, cwd=self.project, env=environment(), text=True, stdout=subprocess.PIPE, stderr=stderr
        ) as process:
            try:
                yield process
            except BaseException:
                _end(process)
                raise

    @staticmethod
    def _expect(person: str, arguments: tuple[str, ...], code: int, exits: Collection[int], output: str) -> None:
        if code not in exits:
            wanted = " or ".join(map(str, exits))
            raise DemoError(f"{_typed(person, arguments)}\nexpected exit code {wanted}, found {code}\n{output}")


def _end(process: subprocess.Popen[str]) -> None:
    """Wait for a command that was interrupted with the demo; terminate it, then kill it, if it does not end."""
    for force in (process.terminate, process.kill):
        try:
            process.wait(timeout=8)
        except subprocess.TimeoutExpired:
            force()
    process.wait()


def _typed(person: str, arguments: tuple[str, ...]) -> str:
    return f"errata --as {person} {shlex.join(arguments)}"
