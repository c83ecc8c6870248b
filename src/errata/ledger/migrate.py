"""Brings a ledger to the newest schema, forward only, in one transaction.

The usual case (the version is the newest) is one query and does not import Alembic. Otherwise the version is read
again under the write lock, so two processes that start together migrate once.
"""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, text

from errata.errors import SetupError
from errata.ledger import schema, triggers
from errata.ledger.database import Database
from errata.model.audit import GENESIS

__all__ = ["bring_up", "finish", "missing_triggers"]


def bring_up(database: Database) -> str:
    """Migrate if needed; returns the ledger's id."""
    found = database.read(_ready)
    if found is not None:
        return found
    database.bare(_upgrade)
    made = database.read(_ready)
    if made is None:
        raise SetupError(f"the ledger {database.path} has no usable schema after its migration")
    return made


def missing_triggers(conn: Connection) -> tuple[str, ...]:
    """The rules that the database no longer enforces as written."""
    rows = conn.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
    found = {str(name): str(sql) for name, sql in rows}
    return tuple(sorted(name for name, sql in triggers.sqlite_triggers().items() if found.get(name) != sql))


def _ready(conn: Connection) -> str | None:
    tables = conn.execute(text("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"))
    if tables.first() is None:
        return None
    version = conn.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in schema.KNOWN:
        raise SetupError(
            f"the ledger was not opened; expected schema {schema.HEAD} or older, found {version}",
            state="nothing was changed",
            hint="it was written by a newer Errata; upgrade this one",
        )
    if version != schema.HEAD:
        return None
    return conn.execute(text("SELECT value FROM meta WHERE key = 'ledger_id'")).scalar()


def _upgrade(conn: Connection) -> None:
    if _ready(conn) is not None:
        return
    from alembic import command
    from alembic.config import Config

    _drop_triggers(conn)
    config = Config()
    config.set_main_option("script_location", "errata.ledger:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    command.upgrade(config, "head")
    finish(conn)


def finish(conn: Connection) -> None:
    """What every migration ends with: the seeds, and all triggers as this version writes them."""
    _seed(conn)
    for statement in triggers.sqlite_triggers().values():
        conn.exec_driver_sql(statement)


def _drop_triggers(conn: Connection) -> None:
    for name in conn.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all():
        quoted = conn.dialect.identifier_preparer.quote(name)
        conn.exec_driver_sql(f"DROP TRIGGER {quoted}")


def _seed(conn: Connection) -> None:
    moves = [dict(zip(("kind", "from_state", "to_state"), move, strict=True)) for move in triggers.transitions()]
    conn.execute(schema.transition.delete())
    conn.execute(schema.transition.insert(), moves)
    if conn.execute(text("SELECT 1 FROM audit_head")).first() is None:
        conn.execute(schema.audit_head.insert(), {"one": 1, "seq": 0, "hash": GENESIS})
        conn.execute(schema.meta.insert(), {"key": "ledger_id", "value": secrets.token_hex(8)})
