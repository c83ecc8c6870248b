"""`make demo` from beginning to end, with the real commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.finsight import demo, warehouse

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


def start(directory: Path, servers: Path) -> subprocess.Popen[str]:
    """The demo, whose servers have their files below ``servers``."""
    command = [sys.executable, demo.__file__, "--directory", str(directory)]
    environment = os.environ | {"TMPDIR": str(servers)}
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)


@pytest.fixture
def servers() -> Iterator[Path]:
    """A directory that every user may enter: PostgreSQL runs as another one if the tests are root."""
    with tempfile.TemporaryDirectory(prefix="finsight-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
class TestDemo:
    def test_every_claim_holds_and_nothing_keeps_running(self, tmp_path: Path, servers: Path):
        """The incident is corrected in lake and warehouse, each claim has a second witness, and no server is left."""
        with start(tmp_path / "finsight", servers) as process:
            output, _ = process.communicate()
        assert process.returncode == 0, output
        assert "FAILS" not in output
        has_warehouse = "There is no copy in a warehouse" not in output
        assert has_warehouse == any(place() for place in (warehouse.find_postgres_programs, warehouse.EMULATOR.exists))
        assert output.count("✓ holds") == (13 if has_warehouse else 9)
        assert left_behind(str(tmp_path)) == []
        assert left_behind(str(servers)) == []
        assert list(servers.iterdir()) == []

    def test_an_interrupted_demo_leaves_no_process(self, tmp_path: Path, servers: Path):
        """Ctrl-C in the middle of a command ends the live pipeline and the warehouse too."""
        with start(tmp_path / "finsight", servers) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("$ errata"):
                    break
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate()
        assert process.returncode == 130, rest
        assert left_behind(str(tmp_path)) == []
        assert left_behind(str(servers)) == []
