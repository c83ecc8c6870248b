"""What the ledger knows about live tables: expected files after a rewrite, rollback hazards, and the guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, select

from errata.errors import NotFound, UsageError
from errata.ledger.audit import append
from errata.ledger.database import Tx
from errata.ledger.parts import load_part
from errata.ledger.records import HazardRecord, RebaseRecord
from errata.ledger.schema import expected, guard, hazard
from errata.ledger.store import Store, find_run
from errata.model.audit import Actor

__all__ = ["Tables"]


class Tables(Store):
    """Facts about tables that must survive a restart."""

    def record_rebase(self, run_id: str, parts: Mapping[str, str], why: str, actor: Actor) -> None:
        """The files now expected in these partitions: partition → digest of a part that is in the ledger."""
        if not parts:
            raise UsageError(f"a rebase of {run_id} was refused; it names no partition")

        def work(tx: Tx) -> None:
            find_run(tx.conn, run_id)
            for digest in sorted(set(parts.values())):
                load_part(tx.conn, digest)
            seq = append(tx, actor, "run.rebased", run_id, {"partitions": dict(parts), "why": why}).seq
            rows = [
                {"run_id": run_id, "partition": partition, "part_digest": digest, "why": why, "at": tx.at,
                 "audit_seq": seq}
                for partition, digest in parts.items()
            ]  # fmt: skip
            tx.conn.execute(expected.insert(), rows)

        self._write(actor, work)

    def rebases(self, run_id: str) -> tuple[RebaseRecord, ...]:
        """Every rebase, oldest first: the last of a partition holds."""
        query = select(expected).where(expected.c.run_id == run_id).order_by(expected.c.id)
        return self._read(
            lambda conn: tuple(
                RebaseRecord(row.run_id, row.partition, row.part_digest, row.why, row.at) for row in conn.execute(query)
            )
        )

    def open_hazards(self, table: str | None = None) -> tuple[HazardRecord, ...]:
        """Rollbacks whose re-added files others could still expire."""
        query = select(hazard).where(hazard.c.closed_at.is_(None)).order_by(hazard.c.opened_at, hazard.c.pub_id)
        if table is not None:
            query = query.where(hazard.c.table_name == table)
        return self._read(lambda conn: tuple(_hazard(row) for row in conn.execute(query)))

    def close_hazard(self, pub_id: str, why: str, actor: Actor) -> HazardRecord:
        """Say that the danger is over; the same again changes nothing."""

        def work(tx: Tx) -> HazardRecord:
            query = select(hazard).where(hazard.c.pub_id == pub_id)
            row = tx.conn.execute(query).first()
            if row is None:
                raise NotFound(f"there is no hazard of {pub_id} in this ledger", state="nothing was changed")
            if row.closed_at is not None:
                return _hazard(row)
            seq = append(tx, actor, "hazard.closed", None, {"publication": pub_id, "why": why}).seq
            tx.conn.execute(hazard.update().where(hazard.c.pub_id == pub_id).values(closed_at=tx.at, audit_seq=seq))
            return _hazard(tx.conn.execute(query).one())

        return self._write(actor, work)

    def guard(self, table_uuid: str) -> str | None:
        """The snapshot of the table's guard branch, as last recorded."""
        query = select(guard.c.snapshot_id).where(guard.c.table_uuid == table_uuid).order_by(guard.c.id.desc())
        return self._read(lambda conn: conn.execute(query.limit(1)).scalar())

    def record_guard(self, table_uuid: str, snapshot_id: str, actor: Actor, table: str | None = None) -> None:
        """Remember the guard of this table; the same again changes nothing."""
        if self.guard(table_uuid) == snapshot_id:
            return

        def work(tx: Tx) -> None:
            body = {"table_uuid": table_uuid, "table": table, "snapshot_id": snapshot_id}
            seq = append(tx, actor, "guard.recorded", None, body).seq
            row = {"table_uuid": table_uuid, "snapshot_id": snapshot_id, "at": tx.at, "audit_seq": seq}
            tx.conn.execute(guard.insert(), row)

        self._write(actor, work)


def _hazard(row: Row[Any]) -> HazardRecord:
    return HazardRecord(row.pub_id, row.table_name, row.snapshot_id, row.opened_at, row.closed_at)
