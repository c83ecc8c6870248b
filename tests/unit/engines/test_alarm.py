"""The alarm of broken glass: JSON on stdin, a time limit, and failures that quote nothing."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from errata.engines.hooks.alarm import CommandAlarm
from errata.errors import EngineError
from errata.model.product import Alarm


def bell(root: Path, code: str, timeout: int = 10) -> CommandAlarm:
    return CommandAlarm(root, Alarm((sys.executable, "-c", code, "s3cret"), timeout))


def test_the_command_reads_what_happened_in_the_project_s_directory(tmp_path: Path):
    """One JSON document on stdin."""
    bell(tmp_path, "import sys; open('heard.json', 'w').write(sys.stdin.read())").send_alarm({"why": "Börse öffnet"})
    assert json.loads((tmp_path / "heard.json").read_text("utf-8")) == {"why": "Börse öffnet"}


def test_a_command_that_fails_is_told_without_what_it_said(tmp_path: Path):
    """Its output and its arguments may hold a secret."""
    with pytest.raises(EngineError) as failed:
        bell(tmp_path, "import sys; sys.exit(sys.argv[1])").send_alarm({})
    assert failed.value.message == "the alarm command ended with 1"


def test_a_command_that_is_not_there_is_told(tmp_path: Path):
    """By the kind of error alone."""
    with pytest.raises(EngineError, match=r"^the alarm command cannot be started: FileNotFoundError$"):
        CommandAlarm(tmp_path, Alarm(("./no-such-s3cret",))).send_alarm({})


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path):
    """An emergency does not wait for its alarm."""
    code = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "open('pid', 'w').write(str(p.pid)); time.sleep(60)"
    )
    started = time.monotonic()
    with pytest.raises(EngineError, match="did not end within 1 s"):
        bell(tmp_path, code, timeout=1).send_alarm({})
    assert time.monotonic() - started < 30
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    until = time.monotonic() + 10
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until, "what the command started lives on"
        time.sleep(0.02)


def test_a_command_that_does_not_read_is_no_failure(tmp_path: Path):
    """It may know all it needs."""
    bell(tmp_path, "pass").send_alarm({"why": "x" * 1_000_000})


def test_a_project_without_an_alarm_has_none(tmp_path: Path):
    """And ringing it does nothing."""
    none = CommandAlarm(tmp_path, None)
    assert not none.is_there
    none.send_alarm({})
