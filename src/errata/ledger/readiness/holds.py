"""Holds: opened, acknowledged, skipped and ended, and what they let a publication do.

A consumer has one hold at a time: a second run waits until the first is done. Times are compared with the database's
clock, inside the transaction that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from errata.canonical import digest_of
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.readiness.hold_rows import end_holds, find_hold_row, is_standing, load_holds, move_hold
from errata.ledger.readiness.table_sets import find_set
from errata.ledger.records import PublicationRecord, RunRecord
from errata.ledger.schema.definition import hold as hold_table
from errata.ledger.store.base import Refusal, Store, find_run, require_state, to_json_text
from errata.model.audit import Actor
from errata.model.consumer.hold import (
    READERS,
    WHOLE_RUN,
    HoldRecord,
    HoldRequest,
    HoldState,
    Outlook,
    build_held_error,
    build_over_error,
    build_taken_error,
    find_hold,
    judge_hold,
)
from errata.model.consumer.outbox import Owed
from errata.model.run import FINAL, RunState

_CAN_HOLD = tuple(state for state in RunState if state not in FINAL and state is not RunState.PLANNED)
"""Readers of the ready table are held for a rollback too, which is possible in other states."""


class Holds(Store):
    """The holds of all runs."""

    def open(
        self,
        run_id: str,
        requests: Sequence[HoldRequest],
        *,
        wave: int,
        actor: Actor,
        owes: Callable[[HoldRecord], Sequence[Owed]] = lambda _: (),
    ) -> tuple[HoldRecord, ...]:
        """Open the holds that are asked for, all or none; returns those that there are already as they are.

        ``owes`` is what a hold owes that is opened now. Refused while another run holds one of the consumers.
        """

        def work(tx: Tx) -> tuple[HoldRecord, ...]:
            run = find_run(tx.conn, run_id)
            if any(one.consumer != READERS for one in requests):
                require_state(run, _CAN_HOLD, "hold.opened")
            found = []
            for request in requests:
                one, is_new = _keep_or_open(tx, run, request, wave, actor)
                if is_new:
                    write_owed(tx, run, one.hold_id, owes(one), actor)
                found.append(one)
            return tuple(found)

        return self._write(actor, work)

    def acknowledge(self, hold_id: str, actor: Actor) -> tuple[HoldRecord, bool]:
        """Record the acknowledgement of a hold that is still active; True if it was acknowledged before."""

        def work(tx: Tx) -> tuple[HoldRecord, bool]:
            one = find_hold_row(tx.conn, hold_id)
            if not one.is_active(tx.now_ms):
                error = build_over_error(one)
                raise Refusal(error, run_id=one.run_id, action="hold.acknowledged", body={"hold": hold_id})
            if one.state is HoldState.ACKNOWLEDGED:
                return one, True
            told = {"acknowledged_by": actor.person, "acknowledged_at": tx.at}
            body = {"person": actor.person, "consumer": one.consumer}
            return move_hold(tx, one, HoldState.ACKNOWLEDGED, actor, "hold.acknowledged", body, **told), False

        return self._write(actor, work)

    def skip(self, hold_ids: Collection[str], why: str, actor: Actor) -> None:
        """Record that a person does not wait for these holds."""

        def work(tx: Tx) -> None:
            for hold_id in sorted(hold_ids):
                one = find_hold_row(tx.conn, hold_id)
                body = {"person": actor.person, "why": why, "consumer": one.consumer}
                move_hold(tx, one, one.state, actor, "hold.skipped", body, skipped_by=actor.person)

        self._write(actor, work)

    def expire(self, hold_ids: Collection[str], actor: Actor) -> None:
        """Record that these holds were not acknowledged in time; does nothing for one that has ended since."""

        def work(tx: Tx) -> None:
            for hold_id in sorted(hold_ids):
                one = find_hold_row(tx.conn, hold_id)
                if not one.is_active(tx.now_ms) and one.state not in (HoldState.EXPIRED, HoldState.ENDED):
                    _expire(tx, one, actor)

        self._write(actor, work)

    def end(self, run_id: str, actor: Actor, because: str, partitions: Collection[str]) -> None:
        """End the holds of a run on these partitions, because what they were opened for does not happen.

        So do those of readers of other tables, which were held with them.
        """
        wanted = set(partitions)

        def work(tx: Tx) -> None:
            own = find_run(tx.conn, run_id).table
            end_holds(tx, run_id, actor, because, lambda one: one.table != own or not wanted.isdisjoint(one.partitions))

        self._write(actor, work)

    def end_one(self, hold_id: str, actor: Actor, because: str) -> None:
        """End one hold of a run; does nothing if it is over."""
        run_id = self.get(hold_id).run_id
        self._write(actor, lambda tx: end_holds(tx, run_id, actor, because, lambda one: one.hold_id == hold_id))

    def list(self, run_id: str) -> tuple[HoldRecord, ...]:
        """Holds of a run, oldest first."""
        return self._read(lambda conn: load_holds(conn, hold_table.c.run_id == run_id))

    def get(self, hold_id: str) -> HoldRecord:
        """The hold with this id."""
        return self._read(lambda conn: find_hold_row(conn, hold_id))

    def list_active(self, table: str | None = None) -> tuple[HoldRecord, ...]:
        """Holds that last now, of a table or of all, oldest first."""

        def work(conn: Connection) -> tuple[HoldRecord, ...]:
            mine = () if table is None else (hold_table.c.table_name == table,)
            now_ms = self._database.clock(conn)[1]
            return tuple(one for one in load_holds(conn, is_standing(), *mine) if one.is_active(now_ms))

        return self._read(work)


def _keep_or_open(tx: Tx, run: RunRecord, request: HoldRequest, wave: int, actor: Actor) -> tuple[HoldRecord, bool]:
    """The hold of the consumer that counts, or a new one; whether it is new."""
    table = request.table or run.table
    same, mine = hold_table.c.consumer == request.consumer, hold_table.c.run_id == run.run_id
    own = find_hold(load_holds(tx.conn, mine, same), request.consumer, request.partitions, table)
    # nobody is asked about the ready table: where its writer died, the next one writes it again
    is_over = (Outlook.OVER, Outlook.STOP) if request.consumer == READERS else (Outlook.OVER,)
    if own is not None and judge_hold(own, tx.now_ms) not in is_over:
        return own, False
    # the ready table has rows for every run and table, so its holds are none of each other's business
    rivals = (mine, hold_table.c.table_name == table) if request.consumer == READERS else ()
    for one in load_holds(tx.conn, same, is_standing(), *rivals):
        if not one.is_active(tx.now_ms):
            _expire(tx, one, actor)
        elif one.run_id != run.run_id:
            error = build_taken_error(run.run_id, one, tx.now_ms)
            raise Refusal(error, run_id=run.run_id, action="hold.opened", body={"hold": one.hold_id})
        else:
            told = {"because": "opened again for other partitions"}
            move_hold(tx, one, HoldState.ENDED, actor, "hold.ended", told, ended_at=tx.at)
    return _insert(tx, run, request, wave, actor), True


def _insert(tx: Tx, run: RunRecord, request: HoldRequest, wave: int, actor: Actor) -> HoldRecord:
    terms, known = request.terms, select(func.max(hold_table.c.n)).where(hold_table.c.run_id == run.run_id)
    n = (tx.conn.execute(known).scalar() or 0) + 1
    hold_id = f"{run.run_id}-h{n}-{digest_of([tx.head_hash, tx.at])[:6]}"
    told = {
        "wave": WHOLE_RUN if terms.over == "run" else wave, "consumer": request.consumer,
        "snapshot_id": request.snapshot_id,
        "acknowledge": int(terms.acknowledge), "on_timeout": terms.on_timeout,
        "notice_until": tx.now_ms + terms.before_seconds * 1000, "until": tx.now_ms + terms.at_most_seconds * 1000,
    }  # fmt: skip
    table = request.table or run.table
    body = {"hold": hold_id, "n": n, "table": table, "partitions": list(request.partitions), **told}
    seq = append_entry(tx, actor, "hold.opened", run.run_id, body).seq
    row = {
        "hold_id": hold_id, "run_id": run.run_id, "n": n, "table_name": table, "opened_at": tx.at,
        "partitions": to_json_text(list(request.partitions)), "state": HoldState.OPEN.value, "audit_seq": seq, **told,
    }  # fmt: skip
    tx.conn.execute(hold_table.insert(), row)
    return find_hold_row(tx.conn, hold_id)


def _expire(tx: Tx, one: HoldRecord, actor: Actor) -> None:
    move_hold(tx, one, HoldState.EXPIRED, actor, "hold.expired", {"consumer": one.consumer})


def require_held(
    tx: Tx, run: RunRecord, kind: str, consumers: Collection[str], partitions: Sequence[str]
) -> dict[str, Any]:
    """Refuse an intent whose consumers were not held, not for long enough, or did not acknowledge.

    Checked in the transaction of the intent, so that no caller can leave it out and no hold can end in between.
    Returns what the intent records about tables of its campaign whose readers were held with its own.
    """
    known = load_holds(tx.conn, hold_table.c.run_id == run.run_id)

    def require(consumer: str, names: Sequence[str], table: str) -> HoldRecord:
        own = find_hold(known, consumer, names, table)
        outlook = judge_hold(own, tx.now_ms) if own is not None else Outlook.OVER
        if own is None or outlook is not Outlook.GO:
            error = build_held_error(run.run_id, ((consumer, own, outlook),), tx.now_ms)
            body = {"consumer": consumer, "hold": own.hold_id if own else None, "outlook": outlook.value}
            raise Refusal(error, run_id=run.run_id, action=f"{kind}.intended", body=body)
        return own

    for consumer in sorted(consumers):
        require(consumer, partitions, run.table)
    found = find_set(tx.conn, run, kind) if READERS in consumers else None
    if found is None:
        return {}
    held = [require(READERS, names, table) for table, names in sorted(found.partitions.items())]
    return {"set": {"undo": found.undo, "holds": [one.hold_id for one in held]}}


def end_settled_holds(
    tx: Tx, settled: PublicationRecord, outcome: str, actor: Actor, is_all_out: Callable[[], bool]
) -> None:
    """End the holds that a publication or rollback was the reason of, whatever its outcome.

    A rollback stops the waves of its run, so no hold for them remains.
    """
    wanted, is_undone = set(settled.partitions), settled.kind == "rollback" and outcome == "committed"

    def is_over(one: HoldRecord) -> bool:
        if one.consumer == READERS or is_undone:
            return True
        if settled.kind == "rollback" or wanted.isdisjoint(one.partitions):
            return False
        return one.wave != WHOLE_RUN or outcome == "abandoned" or is_all_out()

    end_holds(tx, settled.run_id, actor, f"{settled.kind} {outcome}", is_over)
