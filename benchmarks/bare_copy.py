"""``python -m benchmarks.bare_copy METADATA ADDRESS TABLE FIRST LAST``: how a script brings days to PostgreSQL.

One transaction: delete the days, then binary COPY of the rows of the lake. It compares nothing, and next to another
writer it leaves rows twice.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(metadata: str, address: str, table: str, first: str, last: str) -> None:
    """Replace these days of a table by what the lake holds."""
    from adbc_driver_postgresql import dbapi
    from pyiceberg.table import StaticTable

    batches = StaticTable.from_metadata(metadata).scan().to_arrow_batch_reader()
    with dbapi.connect(address) as conn, conn.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE day BETWEEN '{first}' AND '{last}'")  # noqa: S608 - our own names
        cursor.adbc_ingest(table, batches, mode="append")
        conn.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
