"""Payments: claims with lease and fence, outcomes, and what people decide about an item.

A claim is an optimisation; the fence is the safety. A payer whose item was taken over cannot record an outcome, and the
next one pays with the same key. Attempts are counted without audit entries, as heartbeats are; every change of
state has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, text

from errata.errors import NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.item_rows import (
    OPEN,
    WINDOW,
    find_next_due,
    find_payable_id,
    item_from_row,
    list_older,
    to_queued,
)
from errata.ledger.outbox.items import write_owed
from errata.ledger.outbox.old_notes import IS_TO_CONVERT, convert_notes
from errata.ledger.records import OutboxItem, Owner
from errata.ledger.schema.definition import outbox_item
from errata.ledger.store.base import Refusal, Store, find_run, to_json_text
from errata.ledger.store.workers import is_owner_dead
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState, Owed, list_covered

_MAX_ERROR = 2_000
_FREE = {"owner": None, "lease_until": 0}

# the queues with owed items, one look into the index for each, however many items they have
_QUEUES = """\
WITH RECURSIVE found (queue) AS (
    SELECT MIN(queue) FROM outbox_item WHERE {where}
    UNION ALL
    SELECT (SELECT MIN(queue) FROM outbox_item WHERE {where} AND queue > found.queue) FROM found
    WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL"""


class Outbox(Store):
    """Items that are owed, and what became of them."""

    def owe(self, run_id: str, cause: str, owes: Sequence[Owed], actor: Actor) -> None:
        """Owe items whose cause has no transaction of its own in the ledger."""
        self._write(actor, lambda tx: write_owed(tx, find_run(tx.conn, run_id), cause, owes, actor))

    def convert_notes(self, actor: Actor) -> None:
        """Turn what earlier versions noted as owed into items; one look where there is nothing to do."""
        if self._read(lambda conn: conn.execute(IS_TO_CONVERT).first()) is not None:
            self._write(actor, lambda tx: convert_notes(tx, actor))

    def queues(self, *, table: str | None = None, run_id: str | None = None) -> tuple[str, ...]:
        """Queues in which something is owed: for this table, or for this run, or at all."""
        named = {"table_name": table, "run_id": run_id}
        given = {name: value for name, value in named.items() if value is not None}
        where = " AND ".join([*(f"{name} = :{name}" for name in given), "state = 'owed'"])
        query = text(_QUEUES.format(where=where))
        return self._read(lambda conn: tuple(conn.execute(query, given).scalars()))

    def claim(
        self,
        queue: str,
        owner: Owner,
        *,
        lease_seconds: float,
        is_dead: Callable[[Owner], bool] = is_owner_dead,
    ) -> OutboxItem | None:
        """Take the item of this queue that is to be paid next; None while all have to wait.

        Every claim has an ``owner`` with a name of its own: repeated with the same one, it returns the same item.
        """
        # only a hint: the same rule decides again inside the write transaction
        mine = to_json_text(owner)
        if self._read(lambda conn: find_payable_id(conn, queue, self._database.clock(conn)[1], is_dead, mine)) is None:
            return None

        def work(tx: Tx) -> OutboxItem | None:
            item_id = find_payable_id(tx.conn, queue, tx.now_ms, is_dead, mine)
            if item_id is None:
                return None
            found = find_item(tx.conn, item_id)
            if found.owner == owner:
                return found
            values = {
                "owner": mine, "fence": found.fence + 1,
                "lease_until": tx.now_ms + int(lease_seconds * 1000), "attempts": found.attempts + 1,
            }  # fmt: skip
            tx.conn.execute(_update(found).values(values))
            return find_item(tx.conn, found.item_id)

        return self._database.write(work)

    def renew(self, item: OutboxItem, lease_seconds: float) -> bool:
        """Renew the lease; False when the item was taken over."""

        def work(tx: Tx) -> bool:
            until = tx.now_ms + int(lease_seconds * 1000)
            return tx.conn.execute(_update(item).values(lease_until=until)).rowcount == 1

        return self._database.write(work)

    def record_paid(
        self,
        item: OutboxItem,
        result: Mapping[str, Any],
        actor: Actor,
        owes: Sequence[Owed] = (),
        *,
        when_recovered: Sequence[Owed] = (),
    ) -> bool:
        """Record that the item is paid, and with it the older ones that it covers; False when it was taken over.

        ``when_recovered`` is owed if it was the last item of its publication that reaches a consumer.
        """

        def work(tx: Tx) -> bool:
            if not _is_current(tx.conn, item):
                return False
            _end(tx, [item], ItemState.PAID, actor, {"result": result, "attempts": item.attempts})
            covered = _find_covered(tx, item)
            _end(tx, covered, ItemState.PAID, actor, {"result": {"absorbed_by": item.key}})
            run = find_run(tx.conn, item.run_id)
            write_owed(tx, run, item.key, owes, actor, pub_id=item.pub_id)
            # decided here, because another payer may have paid the one before the last at the same time
            if when_recovered and item.pub_id and _is_recovered(tx.conn, item.pub_id):
                write_owed(tx, run, item.pub_id, when_recovered, actor, pub_id=item.pub_id)
            return True

        return self._write(actor, work)

    def put_off(self, item: OutboxItem, seconds: float, progress: Mapping[str, Any]) -> bool:
        """Keep what was done so far and continue after some time; this was not a failed attempt."""
        told = {"attempts": item.attempts - 1, "progress": to_json_text(progress), "last_error": None}
        return self._release(item, seconds, told)

    def give_back(self, item: OutboxItem) -> bool:
        """Leave the item as it was before the claim."""
        return self._release(item, 0, {"attempts": item.attempts - 1, "not_before": item.not_before})

    def record_attempt(
        self, item: OutboxItem, error: str, wait_seconds: float, progress: Mapping[str, Any] | None = None
    ) -> bool:
        """Record that this attempt failed, and when the next one may start; False when the item was taken over."""
        kept = {} if progress is None else {"progress": to_json_text(progress)}
        return self._release(item, wait_seconds, {"last_error": self._database.redact(error)[:_MAX_ERROR], **kept})

    def record_failed(
        self,
        item: OutboxItem,
        error: str,
        actor: Actor,
        owes: Sequence[Owed] = (),
        progress: Mapping[str, Any] | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> bool:
        """Record that all attempts are used up, and what was found; a person retries or waives the item."""
        kept = {} if progress is None else {"progress": to_json_text(progress)}

        def work(tx: Tx) -> bool:
            if not _is_current(tx.conn, item):
                return False
            told = tx.redact(error)[:_MAX_ERROR]
            body = {"error": told, "attempts": item.attempts} | ({"result": result} if result else {})
            _end(tx, [item], ItemState.FAILED, actor, body, {"last_error": told, "ended_at": None, **kept})
            write_owed(tx, find_run(tx.conn, item.run_id), item.key, owes, actor, pub_id=item.pub_id)
            return True

        return self._write(actor, work)

    def retry(self, item_ids: Collection[int], actor: Actor) -> tuple[OutboxItem, ...]:
        """Let items that are owed or failed be paid at once, with all attempts again.

        One that is failed begins with its first step. One that is owed keeps the steps that are done.
        """

        def work(tx: Tx) -> tuple[OutboxItem, ...]:
            items = [_require_open(tx.conn, item_id, "retry") for item_id in sorted(item_ids)]
            values = {"attempts": 0, "not_before": 0, "ended_at": None}
            # a process that is paying one of them right now still records what came of it
            for state, again in ((ItemState.FAILED, {"progress": "{}"}), (ItemState.OWED, {})):
                if chosen := [item for item in items if item.state is state]:
                    changed = values | again
                    _end(tx, chosen, ItemState.OWED, actor, {}, changed, action="outbox.retried", free=False)
            return tuple(find_item(tx.conn, item.item_id) for item in items)

        return self._write(actor, work)

    def waive(
        self,
        item_id: int,
        why: str,
        actor: Actor,
        *,
        ready: bool = False,
        owes: Sequence[Owed] = (),
        alone: bool = False,
    ) -> tuple[tuple[OutboxItem, ...], bool]:
        """Pay this item no more, nor, unless ``alone``, older ones that it covers; True if that was decided before.

        The condition stays: what was not recovered is not recovered. ``ready`` lets readers continue all the same, and
        owes ``owes``.
        """

        def work(tx: Tx) -> tuple[tuple[OutboxItem, ...], bool]:
            known = find_item(tx.conn, item_id)
            if known.state is ItemState.WAIVED:
                _require_same_waiver(known, ready=ready)
                return (known,), True
            item = _require_open(tx.conn, item_id, "waive")
            items = [item, *([] if alone else _find_covered(tx, item))]
            values = {"waived_by": actor.person, "waived_why": why, "waived_ready": int(ready)}
            body = {"person": actor.person, "why": why, "ready": ready}
            _end(tx, items, ItemState.WAIVED, actor, body, values)
            if ready:
                write_owed(tx, find_run(tx.conn, item.run_id), item.key, owes, actor)
            return tuple(find_item(tx.conn, one.item_id) for one in items), False

        return self._write(actor, work)

    def get(self, item_id: int) -> OutboxItem:
        """The item with this number."""
        return self._read(lambda conn: find_item(conn, item_id))

    def find_last_paid(self, queue: str) -> OutboxItem | None:
        """The item of this queue that was paid last, by its place in the order."""
        c = outbox_item.c
        paid = select(outbox_item).where(c.state == ItemState.PAID.value, c.queue == queue)
        row = self._read(lambda conn: conn.execute(paid.order_by(c.seq.desc()).limit(1)).first())
        return None if row is None else item_from_row(row)

    def list(
        self,
        *,
        run_id: str | None = None,
        table: str | None = None,
        pub_id: str | None = None,
        states: Iterable[ItemState] | None = None,
        limit: int | None = None,
    ) -> tuple[OutboxItem, ...]:
        """Items, oldest first."""
        query = select(outbox_item).where(*_conditions(run_id, table, pub_id, states)).order_by(outbox_item.c.item_id)
        return self._read(lambda conn: tuple(item_from_row(row) for row in conn.execute(query.limit(limit))))

    def list_open(self, *, run_id: str | None = None, table: str | None = None) -> tuple[OutboxItem, ...]:
        """Items that are owed or failed, oldest first."""
        return self.list(run_id=run_id, table=table, states=map(ItemState, OPEN))

    def count_open(self) -> dict[ItemState, int]:
        """Number of items that are owed or failed, by state; those that are over are not looked at."""
        state = outbox_item.c.state
        query = select(state, func.count()).where(state.in_(OPEN)).group_by(state)
        return self._read(lambda conn: {ItemState(found): count for found, count in conn.execute(query).tuples()})

    def count(self, *, run_id: str | None = None, table: str | None = None) -> dict[ItemState, int]:
        """Number of items by state."""
        state = outbox_item.c.state
        query = select(state, func.count()).where(*_conditions(run_id, table, None, None)).group_by(state)
        return self._read(lambda conn: {ItemState(found): count for found, count in conn.execute(query).tuples()})

    def next_due(self, queue: str) -> int | None:
        """When the next item of this queue may be tried, in milliseconds; None when all wait for one that failed."""
        return self._read(lambda conn: find_next_due(conn, queue))

    def _release(self, item: OutboxItem, seconds: float, values: Mapping[str, Any]) -> bool:
        def work(tx: Tx) -> bool:
            if not _is_current(tx.conn, item):
                return False
            due = {"not_before": tx.now_ms + int(seconds * 1000)}
            tx.conn.execute(_update(item).values(due | dict(values) | _FREE))
            return True

        return self._database.write(work)


def find_item(conn: Connection, item_id: int) -> OutboxItem:
    """The item with exactly this number; raises when there is none."""
    row = conn.execute(select(outbox_item).where(outbox_item.c.item_id == item_id)).first()
    if row is None:
        raise NotFound(
            f"there is no item {item_id} in the outbox", state="nothing was changed", hint="errata outbox --all"
        )
    return item_from_row(row)


def _conditions(
    run_id: str | None, table: str | None, pub_id: str | None, states: Iterable[ItemState] | None
) -> list[ColumnElement[bool]]:
    c = outbox_item.c
    found = [column == value for column, value in ((c.run_id, run_id), (c.table_name, table), (c.pub_id, pub_id))
             if value is not None]  # fmt: skip
    return found if states is None else [*found, c.state.in_(sorted(state.value for state in states))]


def _update(item: OutboxItem) -> Any:
    """An update of the item as long as it is owed and nobody has claimed it since."""
    c = outbox_item.c
    return outbox_item.update().where(c.item_id == item.item_id, c.fence == item.fence, c.state == ItemState.OWED.value)


def _is_current(conn: Connection, item: OutboxItem) -> bool:
    found = find_item(conn, item.item_id)
    return (found.fence, found.owner, found.state) == (item.fence, item.owner, ItemState.OWED)


def _find_covered(tx: Tx, item: OutboxItem) -> list[OutboxItem]:
    """Older items of the queue that are settled together with this one; at most a window of them at a time."""
    older = list_older(tx.conn, item, WINDOW) if item.effect.reads_acceptance else ()
    queued = {to_queued(one): one for one in older}
    return [queued[one] for one in list_covered(to_queued(item), queued)]


def _end(
    tx: Tx,
    items: Sequence[OutboxItem],
    state: ItemState,
    actor: Actor,
    body: Mapping[str, Any],
    values: Mapping[str, Any] | None = None,
    *,
    action: str = "",
    free: bool = True,
) -> None:
    """Move items with one audit entry for each run."""
    for run_id, theirs in groupby(sorted(items, key=lambda item: (item.run_id, item.item_id)), lambda one: one.run_id):
        mine = list(theirs)
        told = {"items": [{"id": item.item_id, "key": item.key} for item in mine], **body}
        entry = append_entry(tx, actor, action or f"outbox.{state.value}", run_id, told)
        result = {"result": to_json_text(entry.body["result"])} if "result" in body else {}
        ended = {"state": state.value, "ended_at": tx.at, "audit_seq": entry.seq}
        for item in mine:
            where = outbox_item.c.item_id == item.item_id
            changed = ended | (_FREE if free else {}) | result | dict(values or {})
            tx.conn.execute(outbox_item.update().where(where).values(changed))


def _is_recovered(conn: Connection, pub_id: str) -> bool:
    """Whether everything of a publication that reaches a consumer is paid."""
    c = outbox_item.c
    ended = (ItemState.PAID.value, ItemState.VOID.value)
    reaching = [effect.value for effect in Effect if effect.reaches_consumer]
    where = (c.pub_id == pub_id) & c.effect.in_(reaching) & c.state.not_in(ended)
    return conn.execute(select(c.item_id).where(where).limit(1)).first() is None


def _require_same_waiver(item: OutboxItem, *, ready: bool) -> None:
    """Refuse to add to a waiver that readers may continue: it is over, as every decision that is on record."""
    if ready and not item.waived_ready:
        error = StateRefused(
            f"waive of item {item.item_id} was refused; {item.waived_by} waived it without --ready, so readers of its "
            "partitions wait until these are published or rolled back again",
            state="nothing was changed",
            hint=f"errata status {item.run_id}",
        )
        raise Refusal(error, run_id=item.run_id, action="outbox.waive", body={"item": item.item_id})


def _require_open(conn: Connection, item_id: int, action: str) -> OutboxItem:
    found = find_item(conn, item_id)
    if found.is_open:
        return found
    error = StateRefused(
        f"{action} of item {item_id} was refused; expected one that is owed or failed, found {found.state.value}",
        state="nothing was changed",
        hint=f"errata outbox {found.run_id} --all",
    )
    raise Refusal(error, run_id=found.run_id, action=f"outbox.{action}", body={"item": item_id})
