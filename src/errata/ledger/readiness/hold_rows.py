"""Rows of holds as records, and their end in the transaction of its cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from errata.errors import NotFound
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import hold as hold_table
from errata.model.audit import Actor
from errata.model.consumer.hold import STANDING, HoldRecord, HoldState

_STANDING = tuple(sorted(state.value for state in STANDING))
_COPIED = (
    "hold_id", "run_id", "wave", "consumer", "snapshot_id", "on_timeout", "opened_at", "notice_until", "until",
    "acknowledged_by", "acknowledged_at", "skipped_by", "ended_at", "audit_seq",
)  # fmt: skip


def load_holds(conn: Connection, *where: ColumnElement[bool]) -> tuple[HoldRecord, ...]:
    """Holds that meet these conditions, oldest first."""
    query = select(hold_table).where(*where).order_by(hold_table.c.opened_at, hold_table.c.run_id, hold_table.c.n)
    return tuple(_hold_from_row(row) for row in conn.execute(query))


def find_hold_row(conn: Connection, hold_id: str) -> HoldRecord:
    """The hold with this id; raises when there is none."""
    found = load_holds(conn, hold_table.c.hold_id == hold_id)
    if not found:
        raise NotFound(f"there is no hold {hold_id} in this ledger", state="nothing was changed", hint="errata status")
    return found[0]


def is_standing() -> ColumnElement[bool]:
    """Recorded as neither expired nor ended; its time may be over all the same."""
    return hold_table.c.state.in_(_STANDING)


def move_hold(
    tx: Tx, one: HoldRecord, to: HoldState, actor: Actor, action: str, body: dict[str, Any], **values: Any
) -> HoldRecord:
    """Change the state of a hold, or what is known of it, with the audit entry of the change."""
    seq = append_entry(tx, actor, action, one.run_id, {"hold": one.hold_id, **body}).seq
    where = hold_table.c.hold_id == one.hold_id
    tx.conn.execute(hold_table.update().where(where).values(state=to.value, audit_seq=seq, **values))
    return find_hold_row(tx.conn, one.hold_id)


def end_holds(
    tx: Tx, run_id: str, actor: Actor, because: str, is_concerned: Callable[[HoldRecord], bool] = lambda _: True
) -> None:
    """End those holds of a run that are concerned (default: all); does nothing where none is left."""
    for one in load_holds(tx.conn, hold_table.c.run_id == run_id, is_standing()):
        if is_concerned(one):
            move_hold(tx, one, HoldState.ENDED, actor, "hold.ended", {"because": because}, ended_at=tx.at)


def _hold_from_row(row: Row[Any]) -> HoldRecord:
    return HoldRecord(
        table=row.table_name,
        partitions=tuple(json.loads(row.partitions)),
        acknowledge=bool(row.acknowledge),
        state=HoldState(row.state),
        **{name: getattr(row, name) for name in _COPIED},
    )
