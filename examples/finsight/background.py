"""A program that writes while a demo runs: a process of its own, which ends with the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from examples.finsight.workshop import ROOT, DemoError, environment, python


class Background:
    """A process with a log and a journal; it ends with the block, also after an error."""

    def __init__(self, title: str, command: list[str], log: Path, journal: Path) -> None:
        self.title = title
        self.journal = journal
        self.log = log
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("wb") as out:
            # In a separate session: Ctrl-C reaches only the demo, which then ends the process cleanly.
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=environment(), stdout=out, stderr=out, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def read_journal(self) -> list[str]:
        """The whole lines of the journal so far."""
        if self._process is not None and self._process.poll() is not None:
            raise DemoError(f"{self.title} ended unexpectedly; see {self.log}")
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def stop(self) -> None:
        """Let it finish the current batch, then end it and its JVM."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end_group(process)


class LivePipeline(Background):
    """The daily pipeline of FinSight: history first, then live."""

    def __init__(self, project: Path) -> None:
        journal = project / "logs" / "live-journal.jsonl"
        command = python("daily", str(project), "--journal", str(journal), "--history")
        super().__init__("the live pipeline", command, project / "logs" / "live.log", journal)

    @property
    def commits(self) -> int:
        """How many commits the journal has so far."""
        return len(self.read_journal())

    def wait_for(self, commits: int, *, seconds: float = 300) -> int:
        """Wait until the journal has that many commits."""
        deadline = time.monotonic() + seconds
        while (found := self.commits) < commits:
            if time.monotonic() > deadline:
                raise DemoError(
                    f"the live pipeline made {found} of {commits} commits in {seconds:.0f} s; see {self.log}"
                )
            time.sleep(0.1)
        return found


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process's session: its JVM ends a moment later, or is killed."""
    for _ in range(50):
        if process.poll() is not None and not _group_exists(process.pid):
            return
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
