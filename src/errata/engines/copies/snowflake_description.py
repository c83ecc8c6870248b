"""A table of Snowflake as it describes itself: columns, clustering, and what meets rows that are replaced."""

from __future__ import annotations

import re
from collections.abc import Callable

from errata.engines.copies.snowflake_session import Answer, Session, StatementRefused
from errata.engines.copies.snowflake_statements import quote_table
from errata.model.copy.delivery import WarehouseColumn, WarehouseTable
from errata.model.copy.partition_scope import quote_text
from errata.model.copy.resolution import NOT_A_TABLE
from errata.model.copy.row_text import Dialect

_POLICIES = """\
SELECT POLICY_NAME, POLICY_KIND
FROM TABLE(INFORMATION_SCHEMA.POLICY_REFERENCES(REF_ENTITY_NAME => ?, REF_ENTITY_DOMAIN => 'table'))"""


def describe_table(session: Session, table: str, database: str, schema: str) -> WarehouseTable | None:
    """The table as it is now; None: there is none, or the role may not see it."""
    try:
        columns = session.run(f"DESCRIBE TABLE {quote_table(table)}")
    except StatementRefused as refused:
        if refused.is_missing_table:
            return None
        raise
    parts = table.split(".")
    place = quote_table(".".join([database, schema][: 3 - len(parts)] + parts[:-1]))
    looks: dict[str, Callable[[], tuple[str, ...]]] = {
        "policies": lambda: _list_policies(session, table, columns),
        "streams": lambda: _list_naming(session, f"SHOW STREAMS IN SCHEMA {place}", "table_name", parts[-1]),
        "dynamic tables": lambda: _list_naming(session, f"SHOW DYNAMIC TABLES IN SCHEMA {place}", "text", parts[-1]),
    }
    found = {kind: _look(look) for kind, look in looks.items()} | _look_at_kind(session, place, parts[-1])
    return WarehouseTable(
        tuple(
            WarehouseColumn(str(name), str(kind), nullable == "N", default is not None, expression is not None)
            for name, kind, nullable, default, expression in columns.read(
                "name", "type", "null?", "default", "expression"
            )
        ),
        has_indexes=False,
        obstacles={kind: names for kind, names in found.items() if names},
    )


def _look(look: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """What is found, or that the role may not look, which is worth a warning as well."""
    try:
        return look()
    except StatementRefused as refused:
        return (f"unknown, because the role may not see them ({refused.number:06d})",)


def _list_policies(session: Session, table: str, columns: Answer) -> tuple[str, ...]:
    """Row access and masking policies: what they hide from Errata's role is missing in every checksum."""
    on_columns = [str(policy) for (policy,) in columns.read("policy name") if policy]
    on_table = [f"{name} ({kind})" for name, kind in session.run(_POLICIES, (quote_table(table),)).rows]
    return tuple(dict.fromkeys([*on_columns, *on_table]))


def _list_naming(session: Session, statement: str, column: str, table: str) -> tuple[str, ...]:
    """Objects of the schema whose column has the name of the table in it, as a word."""
    word = re.compile(rf"(?<![\w$]){re.escape(table)}(?![\w$])", re.IGNORECASE)
    return tuple(str(name) for name, text in session.run(statement).read("name", column) if word.search(str(text)))


def _look_at_kind(session: Session, place: str, table: str) -> dict[str, tuple[str, ...]]:
    """That it is a view; or a table without time travel, where rows of others that were deleted unseen are lost."""
    rows = session.run(f"SHOW TABLES LIKE {quote_text(Dialect.SNOWFLAKE, table)} IN SCHEMA {place}")
    # an underscore of the pattern matches any character
    kept = [days for name, days in rows.read("name", "retention_time") if name == table]
    if not kept:
        return {NOT_A_TABLE: (table,)}
    return {"time travel": ("retention of 0 days",)} if str(kept[0]) == "0" else {}
