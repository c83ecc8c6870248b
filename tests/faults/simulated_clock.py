"""The clock of a simulation, which is also the clock of every SQLite connection made under it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, event

START_MS = 1_900_000_000_000


class Clock:
    """The only time there is."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    @contextmanager
    def under_sqlite(self) -> Iterator[None]:
        """Every connection made meanwhile has this time."""

        def connected(connection: Any, _record: object) -> None:
            if isinstance(connection, sqlite3.Connection):
                connection.create_function("julianday", 1, lambda _: 2440587.5 + self.now_ms / 86_400_000)
                connection.create_function("strftime", 2, lambda *_: self.text())

        event.listen(Engine, "connect", connected)
        try:
            yield
        finally:
            event.remove(Engine, "connect", connected)

    def text(self) -> str:
        """As the ledger writes instants."""
        return datetime.fromtimestamp(self.now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
