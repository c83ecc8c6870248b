"""Owe what follows from audit entries, in the transaction that appends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.model.audit import AuditEntry
from errata.model.consumer.outbox import Owed

FollowRule: TypeAlias = Callable[[Sequence[AuditEntry]], Iterable[tuple[AuditEntry, Owed]]]
"""What the entries of one transaction owe, each with the entry that is its cause."""


def write_following(tx: Tx, rule: FollowRule) -> None:
    """Owe what the rule says about the entries that this transaction has appended."""
    from errata.ledger.store.base import find_run  # it imports the database, which calls this

    for entry, owed in rule(tuple(tx.entries)):
        if entry.run_id is not None and tx.actor is not None:
            write_owed(tx, find_run(tx.conn, entry.run_id), f"{entry.run_id}-{entry.seq}", [owed], tx.actor)
