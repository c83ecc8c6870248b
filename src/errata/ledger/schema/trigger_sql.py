"""Constraints of the ledger as triggers, for SQLite and for PostgreSQL. Pure.

Triggers are code, not data: each migration drops and recreates all of them. ``seen`` is how the database shows an
unmodified trigger, so that a dropped, disabled or weakened trigger is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import Template

from errata.ledger.schema.definition import metadata
from errata.ledger.schema.trigger_rules import APPEND_ONLY, NEVER_DELETED, REMEASURED, Constraint, build_constraints

FUNCTION_PREFIX = "errata_"
"""Prefix of the PostgreSQL functions that belong to triggers."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger: the statements that create it, and how the database shows it afterwards."""

    name: str
    statements: tuple[str, ...]
    seen: str


def build_sqlite_triggers() -> tuple[Trigger, ...]:
    """All constraints, the update of the chain's head, and no REPLACE, which deletes rows without delete triggers."""
    made = {rule.name: _render_sqlite_trigger(rule) for rule in (*build_constraints(), *_iterate_no_replace())}
    made["audit_head_follows"] = _SQLITE_HEAD_TRIGGER
    return tuple(Trigger(name, (sql,), sql) for name, sql in made.items())


def build_postgres_triggers(schema: str) -> tuple[Trigger, ...]:
    """All constraints, the update of the chain's head, and no TRUNCATE; tables are looked up only in ``schema``.

    ``schema`` is already quoted. Conditions are in functions instead of WHEN clauses, because PostgreSQL keeps the
    text of functions as written.
    """
    made = [_build_constraint_trigger(rule, schema) for rule in build_constraints()]
    kept = [_build_truncate_trigger(table, schema) for table in sorted(metadata.tables)]
    follows = _build_postgres_trigger(
        "audit_head_follows", "audit", ("after", "row", "insert"), _HEAD_TRIGGER_BODY, schema
    )
    return (*made, *kept, follows)


# ------------------------------------------------------------------------------------------------------------ SQLite

_SQLITE_WORDS = {
    "differs": "IS NOT",
    "from": "json_extract(body, '$.move.from')",
    "to": "json_extract(body, '$.move.to')",
    "kind": "json_extract(CAST(content AS TEXT), '$.kind')",
    "campaign": "json_extract(CAST(content AS TEXT), '$.campaign')",
}

_SQLITE_HEAD_TRIGGER = """\
CREATE TRIGGER audit_head_follows AFTER INSERT ON audit
BEGIN UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash; END"""


def _render_sqlite_trigger(rule: Constraint) -> str:
    condition = Template(rule.refused_when).substitute(_SQLITE_WORDS)
    when = f"\nWHEN {condition}" if condition else ""
    return (
        f"CREATE TRIGGER {rule.name} BEFORE {rule.on.upper()} ON {rule.table}{when}\n"
        f"BEGIN SELECT RAISE(ABORT, '{rule.message}'); END"
    )


def _iterate_no_replace() -> Iterator[Constraint]:
    for table in (*APPEND_ONLY, *NEVER_DELETED, *REMEASURED):
        keys = " AND ".join(f"{column.name} = NEW.{column.name}" for column in metadata.tables[table].primary_key)
        there = f"EXISTS (SELECT 1 FROM {table} WHERE {keys})"  # noqa: S608
        yield Constraint(f"{table}_no_replace", table, "insert", there, "the row exists, it is never replaced")


# -------------------------------------------------------------------------------------------------------- PostgreSQL

_POSTGRES_WORDS = {
    "differs": "IS DISTINCT FROM",
    "from": "(body::json #>> '{move,from}')",
    "to": "(body::json #>> '{move,to}')",
    "kind": "(convert_from(content, 'UTF8')::json ->> 'kind')",
    "campaign": "(convert_from(content, 'UTF8')::json ->> 'campaign')",
}
_HEAD_TRIGGER_BODY = "BEGIN UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash; RETURN NULL; END"
# The bits of pg_trigger.tgtype.
_TGTYPE_BITS = {"row": 1, "before": 2, "insert": 4, "delete": 8, "update": 16, "truncate": 32}


def format_postgres_trigger(table: str, kind: int, enabled: str, setting: str, body: str) -> str:
    """Comparable text of a trigger: table, timing, whether it is enabled, search path and condition, body."""
    return f"{table} {kind} {enabled} {setting} {body}"


def _build_constraint_trigger(rule: Constraint, schema: str) -> Trigger:
    raises = f"RAISE EXCEPTION '{rule.message}' USING ERRCODE = 'integrity_constraint_violation';"
    condition = Template(rule.refused_when).substitute(_POSTGRES_WORDS)
    check = f"IF {condition} THEN {raises} END IF;" if condition else raises
    row = "OLD" if rule.on == "delete" else "NEW"
    return _build_postgres_trigger(
        rule.name, rule.table, ("before", "row", rule.on), f"BEGIN {check} RETURN {row}; END", schema
    )  # fmt: skip


def _build_truncate_trigger(table: str, schema: str) -> Trigger:
    why = f"{table}: truncate refused, these rows are kept as written"
    body = f"BEGIN RAISE EXCEPTION '{why}' USING ERRCODE = 'integrity_constraint_violation'; END"
    return _build_postgres_trigger(f"{table}_no_truncate", table, ("before", "statement", "truncate"), body, schema)


def _build_postgres_trigger(name: str, table: str, moment: tuple[str, str, str], body: str, schema: str) -> Trigger:
    time, each, verb = moment
    # pg_temp comes last, so that a temporary table cannot shadow a table of the ledger.
    path = f"{schema}, pg_temp"
    function = (
        f"CREATE FUNCTION {FUNCTION_PREFIX}{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = {path}"
        f" AS $errata${body}$errata$"
    )
    trigger = (
        f"CREATE TRIGGER {name} {time.upper()} {verb.upper()} ON {table}"
        f" FOR EACH {each.upper()} EXECUTE FUNCTION {FUNCTION_PREFIX}{name}()"
    )
    kind = sum(_TGTYPE_BITS.get(word, 0) for word in moment)
    return Trigger(name, (function, trigger), format_postgres_trigger(table, kind, "O", f"search_path={path}", body))
