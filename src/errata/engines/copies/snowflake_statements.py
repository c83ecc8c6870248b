"""Every statement that Errata sends to Snowflake for a copy, with names quoted; ``?`` are parameters.

Between ``BEGIN`` and ``COMMIT`` there are only queries and DML: anything else would commit on its own. The first row of
the markers belongs to no attempt. Every statement that changes a marker changes it too, so that all of them wait for
each other, whichever rows or parts of a table Snowflake locks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from errata.model.copy.column_types import to_snowflake_type
from errata.model.copy.partition_scope import build_partition_text, build_scope, quote_text
from errata.model.copy.row_text import ComparedColumn, Dialect, build_sums_query, quote_name
from errata.model.copy.table import CopyTable, name_delivered, name_markers

# one statement, so that the table is never there without its first row
CREATE_MARKERS = """\
CREATE TABLE IF NOT EXISTS {markers} AS SELECT ''::VARCHAR AS PUBLICATION, 0::NUMBER(19,0) AS ATTEMPT,
  'lock'::VARCHAR AS STATE, 0::NUMBER(19,0) AS CHANGES, CURRENT_TIMESTAMP()::TIMESTAMP_LTZ AS CHANGED_AT"""
CREATE_DELIVERED = """\
CREATE TABLE IF NOT EXISTS {delivered} (PART VARCHAR, SEQ NUMBER(19,0), ROW_COUNT NUMBER(19,0), UPPER_SUM VARCHAR,
  LOWER_SUM VARCHAR, DOUBLES VARCHAR, SHAPE VARCHAR, PUBLICATION VARCHAR, ATTEMPT NUMBER(19,0))"""
# never OR REPLACE: the table of another loader has to stay as it is
CREATE_STAGING = "CREATE TRANSIENT TABLE {staging} ({types}) DATA_RETENTION_TIME_IN_DAYS = 0"
DROP_STAGING = "DROP TABLE IF EXISTS {staging}"
DESCRIBE_STAGING = "DESCRIBE TABLE {staging}"
LIST_STAGING = "SHOW TABLES LIKE '{prefix}%'{in_schema}"

LOAD_FORMAT = "FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
# the files of the table's own stage, which is dropped with it
LOAD_OWN_STAGE = f"COPY INTO {{staging}} FROM {{own_stage}} {LOAD_FORMAT} ON_ERROR = ABORT_STATEMENT"
LOAD_FILES = f"COPY INTO {{staging}} FROM {{stage}} FILES = ({{files}}) {LOAD_FORMAT} ON_ERROR = ABORT_STATEMENT"

READ_MARKERS = "SELECT ATTEMPT, STATE FROM {markers} WHERE PUBLICATION = ? ORDER BY ATTEMPT"
LOCK_MARKERS = "UPDATE {markers} SET CHANGES = CHANGES + 1 WHERE PUBLICATION = ''"
# The same for a swap and a fence, so that only one of them finds the marker open. It reports two rows if it was open,
# one if it was not, and none in another session or transaction than the one that was begun.
END_MARKER = """\
UPDATE {markers} SET STATE = CASE WHEN PUBLICATION = '' THEN STATE ELSE ? END, CHANGES = CHANGES + 1,
  CHANGED_AT = CURRENT_TIMESTAMP()
