"""Load rows into a staging table of Snowflake: as Parquet files in the table's own stage, or from the lake's files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from errata.engines.copies.snowflake_session import Session, open_transaction
from errata.engines.copies.snowflake_statements import LOAD_OWN_STAGE, Statements
from errata.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

_FILE_BYTES = 128 * 1024 * 1024
_ROWS_AT_ONCE = 100_000
_LOADED = "LOADED"


def load_batches(session: Session, statements: Statements, staging: str, batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows to Parquet files, put them into the stage of the staging table, and load them; returns their number.

    A file is removed here as soon as it is in the stage, so that one of them at a time takes up space.
    """
    written = 0
    with tempfile.TemporaryDirectory(prefix="errata-load-") as directory:
        for file, rows in write_files(batches, [one.source for one in statements.copy.columns], Path(directory)):
            put_file(session, statements.write("{own_stage}", staging=staging), file)
            file.unlink()
            written += rows
    if not written:
        return 0
    # files are put before: between BEGIN and COMMIT there is nothing but DML
    with open_transaction(statements.copy.warehouse, session, staging):
        loaded = run_load(session, statements.write(LOAD_OWN_STAGE, staging=staging))
    if loaded != written:
        raise EngineError(
            f"{statements.copy.name}: expected {written:,} rows to be loaded, found {loaded:,}",
            state="the copy was not touched",
        )
    return loaded


def write_files(batches: Iterator[pa.RecordBatch], names: list[str], directory: Path) -> Iterator[tuple[Path, int]]:
    """Parquet files of limited size with the rows, and the number of rows in each; columns get these names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    batch = next(batches, None)
    while batch is not None:
        schema = pa.schema([field.with_name(name) for field, name in zip(batch.schema, names, strict=True)])
        path, rows, number = directory / f"rows-{number:05d}.parquet", 0, number + 1
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            while batch is not None and path.stat().st_size < _FILE_BYTES:
                renamed = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                writer.write_batch(renamed, row_group_size=_ROWS_AT_ONCE)
                rows += batch.num_rows
                batch = next(batches, None)
        yield path, rows


def put_file(session: Session, stage: str, file: Path) -> None:
    """Upload one file as it is; its name becomes its name in the stage."""
    # the connector compresses and encrypts on the way; the source is a path of ours, without quotes
    answer = session.run(f"PUT 'file://{file}' {stage} AUTO_COMPRESS = FALSE OVERWRITE = TRUE")
    states = [str(row[0]).upper() for row in answer.read("status")]
    if states != ["UPLOADED"]:
        raise EngineError(f"a file did not reach {stage}: {', '.join(states) or 'no answer'}")


def run_load(session: Session, statement: str) -> int:
    """Run one COPY INTO; returns the number of rows that it loaded. A file that is not loaded whole is an error."""
    answer = session.run(statement)
    loaded = 0
    for state, rows, errors in answer.read("status", "rows_loaded", "errors_seen"):
        if state != _LOADED or int(errors or 0):
            raise EngineError(f"Snowflake did not load a file: {state} (query {answer.query})")
        loaded += int(rows)
    return loaded
