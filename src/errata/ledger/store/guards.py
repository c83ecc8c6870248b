"""Rollback hazards and guard snapshots of live tables."""

from __future__ import annotations

from sqlalchemy import select

from errata.errors import NotFound
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import HazardRecord
from errata.ledger.schema.definition import guard, hazard
from errata.ledger.store.base import Store, build_record
from errata.model.audit import Actor


class TableGuards(Store):
    """Hazards and guards, which must survive a restart."""

    def open_hazards(self, table: str | None = None) -> tuple[HazardRecord, ...]:
        """Rollbacks whose restored files snapshot expiry by other jobs could still delete."""
        query = select(hazard).where(hazard.c.closed_at.is_(None)).order_by(hazard.c.opened_at, hazard.c.pub_id)
        if table is not None:
            query = query.where(hazard.c.table_name == table)
        return self._read(lambda conn: tuple(build_record(HazardRecord, row) for row in conn.execute(query)))

    def close_hazard(self, pub_id: str, why: str, actor: Actor) -> HazardRecord:
        """Close the hazard of a rollback. Idempotent."""

        def work(tx: Tx) -> HazardRecord:
            query = select(hazard).where(hazard.c.pub_id == pub_id)
            row = tx.conn.execute(query).first()
            if row is None:
                raise NotFound(f"there is no hazard of {pub_id} in this ledger", state="nothing was changed")
            if row.closed_at is not None:
                return build_record(HazardRecord, row)
            seq = append_entry(tx, actor, "hazard.closed", None, {"publication": pub_id, "why": why}).seq
            tx.conn.execute(hazard.update().where(hazard.c.pub_id == pub_id).values(closed_at=tx.at, audit_seq=seq))
            return build_record(HazardRecord, tx.conn.execute(query).one())

        return self._write(actor, work)

    def get(self, table_uuid: str) -> str | None:
        """The snapshot of the table's guard branch, as last recorded."""
        query = select(guard.c.snapshot_id).where(guard.c.table_uuid == table_uuid).order_by(guard.c.id.desc())
        return self._read(lambda conn: conn.execute(query.limit(1)).scalar())

    def get_at(self, table_uuid: str, at: str) -> str | None:
        """The snapshot of the table's guard branch, as recorded at that time."""
        where = (guard.c.table_uuid == table_uuid) & (guard.c.at <= at)
        query = select(guard.c.snapshot_id).where(where).order_by(guard.c.id.desc())
        return self._read(lambda conn: conn.execute(query.limit(1)).scalar())

    def record(self, table_uuid: str, snapshot_id: str, actor: Actor, table: str | None = None) -> None:
        """Record the snapshot of this table's guard branch. Idempotent."""
        if self.get(table_uuid) == snapshot_id:
            return

        def work(tx: Tx) -> None:
            body = {"table_uuid": table_uuid, "table": table, "snapshot_id": snapshot_id}
            seq = append_entry(tx, actor, "guard.recorded", None, body).seq
            row = {"table_uuid": table_uuid, "snapshot_id": snapshot_id, "at": tx.at, "audit_seq": seq}
            tx.conn.execute(guard.insert(), row)

        self._write(actor, work)
