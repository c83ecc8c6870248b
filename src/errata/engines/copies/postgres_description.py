"""A table of PostgreSQL as its catalog describes it: columns, indexes, and what meets rows that are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errata.model.copy.delivery import WarehouseColumn, WarehouseTable

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """\
SELECT attname, format_type(atttypid, atttypmod), attnotnull, atthasdef OR attidentity <> '',
       attgenerated <> '' OR attidentity = 'a'
FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_INDEXED = """\
SELECT DISTINCT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE indrelid = to_regclass(%(table)s) AND indisvalid AND indpred IS NULL
UNION SELECT attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
WHERE partrelid = to_regclass(%(table)s)
ORDER BY 1"""
_OBSTACLES = {
    "triggers": "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass(%(table)s) AND NOT tgisinternal",
    "foreign keys": "SELECT conname FROM pg_constraint"
    " WHERE contype = 'f' AND to_regclass(%(table)s) IN (conrelid, confrelid)",
    "row policies": "SELECT polname FROM pg_policy WHERE polrelid = to_regclass(%(table)s)"
    " UNION SELECT 'row security' FROM pg_class WHERE oid = to_regclass(%(table)s) AND relrowsecurity",
    "rules": "SELECT rulename FROM pg_rewrite WHERE ev_class = to_regclass(%(table)s) AND rulename <> '_RETURN'",
    "views": "SELECT relname FROM pg_class WHERE oid = to_regclass(%(table)s) AND relkind NOT IN ('r', 'p')",
}  # fmt: skip
"""What people have to know before rows are deleted and inserted again; ``views``: it is no table at all."""

# a right on some columns may be enough, because statements name theirs
_GRANTS = """\
WITH copy AS (SELECT relname, nspname, place.oid AS place, concat_ws(', ',
    CASE WHEN NOT has_any_column_privilege(pg_class.oid, 'SELECT') THEN 'select' END,
    CASE WHEN NOT has_any_column_privilege(pg_class.oid, 'INSERT') THEN 'insert' END,
    CASE WHEN NOT has_table_privilege(pg_class.oid, 'DELETE') THEN 'delete' END) AS rights
  FROM pg_class JOIN pg_namespace place ON place.oid = relnamespace WHERE pg_class.oid = to_regclass(%(table)s))
SELECT format('grant %%s on %%I.%%I to %%I', rights, nspname, relname, current_user) FROM copy WHERE rights <> ''
UNION ALL SELECT format('grant create on schema %%I to %%I', nspname, current_user) FROM copy
WHERE NOT has_schema_privilege(place, 'CREATE')"""
"""Statements that give the role what it lacks for a delivery."""


def describe_table(conn: psycopg.Connection[Any], quoted: str) -> WarehouseTable | None:
    """The table as it is now; None: there is none."""
    named = {"table": quoted}
    columns = tuple(
        WarehouseColumn(name, kind, is_required, has_default, is_generated)
        for name, kind, is_required, has_default, is_generated in conn.execute(_COLUMNS, named).fetchall()
    )
    if not columns:
        return None
    indexed = tuple(row[0] for row in conn.execute(_INDEXED, named).fetchall())
    obstacles: dict[str, tuple[str, ...]] = {}
    for kind, query in _OBSTACLES.items():
        if names := tuple(sorted(row[0] for row in conn.execute(query, named))):
            obstacles[kind] = names
    grants = tuple(row[0] for row in conn.execute(_GRANTS, named).fetchall())
    return WarehouseTable(columns, indexed, obstacles=obstacles, grants=grants)
