"""End of a freeze, in the transaction of its cause: a state change of the run, or a publication of partitions."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, select

from errata.canonical import canonical_bytes
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import frozen_scope
from errata.model.audit import Actor


def lift_freeze(tx: Tx, run_id: str, actor: Actor, because: str, partitions: Collection[str] | None = None) -> None:
    """Allow live jobs to write these partitions again (default: all); does nothing where nothing is frozen."""
    query = select(frozen_scope).where(frozen_scope.c.run_id == run_id, frozen_scope.c.ended_at.is_(None))
    for row in tx.conn.execute(query.order_by(frozen_scope.c.wave)).all():
        _lift_from(tx, row, actor, because, partitions)


def _lift_from(tx: Tx, row: Row[Any], actor: Actor, because: str, partitions: Collection[str] | None) -> None:
    held = json.loads(row.partitions)
    free = set(held if partitions is None else partitions) & set(held)
    left = [name for name in held if name not in free]
    if left == held:
        return
    body = {"wave": row.wave, "partitions": sorted(free), "because": because}
    entry = append_entry(tx, actor, "freeze.narrowed" if left else "freeze.ended", row.run_id, body)
    own = (frozen_scope.c.run_id == row.run_id) & (frozen_scope.c.wave == row.wave)
    what = {"partitions": canonical_bytes(left).decode()} if left else {"ended_at": tx.at}
    tx.conn.execute(frozen_scope.update().where(own).values(**what, audit_seq=entry.seq))


def lift_published_freezes(tx: Tx, table: str, run_id: str, actor: Actor, partitions: Collection[str]) -> None:
    """Lift freezes on published partitions, also those of other runs, whose candidates are now out of date."""
    held = select(frozen_scope.c.run_id).where(frozen_scope.c.table_name == table, frozen_scope.c.ended_at.is_(None))
    for holder in tx.conn.execute(held.distinct().order_by(frozen_scope.c.run_id)).scalars().all():
        because = "published" if holder == run_id else f"published by {run_id}"
        lift_freeze(tx, holder, actor, because, partitions)
