"""Read a window of Snowflake: one query, which shows one moment, streamed to a Parquet file.

The mark is the id of the query, by which Snowflake's history knows when and as whom it ran.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

from errata.engines.copies.snowflake_session import open_session, stream_query
from errata.errors import EngineError, UsageError
from errata.model.copy.row_text import Dialect
from errata.model.copy.snowflake_account import SnowflakeAccount
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.declaration import Source
from errata.model.recording.window_query import fill_window
from errata.ports.recordings import Fetched, WindowReader

_LOCK_SECONDS = 10.0  # a query takes no lock; a session has the setting all the same


class SnowflakeWindows:
    """Reads windows of queries over Snowflake; ``find_account`` gives the account of a warehouse."""

    def __init__(self, find_account: Callable[[str], SnowflakeAccount]) -> None:
        self._find_account = find_account

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """See the port."""
        import pyarrow as pa
        from pyarrow import parquet

        if source.sql is None:
            raise UsageError(f"source {source.name} has no query")
        name, place = source.sql.warehouse, Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        part, made = place / f"{token_hex(4)}.part", place / f"{source.name}.parquet"
        query = fill_window(source.sql.query, window, Dialect.SNOWFLAKE)
        try:
            with open_session(name, self._find_account(name), _LOCK_SECONDS, {"record": source.name}) as session:
                query_id, schema, batches = stream_query(session, query)
                with parquet.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
            part.replace(made)
        except pa.ArrowException as error:
            raise EngineError(
                f"{name}: a row of source {source.name} cannot be kept exactly: {type(error).__name__}",
                state="nothing was recorded",
                hint="cast the column in the query",
            ) from None
        finally:
            part.unlink(missing_ok=True)
        return Fetched(str(made), f"query {query_id}")


_conforms: type[WindowReader] = SnowflakeWindows
