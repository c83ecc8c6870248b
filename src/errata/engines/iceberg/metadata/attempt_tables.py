"""Tables that attempts append texts to, beside the target: made, found and dropped with pyiceberg, without a JVM.

Only rows of adopted attempts count. Rows of killed attempts stay until the table is dropped and are never read.
"""

from __future__ import annotations

from collections.abc import Sequence

from errata.engines.iceberg.metadata.tables import TableLoader
from errata.errors import NotFound

_PROPERTIES = {
    "format-version": "2",
    # no shuffle, so one stage reads and writes, and the rows Spark observes on the way are counted once
    "write.distribution-mode": "none",
    "commit.retry.num-retries": "30",
    "write.parquet.compression-codec": "zstd",
}


class AttemptTables:
    """Tables of one kind in a project's catalogs; every column is text."""

    columns: Sequence[str]

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def ensure(self, table: str) -> None:
        """See the port."""
        from pyiceberg.schema import Schema
        from pyiceberg.types import NestedField, StringType

        fields = [NestedField(n, name, StringType(), required=False) for n, name in enumerate(self.columns, 1)]
        self._tables.create(table, Schema(*fields), _PROPERTIES)

    def exists(self, table: str) -> bool:
        """See the port."""
        try:
            self._tables.load(table)
        except NotFound:
            return False
        return True

    def drop(self, table: str) -> bool:
        """See the port."""
        return self._tables.drop(table)
