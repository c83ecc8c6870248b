"""`make demo` from beginning to end, with the real commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from examples.finsight import demo

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1200)]


def processes_naming(text: str) -> list[str]:
    """The command lines of running processes that contain a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        if text in command:
            found.append(command)
    return found


def left_behind(text: str) -> list[str]:
    """Processes that name it and are still there after ten seconds: a JVM ends a moment after its Python."""
    deadline = time.monotonic() + 10
    while (found := processes_naming(text)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def start(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, demo.__file__, "--directory", str(directory)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
class TestDemo:
    def test_every_claim_holds_and_nothing_keeps_running(self, tmp_path: Path):
        """The incident is corrected, and each claim has a second witness."""
        with start(tmp_path / "finsight") as process:
            output, _ = process.communicate()
        assert process.returncode == 0, output
        assert "FAILS" not in output
        assert output.count("✓ holds") == 9
        assert left_behind(str(tmp_path)) == []

    def test_an_interrupted_demo_leaves_no_process(self, tmp_path: Path):
        """Ctrl-C in the middle of a command ends the live pipeline too."""
        with start(tmp_path / "finsight") as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("$ errata"):
                    break
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate()
        assert process.returncode == 130, rest
        assert left_behind(str(tmp_path)) == []
