"""A process that dies while it puts someone on the list of erased subjects: the same command does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import errata
from errata.evidence.keys import generate_key_pair

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: single-user
erasure: {table: lake.privacy.erased, key: erasure}
"""


def test_killed_before_someone_is_listed_the_same_command_lists_them_once(tmp_path: Path):
    """The audit has that it was asked; nobody is on the list; repeated twice, they are on it once."""
    (tmp_path / "errata.yaml").write_text(PROJECT)
    (tmp_path / "catalog.db").touch()
    generate_key_pair(tmp_path / "erasure")
    command = [sys.executable, "-m", "errata", "-C", str(tmp_path), "erase", "add", "--from", "-", "--reason", "114"]
    failing = {**os.environ, "ERRATA_FAILPOINTS": "erase.before_add=kill"}
    killed = subprocess.run(command, env=failing, input=b"A-17\n", capture_output=True, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with errata.open(str(tmp_path)) as client:
        assert [entry.action for entry in client.audit_log()] == ["erasure.asked"]
        assert [client.erase(["A-17"], reason="114").added for _ in range(2)] == [1, 0]
        assert "A-17" not in str(client.audit_log())
