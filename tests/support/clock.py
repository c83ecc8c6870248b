"""Databases whose clock is ahead, or stops: every ledger of this process reads its time from there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, event

from errata.ledger.db.postgres import PostgresDialect
from errata.ledger.db.sqlite import SqliteDialect

__all__ = ["Clock", "later", "stopped_clock"]


class Clock:
    """The time that the databases answer with; it moves only when it is moved."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def move(self, seconds: float) -> None:
        """Later by so much."""
        self.at += timedelta(seconds=seconds)

    def answer(self, _conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        """The statement to execute: a question for the time gets this clock's."""
        time = f"SELECT '{self.at.isoformat()}', CAST({int(self.at.timestamp() * 1000)} AS BIGINT)"
        for dialect in (SqliteDialect, PostgresDialect):
            if statement == dialect.clock:
                return time, parameters
            if statement == dialect.head:
                return f"{time}, seq, hash FROM audit_head", parameters
        return statement, parameters


@contextmanager
def stopped_clock(at: datetime | None = None) -> Iterator[Clock]:
    """Inside this block the databases' clock stands at this time, now by default."""
    clock = Clock(at or datetime.now(UTC))
    answer = clock.answer
    event.listen(Engine, "before_cursor_execute", answer, retval=True)
    try:
        yield clock
    finally:
        event.remove(Engine, "before_cursor_execute", answer)


@contextmanager
def later(**ahead: float) -> Iterator[None]:
    """Inside this block the databases are ahead by so much."""
    with stopped_clock(datetime.now(UTC) + timedelta(**ahead)):
        yield
