"""What keeps the next group of a run back, looked at in the transaction of its intent: the hold, on the database's
clock, and a person who stopped the groups or took a part back. Whoever passed a check before that is held as well."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from errata.ledger.audit import entries
from errata.ledger.database import Tx
from errata.ledger.records import RunRecord
from errata.ledger.schema import publication
from errata.ledger.store import Refusal
from errata.model.groups import GOING, RESUMED, held_error, stopped_error

__all__ = ["need_going", "need_hold_over"]


def need_going(tx: Tx, run: RunRecord, release: Mapping[str, Any] | None) -> None:
    """Refuse a group after a pause or a rollback that nobody has answered with a resume."""
    newest = entries(tx.conn, run.run_id, 1, GOING) if (release or {}).get("group") else ()
    if newest and newest[0].action != RESUMED:
        why = f"{newest[0].action}, entry {newest[0].seq}"
        raise Refusal(stopped_error(run.run_id, why), run_id=run.run_id, action="publish.intended", body={"why": why})


def need_hold_over(tx: Tx, run: RunRecord, release: Mapping[str, Any] | None) -> None:
    """Refuse a group before its time, unless a person let it go early; ``release`` says which hold it was under."""
    group = (release or {}).get("group") or {}
    if not group or group.get("early"):
        return
    mine = (
        (publication.c.run_id == run.run_id) & (publication.c.kind == "publish") & (publication.c.state == "committed")
    )
    last = tx.conn.execute(select(func.max(publication.c.settled_at)).where(mine)).scalar()
    if last is None:
        return
    now = datetime.fromtimestamp(tx.now_ms / 1000, UTC)
    until = datetime.fromisoformat(last) + timedelta(seconds=int(group["hold_seconds"]))
    until -= timedelta(microseconds=until.microsecond % 1000)  # the clock of a transaction counts milliseconds
    if now < until:
        error = held_error(run.run_id, str(group["hold"]), until, now)
        raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"until": error.fields["until"]})
