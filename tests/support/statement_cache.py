"""Statements that SQLAlchemy has compiled once, for every database of the process.

It keeps them by engine, and each test opens ledgers and catalogs of its own: a fifth of their time went into compiling
the same statements again. They depend on nothing but the dialect, so one of each kind serves all engines, as it does in
a process that has one ledger.
"""

from __future__ import annotations

from sqlalchemy import Connection, Dialect, Engine, event
from sqlalchemy.util import LRUCache

__all__ = ["share_compiled_statements"]

_SIZE = 3000
_dialects: dict[tuple[str, str], Dialect] = {}
_compiled: LRUCache = LRUCache(_SIZE)


def share_compiled_statements() -> None:
    """From now on, for engines that are made or connected later."""
    event.listen(Engine, "engine_connect", _share)


def _share(connection: Connection) -> None:
    engine = connection.engine
    if not connection._has_events:  # the one on which a dialect asks its server what it can do, and may fail
        return
    shared = _dialects.setdefault((engine.dialect.name, engine.dialect.driver), engine.dialect)
    if engine.dialect is not shared:
        engine.dialect = connection.dialect = shared
    engine._compiled_cache = _compiled
