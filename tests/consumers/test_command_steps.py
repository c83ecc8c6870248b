"""Command steps: what a program gets, and how it is ended."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from errata.engines.consumers.systems import DeclaredSystems
from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import Refresh, Verify

KEY = "bf-1-p1/published/recover/exec-dashboard"
NOTE = """
import json, os, sys
print(json.dumps([sys.argv[1:], json.load(sys.stdin), os.environ["ERRATA_KEY"]]), file=open("told", "a"))
"""


def _told(root: Path) -> list[list[object]]:
    return [json.loads(line) for line in (root / "told").read_text().splitlines()]


def test_a_command_gets_partitions_and_key(tmp_path: Path) -> None:
    """Once for all of them on stdin, or once for each as one argument, whatever the value holds."""
    systems = DeclaredSystems(tmp_path, {})
    names = ["2026-01-03", "a b; rm -rf $HOME"]
    systems.refresh(Refresh(command=(sys.executable, "-c", NOTE, "all")), names, KEY)
    systems.refresh(Refresh(command=(sys.executable, "-c", NOTE, "--", "{partition}")), names, KEY)
    assert _told(tmp_path) == [
        [["all"], names, KEY],
        [["--", names[0]], [names[0]], f"{KEY}/{names[0]}"],
        [["--", names[1]], [names[1]], f"{KEY}/{quote(names[1])}"],
    ]


def test_a_value_that_looks_like_an_option_is_refused(tmp_path: Path) -> None:
    """Unless the command has -- before it."""
    with pytest.raises(UsageError, match="looks like an option"):
        DeclaredSystems(tmp_path, {}).refresh(Refresh(command=("true", "{partition}")), ["--force"], KEY)


def test_the_last_word_of_the_output_is_the_value(tmp_path: Path) -> None:
    """No output is no value."""
    systems = DeclaredSystems(tmp_path, {})
    shown = Verify("sum(x)", command=("sh", "-c", 'echo total for "$0" is 42.50', "{partition}"))
    assert systems.read_shown(shown, ["2026-01-03"], KEY) == {"2026-01-03": "42.50"}
    assert systems.read_shown(Verify("sum(x)", command=("true",)), ["1"], KEY) == {"1": None}


def test_failures_name_neither_command_nor_output(tmp_path: Path) -> None:
    """A program that is missing, fails or does not end says only that."""
    systems = DeclaredSystems(tmp_path, {})
    for command, told in (
        (("/no/such/s3cret",), "cannot be started: FileNotFoundError"),
        (("sh", "-c", "echo s3cret; exit 3"), "the command ended with 3"),
    ):
        with pytest.raises(EngineError, match=told) as caught:
            systems.refresh(Refresh(command=command), ["1"], KEY)
        assert "s3cret" not in str(caught.value)


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """The time limit holds for everything that it started."""
    command = ("sh", "-c", "sleep 60 & echo $! > child; wait")
    with pytest.raises(EngineError, match="did not end within 1 s"):
        DeclaredSystems(tmp_path, {}).refresh(Refresh(command=command, timeout_seconds=1), ["1"], KEY)
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 5
    while _is_running(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
