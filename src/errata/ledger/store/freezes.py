"""Freezes of waves, and leases of live jobs that ask before they write.

Both sides decide in write transactions, of which there is one at a time: a live job gets a lease only where nothing is
frozen, and a freeze is granted only where no live job holds a lease. Between these two a freeze is *open*: new live
jobs are refused, those with a lease may finish. So neither side waits for ever, and at no moment may both write. Leases
are compared with the database's clock. An expired lease is revoked only by a freeze; without one its holder continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import FreezeRecord, LiveWriteRecord, Owner
from errata.ledger.schema.definition import frozen_scope, live_write
from errata.ledger.store.base import Store, build_record, find_run, parse_texts, require_state, to_json_text
from errata.ledger.store.freeze_end import lift_freeze
from errata.ledger.store.workers import is_owner_dead
from errata.model.audit import Actor
from errata.model.run import RunState

S = RunState
_CAN_FREEZE = (
    S.APPROVED,
    S.RUNNING,
    S.STAGED,
    S.REJECTED,
    S.NEEDS_ACCEPTANCE,
    S.VALIDATED,
    S.PUBLISHING,  # one wave is judged while another is published
    S.PART_PUBLISHED,
)


class LiveWrites(Store):
    """Freezes, and the leases of live writers."""

    def open_freeze(
        self,
        run_id: str,
        partitions: Sequence[str],
        *,
        idle_seconds: float,
        most_seconds: float,
        actor: Actor,
        wave: int = 1,
    ) -> FreezeRecord:
        """Open the freeze of a wave, which refuses new live writers, or renew an open one.

        A freeze that lapsed or ended is opened again within the time limit set when it was first opened. After that
        limit the record is returned unchanged and is not open.
        """

        def work(tx: Tx) -> FreezeRecord:
            run = find_run(tx.conn, run_id)
            require_state(run, _CAN_FREEZE, "freeze.opened")
            known = _find_freeze_row(tx.conn, run_id, wave)
            most = known.most_until if known else tx.now_ms + int(most_seconds * 1000)
            until = min(tx.now_ms + int(idle_seconds * 1000), most)
            if known is not None and (_is_open(known, tx.now_ms) or most <= tx.now_ms):
                if _is_open(known, tx.now_ms):
                    _update_freeze(tx, known, lease_until=until)
                return _freeze_from_row(tx.conn.execute(_select_freezes(run_id, wave)).one(), tx.now_ms)
            body = {
                "wave": wave, "table": run.table, "partitions": list(partitions), "until_ms": until,
                "most_until_ms": most,
            }  # fmt: skip
            seq = append_entry(tx, actor, "freeze.opened", run_id, body).seq
            values = {"partitions": to_json_text(list(partitions)), "person": actor.person, "lease_until": until}
            values |= {"granted_at": None, "ended_at": None, "audit_seq": seq}
            if known is None:
                first = {"run_id": run_id, "wave": wave, "table_name": run.table, "opened_at": tx.at}
                tx.conn.execute(frozen_scope.insert(), values | first | {"most_until": most})
            else:
                _update_freeze(tx, known, **values)
            return _freeze_from_row(tx.conn.execute(_select_freezes(run_id, wave)).one(), tx.now_ms)

        return self._write(actor, work)

    def grant_freeze(
        self, run_id: str, actor: Actor, is_dead: Callable[[Owner], bool] = is_owner_dead, *, wave: int = 1
    ) -> tuple[LiveWriteRecord, ...]:
        """Grant an open freeze if no live writer is left; returns the live writers it still waits for.

        Expired leases, and leases of processes that are certainly gone, are revoked.
        """

        def work(tx: Tx) -> tuple[LiveWriteRecord, ...]:
            row = _find_freeze_row(tx.conn, run_id, wave)
            if row is None or not _is_open(row, tx.now_ms):
                return ()
            found = _load_live_writes(tx.conn, row.table_name, parse_texts(row.partitions))
            over = [one for one in found if one.lease_until <= tx.now_ms or is_dead(one.owner)]
            if over:
                gone = live_write.c.token.in_([one.token for one in over])
                tx.conn.execute(live_write.delete().where(gone))
            writing = tuple(one for one in found if one not in over)
            if not writing and row.granted_at is None:
                seq = append_entry(tx, actor, "freeze.granted", run_id, {"wave": wave, "taken_back": len(over)}).seq
                _update_freeze(tx, row, granted_at=tx.at, audit_seq=seq)
            return writing

        return self._write(actor, work)

    def renew_freezes(self, run_id: str, idle_seconds: float) -> bool:
        """Renew the open freezes of a run; False when all lapsed or ended, or it never had one."""

        def work(tx: Tx) -> bool:
            held = [row for row in tx.conn.execute(_select_freezes(run_id)).all() if _is_open(row, tx.now_ms)]
            for row in held:
                _update_freeze(tx, row, lease_until=min(tx.now_ms + int(idle_seconds * 1000), row.most_until))
            return bool(held)

        return self._database.write(work)

    def end_freeze(self, run_id: str, actor: Actor, because: str, partitions: Collection[str] | None = None) -> None:
        """Allow live jobs to write these partitions again (default: all); does nothing where nothing is frozen."""
        self._write(actor, lambda tx: lift_freeze(tx, run_id, actor, because, partitions))

    def list(self, run_id: str) -> tuple[FreezeRecord, ...]:
        """The freezes of a run by wave, open or not."""

        def work(conn: Connection) -> tuple[FreezeRecord, ...]:
            now_ms = self._database.clock(conn)[1]
            return tuple(_freeze_from_row(row, now_ms) for row in conn.execute(_select_freezes(run_id)))

        return self._read(work)

    def find_freezes(self, table: str, partitions: Collection[str] = ()) -> tuple[FreezeRecord, ...]:
        """Open freezes of these partitions (default: of any partition of the table)."""
        return self._read(lambda conn: _load_open_freezes(conn, table, partitions, self._database.clock(conn)[1]))

    def begin_live_write(
        self, token: str, table: str, partitions: Sequence[str], owner: Owner, lease_seconds: float
    ) -> tuple[FreezeRecord, ...]:
        """Take a lease for writing; returns the freezes that prevent it, in which case there is no lease. Idempotent.

        Without partitions the lease covers the whole table.
        """

        def work(tx: Tx) -> tuple[FreezeRecord, ...]:
            known = _find_live_write_row(tx.conn, token)
            if known is not None and known.lease_until > tx.now_ms:
                return ()
            if found := _load_open_freezes(tx.conn, table, partitions, tx.now_ms):
                return found
            tx.conn.execute(live_write.delete().where(live_write.c.token == token))
            row = {
                "token": token, "table_name": table, "partitions": to_json_text(list(partitions)),
                "owner": to_json_text(owner), "started_at": tx.at, "lease_until": tx.now_ms + int(lease_seconds * 1000),
            }  # fmt: skip
            tx.conn.execute(live_write.insert(), row)
            return ()

        return self._database.write(work)

    def renew_live_write(self, token: str, lease_seconds: float) -> bool:
        """Renew a lease; False when it is gone, or expired while a freeze covers its partitions."""

        def work(tx: Tx) -> bool:
            row = _find_live_write_row(tx.conn, token)
            if row is None:
                return False
            where = live_write.c.token == token
            if row.lease_until <= tx.now_ms and _load_open_freezes(
                tx.conn, row.table_name, parse_texts(row.partitions), tx.now_ms
            ):
                tx.conn.execute(live_write.delete().where(where))
                return False
            until = tx.now_ms + int(lease_seconds * 1000)
            tx.conn.execute(live_write.update().where(where).values(lease_until=until))
            return True

        return self._database.write(work)

    def end_live_write(self, token: str) -> None:
        """End a lease. Idempotent."""
        self._database.write(lambda tx: tx.conn.execute(live_write.delete().where(live_write.c.token == token)))

    def find_live_writes(self, table: str, partitions: Collection[str], *, beside: str) -> tuple[LiveWriteRecord, ...]:
        """Leases of other live jobs that are held now and share a partition with these; ``beside`` is one's own."""

        def work(conn: Connection) -> tuple[LiveWriteRecord, ...]:
            now_ms = self._database.clock(conn)[1]
            found = _load_live_writes(conn, table, partitions)
            return tuple(one for one in found if one.lease_until > now_ms and one.token != beside)

        return self._read(work)

    def live_writes(self, table: str) -> tuple[LiveWriteRecord, ...]:
        """Leases of live jobs on a table, expired or not, oldest first."""
        return self._read(lambda conn: _load_live_writes(conn, table, ()))


