"""``kill -9`` between owed and paid: nothing is lost, and a receiver that keeps the keys sees each message once."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from support.attached import start_program
from support.outbox_invariants import outbox_violations
from support.payer import CAUSES, RECEIVED, pay_all

KEYS = {f"{cause}/published/{effect}/bi" for cause in CAUSES for effect in ("tell", "watermark")}


def start(place: Path, failpoints: str = "") -> int:
    """Run one payer to its end."""
    process = start_program(pay_all, place, ERRATA_FAILPOINTS=failpoints)
    _, said = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode or 0


def check(place: Path, kills: int) -> None:
    """Everything is paid, in order, and nothing is received more often than a process died."""
    with closing(sqlite3.connect(place / "ledger.db")) as db:
        db.row_factory = sqlite3.Row
        assert outbox_violations(db) == []
        assert {row["key"]: row["state"] for row in db.execute("SELECT * FROM outbox_item")} == dict.fromkeys(
            KEYS, "paid"
        )
    received = [line.split(" ") for line in (place / RECEIVED).read_text().splitlines()]
    assert {key for _, key in received} == KEYS
    repeated = Counter(key for _, key in received)
    assert sum(repeated.values()) - len(KEYS) <= kills
    for effect in ("tell", "watermark"):
        numbers = [int(seq) for seq, key in received if f"/{effect}/" in key]
        assert numbers == sorted(numbers)


POINTS = ("deliver.after_claim", "deliver.before_pay", "deliver.after_pay", "deliver.after_record")


@pytest.mark.parametrize("point", POINTS)
def test_a_payer_that_is_killed_is_followed_by_another(tmp_path: Path, point: str) -> None:
    """At once: the ledger sees that its process is gone, and does not wait for the lease."""
    assert start(tmp_path, f"{point}=kill@2") == -signal.SIGKILL
    assert start(tmp_path) == 0
    check(tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_payer_may_be_killed_at_every_commit_of_the_ledger(tmp_path: Path, side: str) -> None:
    """One process after another dies, each a commit later than the one before it."""
    kills = 0
    while start(tmp_path, f"ledger.{side}_commit=kill@{kills + 1}"):
        kills += 1
        assert kills < 60
    check(tmp_path, kills)
    assert kills > len(KEYS)
