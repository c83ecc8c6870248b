"""Load rows into a table of PostgreSQL by binary COPY, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from errata.engines.copies.postgres_session import clean_address, missing_driver
from errata.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

_REASONS = {"22021": "a text has a character that the database cannot hold, such as U+0000"}
"""What a state means for rows of a lake, where its name does not say it."""


def require_driver() -> None:
    """Raise ``MissingDriver`` unless rows can be loaded from here."""
    from importlib.util import find_spec

    if find_spec("adbc_driver_postgresql") is None:
        raise missing_driver("adbc-driver-postgresql")


def load_batches(warehouse: str, uri: str, schema: str | None, table: str, batches: Iterator[pa.RecordBatch]) -> int:
    """Append the rows in one transaction; returns their number. Columns are matched by name."""
    import pyarrow as pa
    from adbc_driver_manager import Error
    from adbc_driver_postgresql import dbapi

    first = next(batches, None)
    if first is None:
        return 0
    rows, failures = 0, []

    def read() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        try:
            batch: pa.RecordBatch | None = first
            while batch is not None:
                rows += batch.num_rows
                yield batch
                batch = next(batches, None)
        except Exception as error:  # the driver would make another error of it
            failures.append(error)
            raise

    try:
        with dbapi.connect(clean_address(uri)) as conn, conn.cursor() as cursor:
            reader = pa.RecordBatchReader.from_batches(first.schema, read())
            cursor.adbc_ingest(table, reader, mode="append", db_schema_name=schema)
            conn.commit()
    except Error as error:
        if failures:
            raise failures[0] from None
        # its message may quote a value
        told = f"{type(error).__name__} {error.sqlstate or ''}".rstrip()
        why = _REASONS.get(error.sqlstate or "", "")
        raise EngineError(f"{warehouse} refused rows with {told}{why and f': {why}'}") from None
    return rows
