"""The hold between two publications of a run, on the database's clock: whoever comes second waits it out as well."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from errata.ledger.database import Tx
from errata.ledger.records import RunRecord
from errata.ledger.schema import publication
from errata.ledger.store import Refusal
from errata.model.groups import held_error

__all__ = ["need_hold_over"]


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
