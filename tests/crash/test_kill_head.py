"""A process that dies while it exports a head of the audit leaves nothing half written, and the next one does it."""

from __future__ import annotations

import signal
from pathlib import Path

from errata.evidence.heads import read_heads
from errata.evidence.keys import generate_key_pair
from errata.ledger import Ledger
from errata.model.audit import Actor
from support.attached import start_without_jvm

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
    command = ("-C", str(tmp_path), "audit", "head")
    killed = start_without_jvm(*command, ERRATA_FAILPOINTS="audit.before_head=kill")
    assert killed.wait(timeout=60) == -signal.SIGKILL
    assert list((tmp_path / "worm").iterdir()) == []
    assert start_without_jvm(*command).wait(timeout=60) == 0
    (kept,) = read_heads(tmp_path / "worm", None)
    assert (kept.head.seq, kept.head.hash) == (1, entry.hash)
