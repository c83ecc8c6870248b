"""Every statement that Errata sends to PostgreSQL for a copy, with names quoted; ``%s`` are parameters.

Between ``BEGIN`` and ``COMMIT`` there is no statement that defines anything.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from errata.model.copy.column_types import to_postgres_type
from errata.model.copy.partition_scope import build_partition_text, build_scope
from errata.model.copy.row_text import ComparedColumn, Dialect, build_sums_query, is_approximate, quote_name
from errata.model.copy.table import CopyTable, name_delivered, name_markers
from errata.model.partition import Grain

CREATE_MARKERS = """\
CREATE TABLE IF NOT EXISTS {markers} (publication text NOT NULL, attempt bigint NOT NULL, state text NOT NULL,
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz, PRIMARY KEY (publication, attempt))"""
CREATE_DELIVERED = """\
CREATE TABLE IF NOT EXISTS {delivered} (partition text PRIMARY KEY, sequence bigint NOT NULL, row_count bigint NOT NULL,
  upper_sum numeric NOT NULL, lower_sum numeric NOT NULL, doubles text NOT NULL, shape text NOT NULL,
  publication text NOT NULL, attempt bigint NOT NULL, own_hash text)"""
# tables of earlier versions have no own hashes; true: this role may change that
FIND_OLD_DELIVERED = """\
SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(%(table)s) AND NOT EXISTS
  (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attname = 'own_hash' AND NOT attisdropped)"""
ADD_OWN_HASH = "ALTER TABLE {delivered} ADD COLUMN IF NOT EXISTS own_hash text"
# without a log: a server that crashes empties it, and the checksum finds that
CREATE_STAGING = "CREATE UNLOGGED TABLE {staging} ({types})"
# staging has no statistics, and the cost of hashes is not known to the planner
USE_WORKERS = "SELECT set_config(name, '0', false) FROM unnest(array['parallel_setup_cost','parallel_tuple_cost']) name"
DROP_STAGING = "DROP TABLE IF EXISTS {staging}"
LIST_STAGING = """\
SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %s)
  AND relnamespace = coalesce(to_regnamespace(%s), current_schema()::regnamespace) ORDER BY relname"""

INSERT_MARKER = """\
INSERT INTO {markers} (publication, attempt, state, ended_at)
VALUES (%s, %s, %s, CASE WHEN %s THEN clock_timestamp() END) ON CONFLICT DO NOTHING"""
# the same for a swap and a fence, so that only one of them changes the row; it locks the row to the end
END_MARKER = """\
UPDATE {markers} SET state = %s, ended_at = clock_timestamp()
WHERE publication = %s AND attempt = %s AND state = 'open'"""
READ_MARKER = "SELECT state FROM {markers} WHERE publication = %s AND attempt = %s"
FIND_LATER = "SELECT 1 FROM {markers} WHERE publication = %s AND attempt > %s LIMIT 1"
LIST_MARKERS = "SELECT attempt, state FROM {markers} WHERE publication = %s ORDER BY attempt"

LOCK = "LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE"
READ_DELIVERED = """\
SELECT partition, sequence, row_count, upper_sum, lower_sum, doubles, shape, publication, attempt,
  coalesce(to_jsonb(d)->>'own_hash', '') FROM {delivered} d
