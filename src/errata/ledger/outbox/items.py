"""Write what is owed in the transaction of its cause, and settle it with its publication.

An item of a publication is conditional until the publication is settled: then it is owed, or void. All others are owed
at once. An item gets its number in the order when it becomes owed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.item_rows import digest_item
from errata.ledger.privacy.pseudonyms import current_registry
from errata.ledger.records import PublicationRecord, RunRecord
from errata.ledger.schema.definition import outbox_item
from errata.ledger.store.base import to_json_text
from errata.model.audit import Actor
from errata.model.consumer.outbox import APPROVED, ItemState, Owed
from errata.model.run import RunState


def write_owed(
    tx: Tx,
    run: RunRecord,
    cause: str,
    owes: Sequence[Owed],
    actor: Actor,
    *,
    pub_id: str | None = None,
    conditional: bool = False,
) -> None:
    """Add the items with one audit entry; those that are there already, by their key, are left as they are.

    ``pub_id`` is the publication that they follow. ``conditional`` means that it is open; otherwise they are owed now.
    """
    known = _find_known(tx.conn, [owed.key(cause) for owed in owes])
    wanted = {owed.key(cause): owed for owed in owes if owed.key(cause) not in known}
    if not wanted:
        return
    state = ItemState.CONDITIONAL if conditional else ItemState.OWED
    last_id, last_seq = _read_last(tx.conn)
    rows: list[dict[str, Any]] = []
    for n, (key, owed) in enumerate(wanted.items(), 1):
        row = {
            "item_id": last_id + n, "key": key, "queue": owed.queue(run.table, key), "effect": owed.effect.value,
            "event": owed.event, "consumer": owed.consumer, "run_id": run.run_id, "pub_id": pub_id,
            "table_name": run.table, "partitions": to_json_text(list(owed.partitions)),
            "payload": to_json_text(owed.payload), "state": state.value, "at": tx.at,
        }  # fmt: skip
        if state is ItemState.OWED:
            row |= {"seq": last_seq + n, "owed_at": tx.at}
        rows.append(row)
    told = [_describe(row) for row in rows]
    body = {"items": told} | ({"publication": pub_id} if pub_id else {})
    seq = append_entry(tx, actor, f"outbox.{state.value}", run.run_id, body).seq
    tx.conn.execute(outbox_item.insert(), [row | {"audit_seq": seq} for row in rows])


def list_happened(owes: Sequence[Owed], run: RunRecord) -> list[Owed]:
    """What a plan owes, with what an approval owes only if the run is approved already."""
    return [owed for owed in owes if owed.event != APPROVED or run.state is RunState.APPROVED]


def settle_owed(tx: Tx, publication: PublicationRecord, actor: Actor, *, landed: bool) -> None:
    """Make what depends on this publication owed, or void; in the transaction that records its outcome."""
    mine = (outbox_item.c.pub_id == publication.pub_id) & (outbox_item.c.state == ItemState.CONDITIONAL.value)
    ids = tx.conn.execute(select(outbox_item.c.item_id).where(mine).order_by(outbox_item.c.item_id)).scalars().all()
    if not ids:
        return
    state = ItemState.OWED if landed else ItemState.VOID
    _, last_seq = _read_last(tx.conn)
    places = {item_id: last_seq + n for n, item_id in enumerate(ids, 1)} if landed else dict.fromkeys(ids)
    told = [{"id": item_id} | ({"seq": place} if place else {}) for item_id, place in places.items()]
    body = {"publication": publication.pub_id, "items": told}
    entry = append_entry(tx, actor, f"outbox.{state.value}", publication.run_id, body)
    time = {"owed_at": tx.at} if landed else {"ended_at": tx.at}
    for item_id, place in places.items():
        values = {"state": state.value, "seq": place, "audit_seq": entry.seq, **time}
        tx.conn.execute(outbox_item.update().where(outbox_item.c.item_id == item_id).values(values))


def _describe(row: dict[str, Any]) -> dict[str, Any]:
    stored = row | {"payload": to_json_text(current_registry().conceal_for_row(json.loads(row["payload"])))}
    return {"id": row["item_id"], "key": row["key"], "digest": digest_item(stored)} | (
        {"seq": row["seq"]} if "seq" in row else {}
    )


def _find_known(conn: Connection, keys: Collection[str]) -> set[str]:
    return set(conn.execute(select(outbox_item.c.key).where(outbox_item.c.key.in_(sorted(keys)))).scalars())


def _read_last(conn: Connection) -> tuple[int, int]:
    """The last number of an item, and the last place in the order."""
    last_id = conn.execute(select(func.max(outbox_item.c.item_id))).scalar()
    last_seq = conn.execute(select(func.max(outbox_item.c.seq))).scalar()
    return last_id or 0, last_seq or 0
