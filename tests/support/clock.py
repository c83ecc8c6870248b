"""The clock of a ledger, so much later than it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from errata.ledger import Ledger

__all__ = ["later", "set_clock"]


def set_clock(ledger: Ledger, at: datetime) -> None:
    """The database says that it is this time, in every transaction from now on."""
    clock = f"SELECT '{at.isoformat()}', {int(at.timestamp() * 1000)}"
    ledger._database._clock, ledger._database._head = text(clock), text(f"{clock}, seq, hash FROM audit_head")


@contextmanager
def later(ledger: Ledger, **ahead: float) -> Iterator[None]:
    """Inside this block the database is ahead by so much."""
    database = ledger._database
    before = database._clock, database._head
    set_clock(ledger, datetime.now(UTC) + timedelta(**ahead))
    try:
        yield
    finally:
        database._clock, database._head = before
