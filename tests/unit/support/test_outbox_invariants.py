"""The checker of the outbox notices what it is there to notice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from errata.ledger import Ledger
from errata.model.consumer.outbox import Effect, Owed
from errata.model.run import RunState
from support.outbox_invariants import outbox_violations
from unit.ledger.steps import ALIVE, ANA, DAYS, intend, run_in, settle

WATERMARK = f"ml/watermark/{'lake.fin.daily_revenue'}"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger in which two of three items are paid, one publication did not land and one is open, without triggers."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        run_in(ledger, RunState.VALIDATED)
        owes = [Owed(Effect.WATERMARK, "published", "ml", tuple(DAYS[:1]))]
        settle(ledger, intend(ledger, "bf-1", DAYS[:1], owes=owes), "abandoned")
        settle(ledger, intend(ledger, "bf-1", DAYS[:1], owes=owes))
        for cause in ("c2", "c3"):
            ledger.outbox.owe("bf-1", cause, owes, ANA)
        for _ in range(2):
            (queue,) = ledger.outbox.queues()
            item = ledger.outbox.claim(queue, ALIVE, lease_seconds=60)
            assert item is not None
            ledger.outbox.record_paid(item, {}, ANA)
        intend(ledger, "bf-1", DAYS[1:2], owes=owes)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.row_factory = sqlite3.Row
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        assert outbox_violations(db) == []
        yield db


@pytest.mark.parametrize(
    "edit, told",
    [
        ("UPDATE outbox_item SET state = 'conditional' WHERE item_id = 2", "its publication is committed"),
        ("UPDATE outbox_item SET state = 'owed' WHERE item_id = 1", "its publication is abandoned"),
        ("UPDATE outbox_item SET state = 'owed', seq = 9 WHERE item_id = 5", "its publication is intended"),
        ("DELETE FROM outbox_item WHERE item_id = 3", "item 3 is None"),
        ("UPDATE outbox_item SET state = 'paid' WHERE item_id = 4", "item 4 is ('paid'"),
        ("UPDATE outbox_item SET owner = 'x' WHERE item_id = 2", "someone is paying it"),
        ("UPDATE outbox_item SET seq = 10 - seq WHERE seq < 3", "was paid before"),
    ],
)  # fmt: skip
def test_what_is_lost_changed_or_out_of_order_is_noticed(db: sqlite3.Connection, edit: str, told: str) -> None:
    """Whoever changed it."""
    db.execute(edit)
    assert any(told in problem for problem in outbox_violations(db)), outbox_violations(db)


def test_a_publication_without_the_items_of_its_plan_is_noticed(db: sqlite3.Connection) -> None:
    """The plan names a table of corrections."""
    db.execute("""UPDATE manifest SET content = '{"publish": {"corrections": "lake.c", "mode": "merge"}}'""")
    assert [problem for problem in outbox_violations(db) if "does not owe corrections" in problem]
