"""Rows of ``outbox_item`` as records, and what is read of a queue to decide which item is paid next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from errata.canonical import digest_of
from errata.ledger.records import OutboxItem, Owner
from errata.ledger.schema.definition import outbox_item
from errata.ledger.store.base import build_record, parse_texts
from errata.model.consumer.outbox import Effect, ItemState, QueuedItem, find_payable

WINDOW = 100
"""Items of a queue that are read at a time."""
_FIRST_PAGE = 8
"""Usually the first items decide."""
OPEN = (ItemState.OWED.value, ItemState.FAILED.value)
_DECIDING = [
    outbox_item.c[name]
    for name in ("item_id", "seq", "effect", "partitions", "state", "not_before", "lease_until", "owner")
]


def item_from_row(row: Row[Any]) -> OutboxItem:
    """A row as a record."""
    return build_record(
        OutboxItem,
        row,
        effect=Effect(row.effect),
        state=ItemState(row.state),
        partitions=parse_texts(row.partitions),
        payload=json.loads(row.payload),
        progress=json.loads(row.progress),
        result=json.loads(row.result),
        owner=Owner(**json.loads(row.owner)) if row.owner else None,
        waived_ready=bool(row.waived_ready),
    )


def digest_item(stored: Mapping[str, Any]) -> str:
    """Digest of what an item says, from its values as stored; audit entries name it."""
    names = ("effect", "event", "consumer", "table_name")
    lists = {name: _parse(stored[name]) for name in ("partitions", "payload")}
    return digest_of({name: stored[name] for name in names} | lists)


def find_payable_id(
    conn: Connection, queue: str, now_ms: int, is_dead: Callable[[Owner], bool], owner: str = ""
) -> int | None:
    """The item of this queue to pay next; None while all have to wait.

    An item that ``owner``, as stored, holds already is that item: the answer to an earlier try was lost.
    """
    seen: list[QueuedItem] = []
    ids: list[int] = []
    for page in _iterate_pages(conn, queue):
        if mine := [row.item_id for row in page if owner and row.owner == owner]:
            return int(mine[0])
        seen += (_row_to_queued(row, now_ms, is_dead) for row in page)
        ids += (row.item_id for row in page)
        found = find_payable(seen)
        if found is not None:
            return next(item_id for item_id, queued in zip(ids, seen, strict=True) if queued is found)
        if seen[0].effect.is_strict:
            return None  # behind the first one everything waits
    return None


def find_next_due(conn: Connection, queue: str) -> int | None:
    """When the next item of this queue may be tried; None when all wait for one that failed."""
    seen: list[QueuedItem] = []
    rows: list[Row[Any]] = []
    for page in _iterate_pages(conn, queue):
        rows += page
        # as if every time had come and nobody was paying
        seen += (replace(_row_to_queued(row, 0, lambda _: True), is_due=True) for row in page)
        if found := find_payable(seen):
            row = next(row for row, queued in zip(rows, seen, strict=True) if queued is found)
            return int(max(row.not_before, row.lease_until))
        if seen[0].effect.is_strict:
            return None
    return None


def to_queued(item: OutboxItem) -> QueuedItem:
    """What decides which items are settled together."""
    return QueuedItem(item.seq or 0, item.effect, frozenset(item.partitions), item.state)


def list_older(conn: Connection, item: OutboxItem, limit: int) -> tuple[OutboxItem, ...]:
    """Open items of the same queue that became owed before this one, newest first."""
    found: list[OutboxItem] = []
    for state in OPEN:
        older = select(outbox_item).where(_is_in(item.queue, state), outbox_item.c.seq < item.seq)
        query = older.order_by(outbox_item.c.seq.desc()).limit(limit)
        found += (item_from_row(row) for row in conn.execute(query))
    return tuple(sorted(found, key=lambda one: -(one.seq or 0))[:limit])


def _row_to_queued(row: Row[Any], now_ms: int, is_dead: Callable[[Owner], bool]) -> QueuedItem:
    is_taken = bool(row.lease_until > now_ms and row.owner and not is_dead(Owner(**json.loads(row.owner))))
    partitions = frozenset(parse_texts(row.partitions))
    return QueuedItem(row.seq, Effect(row.effect), partitions, ItemState(row.state), row.not_before <= now_ms, is_taken)


def _iterate_pages(conn: Connection, queue: str) -> Iterator[list[Row[Any]]]:
    """Open items of the queue, oldest first, a few at a time."""
    after, size = 0, _FIRST_PAGE
    while True:
        found: list[Row[Any]] = []
        for state in OPEN:
            query = select(*_DECIDING).where(_is_in(queue, state), outbox_item.c.seq > after)
            found += conn.execute(query.order_by(outbox_item.c.seq).limit(size)).all()
        # beyond the page of one state there may be older items of it than the last of the other
        page = sorted(found, key=lambda row: row.seq)[:size]
        if not page:
            return
        yield page
        after, size = page[-1].seq, WINDOW


def _is_in(queue: str, state: str) -> ColumnElement[bool]:
    return (outbox_item.c.state == state) & (outbox_item.c.queue == queue)


def _parse(stored: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError:
        return stored  # Errata never writes this, so the digest will differ
