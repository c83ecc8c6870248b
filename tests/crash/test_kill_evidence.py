"""A process that dies while it writes evidence leaves the file of before, whole, and the next one replaces it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from errata.evidence.verifier import verify
from errata.ledger import Ledger
from unit.evidence.house import House

PROJECT = """\
project: finsight
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: {ana: {roles: [requester, operator]}, bo: {roles: [approver, publisher]}}
evidence: {key: errata.key}
"""


def test_killed_before_evidence_is_in_place_the_old_file_is_whole(tmp_path: Path):
    """The bundle of before still verifies, and the same command again replaces it."""
    empty, root = tmp_path / "empty.db", tmp_path / "house"
    Ledger.open(f"sqlite:///{empty}").close()
    house = House.build(root, empty)
    (root / "errata.yaml").write_text(PROJECT)
    run = house.published()
    command = [
        sys.executable, "-m", "errata", "-C", str(root), "evidence", "export", run, "-o", "run.errata",
        "--without-diff", "--as", "bo",
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    before = (root / "run.errata").read_bytes()
    house.roll_back(run)
    failing = {**os.environ, "ERRATA_FAILPOINTS": "evidence.before_write=kill"}
    killed = subprocess.run(command, env=failing, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert (root / "run.errata").read_bytes() == before
    assert verify(before, [house.public]).run["state"] == "published"
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    found = verify((root / "run.errata").read_bytes(), [house.public])
    assert (found.problems, found.run["state"]) == ([], "rolled_back")
