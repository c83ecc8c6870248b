"""Read a window of a database: one query in one repeatable-read transaction, streamed to a Parquet file.

The mark is the snapshot of the transaction and the position in the write-ahead log, so that later windows can be
compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from errata.engines.copies.adbc_loading import require_driver
from errata.engines.copies.postgres_session import clean_address
from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import Warehouse
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.declaration import Source
from errata.model.recording.window_query import fill_window
from errata.ports.recordings import Fetched, WindowReader

if TYPE_CHECKING:
    import pyarrow as pa

# repeatable read: every statement of the transaction sees the same snapshot
_BEGIN = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "SET LOCAL TIME ZONE 'UTC'")
_MARK = """\
SELECT pg_current_snapshot()::text,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END)::text"""


class SqlWindows:
    """Reads windows of queries over PostgreSQL."""

    def __init__(self, warehouses: Mapping[str, Warehouse]) -> None:
        self._warehouses = warehouses

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """See the port."""
        require_driver()
        if source.sql is None:
            raise UsageError(f"source {source.name} has no query")
        name, uri = source.sql.warehouse, str(self._warehouses[source.sql.warehouse].uri)
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        part, made = place / f"{token_hex(4)}.part", place / f"{source.name}.parquet"
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi

        is_reached = False
        try:
            with dbapi.connect(clean_address(uri)) as conn, conn.cursor() as cursor:
                is_reached = True
                for statement in _BEGIN:
                    cursor.execute(statement)
                cursor.execute(_MARK)
                snapshot, position = cursor.fetchone() or ("", "")
                cursor.execute(fill_window(source.sql.query, window))
                _write(cursor.fetch_record_batch(), part)
                conn.rollback()
            part.replace(made)
        except Error as error:
            # the message may quote a value or the address
            why = f"{type(error).__name__} {error.sqlstate or ''}".rstrip()
            told = f"{name} refused the query of" if is_reached else f"there was no connection to {name} for"
            no_session = f"check address, user and password of warehouses.{name}, and whether psql gets in with them"
            raise EngineError(
                f"{told} source {source.name}: {why}",
                state="nothing was recorded",
                hint="run the query with psql to see its error" if is_reached else no_session,
            ) from None
        finally:
            part.unlink(missing_ok=True)
        return Fetched(str(made), f"snapshot {snapshot}, position {position}")


def _write(reader: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([pa.field(one.name, _to_plain_type(one.type)) for one in reader.schema])
    with parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in reader:
            columns = [_to_plain(column) for column in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _to_plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that Parquet and Spark know: numbers of any length come as text, in an extension type."""
    import pyarrow as pa

    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _to_plain(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column.storage if isinstance(column, pa.ExtensionArray) else column


_conforms: type[WindowReader] = SqlWindows
