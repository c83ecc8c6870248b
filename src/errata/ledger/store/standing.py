"""Standing approvals: decisions on them, and the runs that used one.

A use is inserted in the transaction that seals its run, and the limits are counted there. Writers of the ledger take
turns, so that two processes that start at once count each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from errata.canonical import digest_of
from errata.errors import ApprovalRefused, NotFound
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import RunRecord, StandingDecision, StandingRecord, StandingUse
from errata.ledger.schema.definition import standing, standing_decision, standing_use
from errata.ledger.store.base import Refusal, Store, build_record, find_run, move_run, to_json_text
from errata.model.audit import Actor
from errata.model.run import RunState

DAY_MS = 86_400_000
Cover = Callable[[StandingRecord, int, int, str], str]
"""(standing approval, runs and partitions of the last day, now) → why it does not cover one more run, or empty."""


class StandingApprovals(Store):
    """Decisions that cover the runs of a product in advance."""

    def decide(
        self, product: str, subject: Mapping[str, Any], person: str, decision: str, note: str, actor: Actor
    ) -> StandingRecord:
        """Record a decision on this subject."""
        digest = digest_of(subject)

        def work(tx: Tx) -> StandingRecord:
            body = {"product": product, "digest": digest, "person": person, "note": note}
            seq = append_entry(tx, actor, f"standing.{decision}", None, body).seq
            row = {"digest": digest, "product": product, "subject": to_json_text(subject), "at": tx.at}
            if tx.conn.execute(select(standing.c.digest).where(standing.c.digest == digest)).first() is None:
                tx.conn.execute(standing.insert(), row | {"audit_seq": seq})
            given = {"digest": digest, "person": person, "decision": decision, "note": note, "at": tx.at}
            tx.conn.execute(standing_decision.insert(), given | {"audit_seq": seq})
            return _load(tx.conn, digest)

        return self._write(actor, work)

    def list(self, product: str | None = None) -> tuple[StandingRecord, ...]:
        """Standing approvals of a product, or of all, newest first."""
        query = select(standing.c.digest).order_by(standing.c.at.desc(), standing.c.digest)
        if product is not None:
            query = query.where(standing.c.product == product)
        return self._read(lambda conn: tuple(_load(conn, digest) for digest in conn.execute(query).scalars().all()))

    def get(self, digest: str) -> StandingRecord:
        """The standing approval with this digest."""
        return self._read(lambda conn: _load(conn, digest))

    def find_used(self, run_id: str) -> StandingRecord | None:
        """The standing approval that a run was sealed under."""
        return self._read(lambda conn: find_used_standing(conn, run_id))


def find_used_standing(conn: Connection, run_id: str) -> StandingRecord | None:
    """The standing approval that a run was sealed under."""
    digest = conn.execute(select(standing_use.c.digest).where(standing_use.c.run_id == run_id)).scalar()
    return None if digest is None else _load(conn, digest)


def use_standing(tx: Tx, run: RunRecord, digest: str, actor: Actor, cover: Cover) -> RunRecord:
    """Count and record that a run uses a standing approval, and approve it, in the transaction that seals the run."""
    since = tx.now_ms - DAY_MS
    mine = (standing_use.c.product == run.product) & (standing_use.c.at_ms > since)
    runs, partitions = tx.conn.execute(
        select(func.count(), func.coalesce(func.sum(standing_use.c.partitions), 0)).where(mine)
    ).one()
    found = _load(tx.conn, digest)
    if why := cover(found, int(runs), int(partitions), tx.at):
        error = ApprovalRefused(
            f"the standing approval {digest[:12]} does not cover this run: {why}",
            state="nothing was planned",
            hint=f"errata standing show {run.product}",
            why=why,
        )
        raise Refusal(error, run_id=None, action="standing.used", body={"digest": digest, "why": why})
    body = {"digest": digest, "runs": int(runs) + 1, "partitions": int(partitions) + len(run.partitions)}
    row = {
        "run_id": run.run_id, "digest": digest, "product": run.product, "partitions": len(run.partitions),
        "at": tx.at, "at_ms": tx.now_ms, "audit_seq": tx.head_seq + 1,
    }  # fmt: skip
    # the trigger wants a planned run, so the use comes before the move
    tx.conn.execute(standing_use.insert(), row)
    move_run(tx, run, RunState.APPROVED, actor, "standing.used", body)
    return find_run(tx.conn, run.run_id)


def _load(conn: Connection, digest: str) -> StandingRecord:
    row = conn.execute(select(standing).where(standing.c.digest == digest)).first()
    if row is None:
        raise NotFound(f"there is no standing approval {digest} in this ledger", state="nothing was changed")
    given = conn.execute(
        select(standing_decision).where(standing_decision.c.digest == digest).order_by(standing_decision.c.id)
    )
    decisions = tuple(build_record(StandingDecision, one) for one in given)
    used = conn.execute(select(standing_use).where(standing_use.c.digest == digest).order_by(standing_use.c.at_ms))
    uses = tuple(build_record(StandingUse, one) for one in used)
    return StandingRecord(row.digest, row.product, json.loads(row.subject), row.at, decisions, uses)
