"""Create a ledger, or migrate it to the newest schema, forward only, in one transaction.

A new ledger is made from the definition of its tables and stamped with the newest version, as Alembic recommends.
In the usual case the version is the newest: one read, and Alembic is not imported. Otherwise the version is read again
under the writers' lock, so two processes that start together migrate once.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from errata.errors import NotFound, SetupError
from errata.ledger.db.database import Database
from errata.ledger.db.dialect import Dialect
from errata.ledger.schema import definition, trigger_rules
from errata.model.audit import GENESIS

if TYPE_CHECKING:
    from alembic.config import Config


def migrate_ledger(database: Database, *, create: bool) -> str:
    """Migrate if needed; returns the ledger's id. Raises ``NotFound`` if there is none and ``create`` is false."""
    dialect = database.dialect
    found = database.peek(_read_ledger_id) if dialect.has_place() else None
    if found is not None:
        return found
    if create:
        dialect.make_place()
    elif not (dialect.has_place() and database.peek(_is_ledger)):
        raise NotFound(
            f"there is no ledger yet at {database.place}, the ledger of errata.yaml",
            state="nothing has been recorded there, and nothing was created; "
            "if you have a ledger, correct ledger in errata.yaml; otherwise the first plan creates it",
            hint="errata doctor",
        )
    database.bare(lambda conn: _upgrade(conn, dialect))
    made = database.peek(_read_ledger_id)
    if made is None:
        raise SetupError(f"the ledger {database.place} has no usable schema after its migration")
    return made


def find_missing_triggers(conn: Connection, dialect: Dialect) -> tuple[str, ...]:
    """Names of triggers that are missing or altered."""
    found = dialect.read_triggers(conn)
    return tuple(sorted(one.name for one in dialect.expected_triggers(conn) if found.get(one.name) != one.seen))


def _is_ledger(conn: Connection) -> bool:
    return inspect(conn).has_table("alembic_version")


def _read_ledger_id(conn: Connection) -> str | None:
    if not _is_ledger(conn):
        return None
    version = conn.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in definition.KNOWN_VERSIONS:
        is_unreleased = version < definition.KNOWN_VERSIONS[0]
        raise SetupError(
            f"the ledger was not opened; expected schema {definition.LATEST_VERSION}, found {version}",
            state="nothing was changed",
            hint="it was written before the first release and cannot be migrated; begin a new ledger"
            if is_unreleased
            else "it was written by a newer Errata; upgrade this one",
        )
    if version != definition.LATEST_VERSION:
        return None
    return conn.execute(text("SELECT value FROM meta WHERE key = 'ledger_id'")).scalar()


def _upgrade(conn: Connection, dialect: Dialect) -> None:
    if _read_ledger_id(conn) is not None:
        return  # another process migrated while this one waited for the lock
    from alembic import command

    config = build_alembic_config(conn)
    if _is_ledger(conn):
        dialect.drop_triggers(conn)
        command.upgrade(config, "head")
    else:
        _create_tables(conn)
        command.stamp(config, "head")
    finish_migration(conn, dialect)


def _create_tables(conn: Connection) -> None:
    definition.metadata.create_all(conn, checkfirst=False)  # a table that is not ours is an error, not reused
    for name, (table, columns, where) in definition.PARTIAL_INDEXES.items():
        conn.exec_driver_sql(f"CREATE UNIQUE INDEX {name} ON {table} ({', '.join(columns)}) WHERE {where}")


def build_alembic_config(conn: Connection | None = None) -> Config:
    """Alembic configuration: location of the migrations and the connection they run on."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "errata.ledger.db:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config


def finish_migration(conn: Connection, dialect: Dialect) -> None:
    """Last step of every migration: seed rows, and all triggers as this version writes them."""
    _seed(conn)
    for trigger in dialect.expected_triggers(conn):
        for statement in trigger.statements:
            conn.exec_driver_sql(statement)


def _seed(conn: Connection) -> None:
    moves = [
        dict(zip(("kind", "from_state", "to_state"), move, strict=True)) for move in trigger_rules.iterate_transitions()
    ]
    conn.execute(definition.transition.delete())
    conn.execute(definition.transition.insert(), moves)
    if conn.execute(text("SELECT 1 FROM audit_head")).first() is None:
        conn.execute(definition.audit_head.insert(), {"one": 1, "seq": 0, "hash": GENESIS})
        conn.execute(definition.meta.insert(), {"key": "ledger_id", "value": secrets.token_hex(8)})