WHERE %(all)s OR partition = ANY(%(names)s)"""
DELETE_ROWS = "DELETE FROM {target} WHERE {scope}"
INSERT_ROWS = "INSERT INTO {target} ({columns}) SELECT {columns} FROM {staging}"
COUNT_SUBJECTS = "SELECT count(*) FROM {target} WHERE %s::text[] && ARRAY[{subjects}]"
READ_ROWS = "SELECT {columns} FROM {target} WHERE {scope}"
DELETE_DELIVERED = "DELETE FROM {delivered} WHERE partition = ANY(%s)"
INSERT_DELIVERED = "INSERT INTO {delivered} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
KEEP_OWN_HASH = "UPDATE {delivered} SET own_hash = %s WHERE partition = %s"


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one copy."""

    copy: CopyTable

    @property
    def schema(self) -> str:
        """The schema of the copy; empty: the first one of the search path."""
        return self.copy.table.rpartition(".")[0]

    @property
    def target(self) -> str:
        """The quoted name of the copy."""
        return quote_table(self.copy.table)

    @property
    def markers(self) -> str:
        """The quoted name of the table of markers."""
        return self.name_beside(name_markers(self.copy.table))

    @property
    def delivered(self) -> str:
        """The quoted name of the table of what partitions hold."""
        return self.name_beside(name_delivered(self.copy.table))

    def name_beside(self, name: str) -> str:
        """The quoted name of a table next to the copy."""
        return quote_table(f"{self.schema}.{name}" if self.schema else name)

    def write(self, template: str, *, staging: str = "", partitions: Collection[str] = ()) -> bytes:
        """The statement with names, columns and scope filled in."""
        quoted = [(quote_name(Dialect.POSTGRES, one.name), one.type) for one in self.copy.columns]
        return template.format(
            target=self.target,
            markers=self.markers,
            delivered=self.delivered,
            staging=self.name_beside(staging),
            columns=", ".join(name for name, _ in quoted),
            types=", ".join(f"{name} {to_postgres_type(kind)}" for name, kind in quoted),
            scope=build_scope(Dialect.POSTGRES, self.copy, partitions),
        ).encode()

    def write_sums(
        self, partitions: Collection[str] | None, *, staging: str | None = None, with_own_hash: bool = False
    ) -> bytes:
        """The query of the checksums of partitions."""
        source = self.target if staging is None else self.name_beside(staging)
        columns = [ComparedColumn(one.name, one.type) for one in self.copy.columns]
        scope = "" if partitions is None else build_scope(Dialect.POSTGRES, self.copy, partitions)
        name = build_partition_text(Dialect.POSTGRES, self.copy)
        own = self.hash_row() if with_own_hash else ""
        return build_sums_query(Dialect.POSTGRES, source, columns, name, scope, own).encode()

    def hash_row(self) -> str:
        """The expression of PostgreSQL's own hash of a row: of its bytes as they are sent to a client.

        The hash of the row itself would be faster, but is made for hash tables: that of a number is the same with
        another sign, and in a sum of hashes two rows may exchange values.
        """
        values = []
        for column in self.copy.columns:
            if not is_approximate(column.type):
                name = quote_name(Dialect.POSTGRES, column.name)
                # types that may be others in the copy than in staging
                values.append(name + {"int": "::bigint", "string": "::text"}.get(column.type, ""))
        return f"hash_record_extended(row(record_send(row({', '.join(values)}))), 0)"

    def write_own_sums(self, partitions: Collection[str]) -> bytes:
        """The query of own hashes: partition, rows, their sum, and sum and number of values of each double column."""
        part, key = build_partition_text(Dialect.POSTGRES, self.copy), self.copy.partition
        sums = ["count(*)", f"sum({self.hash_row()})"]
        for column in self.copy.columns:
            if is_approximate(column.type):
                name = quote_name(Dialect.POSTGRES, column.name)
                sums += [f"sum({name}::double precision)", f"count({name})"]
        # where each value is a partition, its text is needed once and not for each row
        is_value = key.type in ("date", "int", "long") and self.copy.grain in (Grain.DAY, Grain.VALUE)
        group = quote_name(Dialect.POSTGRES, key.name) if is_value else part
        scope = build_scope(Dialect.POSTGRES, self.copy, partitions)
        return f"SELECT {part}, {', '.join(sums)} FROM {self.target} WHERE {scope} GROUP BY {group}".encode()  # noqa: S608


def quote_table(table: str) -> str:
    """A table with its schema, every part quoted."""
    return ".".join(quote_name(Dialect.POSTGRES, part) for part in table.split("."))