def _select_freezes(run_id: str, wave: int | None = None) -> Select[Any]:
    query = select(frozen_scope).where(frozen_scope.c.run_id == run_id).order_by(frozen_scope.c.wave)
    return query if wave is None else query.where(frozen_scope.c.wave == wave)


def _find_freeze_row(conn: Connection, run_id: str, wave: int) -> Row[Any] | None:
    found: Row[Any] | None = conn.execute(_select_freezes(run_id, wave)).first()
    return found


def _find_live_write_row(conn: Connection, token: str) -> Row[Any] | None:
    found: Row[Any] | None = conn.execute(select(live_write).where(live_write.c.token == token)).first()
    return found


def _update_freeze(tx: Tx, row: Row[Any], **values: Any) -> None:
    own = (frozen_scope.c.run_id == row.run_id) & (frozen_scope.c.wave == row.wave)
    tx.conn.execute(frozen_scope.update().where(own).values(values))


def _is_open(row: Row[Any], now_ms: int) -> bool:
    return row.ended_at is None and bool(row.lease_until > now_ms)


def _has_overlap(ours: Collection[str], theirs: Collection[str]) -> bool:
    """Whether two scopes share a partition; an empty scope is the whole table."""
    return not ours or not theirs or not set(ours).isdisjoint(theirs)


def _load_open_freezes(
    conn: Connection, table: str, partitions: Collection[str], now_ms: int
) -> tuple[FreezeRecord, ...]:
    query = (
        select(frozen_scope)
        .where(frozen_scope.c.table_name == table, frozen_scope.c.ended_at.is_(None))
        .order_by(frozen_scope.c.run_id, frozen_scope.c.wave)
    )
    found = [_freeze_from_row(row, now_ms) for row in conn.execute(query) if _is_open(row, now_ms)]
    return tuple(one for one in found if _has_overlap(one.partitions, partitions))


def _load_live_writes(conn: Connection, table: str, partitions: Collection[str]) -> tuple[LiveWriteRecord, ...]:
    query = select(live_write).where(live_write.c.table_name == table)
    rows = conn.execute(query.order_by(live_write.c.started_at, live_write.c.token))
    found = [
        build_record(LiveWriteRecord, row, partitions=parse_texts(row.partitions), owner=Owner(**json.loads(row.owner)))
        for row in rows
    ]
    return tuple(one for one in found if _has_overlap(one.partitions, partitions))


def _freeze_from_row(row: Row[Any], now_ms: int) -> FreezeRecord:
    return build_record(FreezeRecord, row, partitions=parse_texts(row.partitions), is_open=_is_open(row, now_ms))
