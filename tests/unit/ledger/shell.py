"""Someone with a shell of the database: SQL past every line of Errata, each statement a transaction of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import IntegrityError

__all__ = ["Shell", "refused"]


class Shell:
    """A bare connection to the ledger's database."""

    def __init__(self, url: str) -> None:
        self.is_postgres = url.startswith("postgresql")
        self._conn: Any
        if self.is_postgres:
            self._conn = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        else:
            self._conn = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)

    def execute(self, sql: str, *values: Any) -> Any:
        """The driver's cursor; each ``?`` of the statement gets a value."""
        return self._conn.execute(sql.replace("?", "%s") if self.is_postgres else sql, *([values] if values else []))

    def drop_rule(self, table: str, name: str) -> None:
        """Remove a trigger, as the owner of the tables can."""
        self.execute(f"DROP TRIGGER {name} ON {table}" if self.is_postgres else f"DROP TRIGGER {name}")

    def disarm(self, *tables: str) -> None:
        """Remove every trigger of these tables, as their owner can."""
        for table in tables:
            if self.is_postgres:
                self.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
                continue
            rules = self.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", table)
            for (name,) in rules.fetchall():
                self.execute(f"DROP TRIGGER {name}")

    def replace(self, table: str, key: str) -> str:
        """A statement that would put a row in the place of another one, as far as this database can."""
        copy = f"INTO {table} SELECT * FROM {table} LIMIT 1"
        if not self.is_postgres:
            return f"INSERT OR REPLACE {copy}"
        first = key.partition(",")[0]
        return f"INSERT {copy} ON CONFLICT ({key}) DO UPDATE SET {first} = EXCLUDED.{first}"

    def close(self) -> None:
        self._conn.close()


def refused(act: Callable[[], object], why: str) -> None:
    """The database itself says no, whoever asks."""
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError, IntegrityError), match=why):
        act()