WHERE (PUBLICATION = '' OR (PUBLICATION = ? AND ATTEMPT = ? AND STATE = 'open'))
  AND CURRENT_SESSION() = ? AND CURRENT_TRANSACTION() = ?"""
# only after one of the two above: no key is enforced
INSERT_MARKER = """\
INSERT INTO {markers} (PUBLICATION, ATTEMPT, STATE, CHANGES, CHANGED_AT) SELECT ?, ?, ?, 1, CURRENT_TIMESTAMP()"""

_RECORD = "PART, SEQ, ROW_COUNT, UPPER_SUM, LOWER_SUM, DOUBLES, SHAPE, PUBLICATION, ATTEMPT"
READ_ALL_DELIVERED = f"SELECT {_RECORD} FROM {{delivered}}"  # noqa: S608 - a list of names
READ_DELIVERED = f"{READ_ALL_DELIVERED} WHERE PART IN ({{holes}})"
DELETE_DELIVERED = "DELETE FROM {delivered} WHERE PART IN ({holes})"
INSERT_DELIVERED = f"INSERT INTO {{delivered}} ({_RECORD}) VALUES {{holes}}"  # noqa: S608 - a list of names
DELETE_ROWS = "DELETE FROM {target} WHERE {scope}"
INSERT_ROWS = "INSERT INTO {target} ({columns}) SELECT {sources} FROM {staging}"
COUNT_SUBJECTS = "SELECT COUNT(*) FROM {target} WHERE {subjects}"
READ_ROWS = "SELECT {columns} FROM {target} WHERE {scope}"
# for a table that reads the lake's own metadata
REFRESH = "ALTER ICEBERG TABLE {target} REFRESH"
READ_REFRESHED = "SELECT SYSTEM$GET_ICEBERG_TABLE_INFORMATION(?)"

_BOUND_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one copy."""

    copy: CopyTable

    @property
    def schema(self) -> str:
        """The schema of the copy, with its database if declared; empty: those of the session."""
        return self.copy.table.rpartition(".")[0]

    @property
    def target(self) -> str:
        """The quoted name of the copy."""
        return quote_table(self.copy.table)

    @property
    def markers(self) -> str:
        """The quoted name of the table of markers."""
        return self._name_beside(self._spell(name_markers(self.copy.table)))

    @property
    def delivered(self) -> str:
        """The quoted name of the table of what partitions hold."""
        return self._name_beside(self._spell(name_delivered(self.copy.table)))

    @property
    def staged(self) -> CopyTable:
        """The copy with the column names of the lake, which are those of staging and of the files that are loaded."""
        columns = tuple(replace(column, name=column.source) for column in self.copy.columns)
        partition = replace(self.copy.partition, name=self.copy.partition.source)
        return replace(self.copy, columns=columns, partition=partition)

    def write(self, template: str, *, staging: str = "", partitions: Collection[str] = (), **more: str) -> str:
        """The statement with names, columns and scope filled in."""
        columns = self.copy.columns
        own = staging.upper()
        return template.format(
            target=self.target,
            markers=self.markers,
            delivered=self.delivered,
            staging=self._name_beside(own),
            own_stage="@" + (f"{quote_table(self.schema)}.%{own}" if self.schema else f"%{own}"),
            in_schema=f" IN SCHEMA {quote_table(self.schema)}" if self.schema else "",
            columns=", ".join(quote(one.name) for one in columns),
            sources=", ".join(quote(one.source) for one in columns),
            types=", ".join(f"{quote(one.source)} {to_snowflake_type(one.type)}" for one in columns),
            scope=build_scope(Dialect.SNOWFLAKE, self.copy, partitions),
            **more,
        )

    def write_sums(
        self, partitions: Collection[str] | None, *, staging: str | None = None, before: str | None = None
    ) -> str:
        """The query of checksums, of the copy or of staging; ``before``: as it was before the statement of this id."""
        copy = self.copy if staging is None else self.staged
        source = self.target if staging is None else self._name_beside(staging.upper())
        if before is not None:
            source += f" BEFORE(STATEMENT => {quote_text(Dialect.SNOWFLAKE, before)})"
        columns = [ComparedColumn(column.name, column.type) for column in copy.columns]
        condition = "" if partitions is None else build_scope(Dialect.SNOWFLAKE, copy, partitions)
        name = build_partition_text(Dialect.SNOWFLAKE, copy)
        return build_sums_query(Dialect.SNOWFLAKE, source, columns, name, condition)

    def write_load(self, staging: str, stage: str, files: Sequence[str]) -> str:
        """The statement that loads these files of an external stage."""
        return self.write(
            LOAD_FILES,
            staging=staging,
            stage=stage,
            files=", ".join(quote_text(Dialect.SNOWFLAKE, name) for name in files),
        )

    def write_many(self, template: str, rows: Sequence[Sequence[Any]]) -> list[tuple[str, list[Any]]]:
        """Statements, with their parameters, for values or rows in portions that can be bound."""
        return [
            (
                self.write(template, holes=", ".join(_write_holes(row) for row in some)),
                [value for row in some for value in row],
            )
            for some in (rows[start : start + _BOUND_AT_ONCE] for start in range(0, len(rows), _BOUND_AT_ONCE))
        ]

    def _spell(self, name: str) -> str:
        """In upper case, so that nobody has to quote it, unless the copy's own name is not."""
        return name.upper() if self.copy.table.rpartition(".")[2].isupper() else name

    def _name_beside(self, name: str) -> str:
        """The quoted name of a table next to the copy."""
        return quote_table(f"{self.schema}.{name}" if self.schema else name)


def quote(name: str) -> str:
    """One identifier, quoted."""
    return quote_name(Dialect.SNOWFLAKE, name)


def quote_table(table: str) -> str:
    """A table, with its schema and its database if it has them, quoted.

    >>> quote_table("FIN.PUBLIC.DAILY")
    '"FIN"."PUBLIC"."DAILY"'
    """
    return ".".join(map(quote, table.split(".")))


def _write_holes(row: Sequence[Any]) -> str:
    return "?" if len(row) == 1 else f"({', '.join('?' for _ in row)})"
