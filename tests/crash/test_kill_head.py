"""A process that dies while it exports a head of the audit leaves nothing half written, and the next one does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from errata.evidence.heads import read_heads
from errata.evidence.keys import generate_key_pair
from errata.ledger import Ledger
from errata.model.audit import Actor

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: single-user
evidence: {key: signing, heads: worm}
"""


def test_killed_before_a_head_is_kept_the_next_export_keeps_it(tmp_path: Path):
    """Nothing is in the directory, the ledger is as it was, and the same head comes out of the second try."""
    (tmp_path / "errata.yaml").write_text(PROJECT)
    (tmp_path / "worm").mkdir()
    generate_key_pair(tmp_path / "signing")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        entry = ledger.audit.note(None, Actor("ana", "ana", "h"), "note")
    command = [sys.executable, "-m", "errata", "-C", str(tmp_path), "audit", "head"]
    failing = {**os.environ, "ERRATA_FAILPOINTS": "audit.before_head=kill"}
    killed = subprocess.run(command, env=failing, capture_output=True, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert list((tmp_path / "worm").iterdir()) == []
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    (kept,) = read_heads(tmp_path / "worm", None)
    assert (kept.head.seq, kept.head.hash) == (1, entry.hash)
