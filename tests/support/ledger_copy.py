"""A PostgreSQL ledger as a SQLite file, so that one checker of invariants reads both. Plain SQL, no product code."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["copy_ledger"]

_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"


def copy_ledger(url: str, place: Path) -> None:
    """Every table with its rows; replaces the file."""
    import psycopg

    place.unlink(missing_ok=True)
    with psycopg.connect(url.replace("+psycopg", "")) as source, closing(sqlite3.connect(place)) as target:
        for (name,) in source.execute(_TABLES).fetchall():
            cursor = source.execute(f'SELECT * FROM "{name}"'.encode())
            columns = [column.name for column in cursor.description or ()]
            target.execute(f'CREATE TABLE "{name}" ({", ".join(f"{column!r}" for column in columns)})')
            marks = ", ".join("?" for _ in columns)
            rows = [tuple(_plain(value) for value in row) for row in cursor.fetchall()]
            target.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        target.commit()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bytes)) else str(value)
