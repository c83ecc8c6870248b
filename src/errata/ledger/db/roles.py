"""SQL for the two roles of a PostgreSQL ledger: an owner, and a working role that cannot bypass a trigger. Pure.

The grants follow from the constraints: no UPDATE on tables whose rows never change, no DELETE on tables whose rows are
never removed. Only the owner may disable a trigger, truncate a table or replace a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from errata.errors import UsageError
from errata.ledger.schema.definition import metadata
from errata.ledger.schema.trigger_rules import build_constraints
from errata.ledger.schema.trigger_sql import FUNCTION_PREFIX

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_VERSION = "alembic_version"
_ERASED_COLUMNS = ("handle", "secret", "audit_seq")
"""Columns that the erasure of a person changes; the pseudonym stays."""

_TEXT = """\
-- Roles of an Errata ledger in PostgreSQL. Run it in the ledger's database as a superuser, after `errata ledger
-- create` with the owner's URL made the tables, and again after each upgrade. Running it twice changes nothing.
--
-- {owner} owns the tables: it creates and migrates them, and it alone can lift a rule.
-- {app} works: it adds to the audit and reads it, and can neither change, remove nor empty what was written.
BEGIN;

DO $errata$
DECLARE
    routine regprocedure;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{owner}') THEN
        CREATE ROLE {owner} LOGIN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{app}') THEN
        CREATE ROLE {app} LOGIN;
    END IF;
    FOR routine IN
        SELECT oid FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace AND proname LIKE '{prefix}%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO {owner}', routine);
    END LOOP;
END
$errata$;

REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {app};
GRANT USAGE, CREATE ON SCHEMA {schema} TO {owner};
GRANT USAGE ON SCHEMA {schema} TO {app};
{owners}
REVOKE ALL ON {all} FROM PUBLIC, {app};
GRANT SELECT ON {all} TO {app};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {app};
GRANT INSERT ON {inserted} TO {app};
GRANT UPDATE ON {updated} TO {app};
GRANT UPDATE ({erased}) ON {schema}.subject TO {app};
GRANT DELETE ON {deleted} TO {app};

COMMIT;
"""


def render_roles_sql(owner: str = "errata_owner", app: str = "errata_app", schema: str = "public") -> str:
    """SQL that creates both roles and grants each what it needs."""
    for name in (owner, app, schema):
        if not _NAME.fullmatch(name):
            raise UsageError(f"the name {name!r} was refused; expected lower-case letters, digits and _")
    if owner == app:
        raise UsageError("one role for both was refused; expected an owner, and another role for the daily work")
    tables = sorted(metadata.tables)
    never = {
        kind: {rule.table for rule in build_constraints() if rule.on == kind and not rule.refused_when}
        for kind in _KINDS
    }
    # only migrations write these
    fixed = {"meta", "transition"}
    return _TEXT.format(
        owner=owner,
        app=app,
        schema=schema,
        prefix=FUNCTION_PREFIX.replace("_", r"\_"),
        # by name, because a shared schema also holds other tables
        all=_join_names(schema, {*tables, _VERSION}),
        owners="\n".join(f"ALTER TABLE {schema}.{name} OWNER TO {owner};" for name in (*tables, _VERSION)),
        inserted=_join_names(schema, set(tables) - fixed - {"audit_head"}),
        updated=_join_names(schema, set(tables) - never["update"] - {"subject"}),
        erased=", ".join(_ERASED_COLUMNS),
        deleted=_join_names(schema, set(tables) - never["delete"]),
    )


_KINDS = ("update", "delete")


def _join_names(schema: str, tables: Iterable[str]) -> str:
    return ", ".join(f"{schema}.{name}" for name in sorted(tables))
