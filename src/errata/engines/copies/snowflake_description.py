"""A table of Snowflake as it describes itself: columns, clustering, and what meets rows that are replaced."""

from __future__ import annotations

from errata.engines.copies.snowflake_session import Answer, Session, StatementRefused
from errata.engines.copies.snowflake_statements import quote_table
from errata.model.copy.delivery import WarehouseColumn, WarehouseTable

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
    place = quote_table(".".join(_qualify(table, database, schema)[:2]))
    found = {
        "policies": _list_policies(session, table, columns),
        "streams": _list_naming(session, f"SHOW STREAMS IN SCHEMA {place}", "table_name", table),
        "dynamic tables": _list_naming(session, f"SHOW DYNAMIC TABLES IN SCHEMA {place}", "text", table),
        "time travel": _list_missing_history(session, place, table),
    }
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


def _qualify(table: str, database: str, schema: str) -> list[str]:
    parts = table.split(".")
    return [database, schema, *parts][-3:] if len(parts) < 3 else parts


def _list_policies(session: Session, table: str, columns: Answer) -> tuple[str, ...]:
    """Row access and masking policies: what they hide from Errata's role is missing in every checksum."""
    on_columns = [str(policy) for (policy,) in columns.read("policy name") if policy]
    on_table = [f"{name} ({kind})" for name, kind in session.run(_POLICIES, (quote_table(table),)).rows]
    return tuple(dict.fromkeys([*on_columns, *on_table]))


def _list_naming(session: Session, statement: str, column: str, table: str) -> tuple[str, ...]:
    """Objects of the schema whose column has the name of the table in it."""
    bare = table.rpartition(".")[2].upper()
    return tuple(str(name) for name, text in session.run(statement).read("name", column) if bare in str(text).upper())


def _list_missing_history(session: Session, place: str, table: str) -> tuple[str, ...]:
    """Without time travel, rows of others that a delivery replaced by accident could not be found afterwards."""
    bare = table.rpartition(".")[2]
    rows = session.run(f"SHOW TABLES LIKE '{bare}' IN SCHEMA {place}").read("name", "retention_time")
    kept = [days for name, days in rows if name == bare]
    return ("retention of 0 days",) if kept and str(kept[0]) == "0" else ()
