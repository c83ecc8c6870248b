"""Rows of ``outbox_item`` as records, and what is read of a queue to decide which item is paid next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    taken = _load_taken(conn, queue, now_ms)
    if mine := [row.item_id for row in taken if owner and row.owner == owner]:
        return int(mine[0])
    found = _find_in_pages(conn, queue, lambda row: _row_to_queued(row, now_ms, is_dead), taken)
    return None if found is None else int(found.item_id)


def find_next_due(conn: Connection, queue: str) -> int | None:
    """When the next item of this queue may be tried; None when all wait for one that failed."""
    # as if every time had come and nobody was paying
    found = _find_in_pages(conn, queue, lambda row: replace(_row_to_queued(row, 0, lambda _: True), is_due=True), ())
    return None if found is None else int(max(found.not_before, found.lease_until))


def _find_in_pages(
    conn: Connection, queue: str, read: Callable[[Row[Any]], QueuedItem], taken: Sequence[Row[Any]]
) -> Row[Any] | None:
    """The row to pay next, by the rule of the model.

    What an item has to wait for is older, or newer if its effect reads the acceptance, so pages are read from there:
    the first one usually decides. ``taken`` are the items that someone is paying, wherever they are.
    """
    first = _load_page(conn, queue, 0, 1, newest=False)
    if not first:
        return None
    effect = Effect(first[0].effect)
    seen = {row.item_id: row for row in taken}
    for page in _iterate_pages(conn, queue, newest=effect.reads_acceptance):
        seen |= {row.item_id: row for row in page}
        rows = sorted(seen.values(), key=lambda row: row.seq)
        items = [read(row) for row in rows]
        found = find_payable(items)
        if found is not None:
            return next(row for row, item in zip(rows, items, strict=True) if item is found)
        if effect.is_strict:
            return None  # behind the first one everything waits
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


def _iterate_pages(conn: Connection, queue: str, *, newest: bool) -> Iterator[list[Row[Any]]]:
    """Open items of the queue from one end, a few at a time."""
    beyond, size = 0, _FIRST_PAGE
    while page := _load_page(conn, queue, beyond, size, newest=newest):
        yield page
        beyond, size = page[-1].seq, WINDOW


def _load_page(conn: Connection, queue: str, beyond: int, size: int, *, newest: bool) -> list[Row[Any]]:
    seq = outbox_item.c.seq
    found: list[Row[Any]] = []
    for state in OPEN:
        query = select(*_DECIDING).where(_is_in(queue, state)).order_by(seq.desc() if newest else seq).limit(size)
        if beyond:
            query = query.where(seq < beyond if newest else seq > beyond)
        found += conn.execute(query).all()
    # beyond the page of one state there may be items of it that come before the last of the other
    return sorted(found, key=lambda row: -row.seq if newest else row.seq)[:size]


def _load_taken(conn: Connection, queue: str, now_ms: int) -> Sequence[Row[Any]]:
    """Items of the queue with a lease; there are as many as payers."""
    leased = (outbox_item.c.queue == queue) & (outbox_item.c.lease_until > now_ms)
    return conn.execute(select(*_DECIDING).where(leased, outbox_item.c.state == ItemState.OWED.value)).all()


def _is_in(queue: str, state: str) -> ColumnElement[bool]:
    return (outbox_item.c.state == state) & (outbox_item.c.queue == queue)


def _parse(stored: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError:
        return stored  # Errata never writes this, so the digest will differ
