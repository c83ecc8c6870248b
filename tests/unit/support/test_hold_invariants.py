"""The checker of holds notices what it is there to notice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from errata.ledger import Ledger
from errata.model.consumer.hold import READERS
from errata.model.run import RunState
from support.hold_invariants import hold_violations
from unit.ledger.steps import BO, DAYS, hold, intend, run_in, settle


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger with a publication that held readers and a consumer, without triggers."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        run_in(ledger, RunState.VALIDATED)
        for consumer in ("dashboard", READERS):
            opened = hold(ledger, consumer=consumer, days=DAYS, before_seconds=0, acknowledge=True)
            ledger.holds.acknowledge(opened.hold_id, BO)
        settle(ledger, intend(ledger, "bf-1", DAYS, consumers=["dashboard", READERS]))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.row_factory = sqlite3.Row
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        assert hold_violations(db) == []
        yield db


@pytest.mark.parametrize(
    "edit, told",
    [
        ("UPDATE hold SET state = 'open' WHERE consumer = 'dashboard'", "the audit says ('ended'"),
        ("DELETE FROM audit WHERE action = 'hold.acknowledged'", "intended while readers are not held"),
        ("DELETE FROM audit WHERE action = 'hold.ended'", "outlives"),
    ],
)  # fmt: skip
def test_what_was_not_held_or_not_ended_is_noticed(db: sqlite3.Connection, edit: str, told: str) -> None:
    """Whoever changed it."""
    db.execute(edit)
    assert any(told in problem for problem in hold_violations(db)), hold_violations(db)
