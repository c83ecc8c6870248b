"""A process that dies while it writes evidence leaves the file of before, whole, and the next one replaces it."""

from __future__ import annotations

import signal
from pathlib import Path

from errata.evidence.verifier import verify
from errata.ledger import Ledger
from support.attached import start_without_jvm
from unit.evidence.house import House

PROJECT = """\
project: finsight
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: {ana: {roles: [requester, operator]}, bo: {roles: [approver, publisher]}}
evidence: {key: errata.key}
"""


def export(root: Path, run: str, **environment: str) -> int:
    """``errata evidence export`` in a process of its own; its exit code."""
    words = ("evidence", "export", run, "-o", "run.errata", "--without-diff", "--as", "bo")
    return start_without_jvm("-C", str(root), *words, **environment).wait(timeout=120)


def test_killed_before_evidence_is_in_place_the_old_file_is_whole(tmp_path: Path):
    """The bundle of before still verifies, and the same command again replaces it."""
    empty, root = tmp_path / "empty.db", tmp_path / "house"
    Ledger.open(f"sqlite:///{empty}").close()
    house = House.build(root, empty)
    (root / "errata.yaml").write_text(PROJECT)
    run = house.published()
    assert export(root, run) == 0
    before = (root / "run.errata").read_bytes()
    house.roll_back(run)
    assert export(root, run, ERRATA_FAILPOINTS="evidence.before_write=kill") == -signal.SIGKILL
    assert (root / "run.errata").read_bytes() == before
    assert verify(before, [house.public]).run["state"] == "published"
    assert export(root, run) == 0
    found = verify((root / "run.errata").read_bytes(), [house.public])
    assert (found.problems, found.run["state"]) == ([], "rolled_back")
