"""Load rows into a staging table of Snowflake: the lake's own files where allowed, otherwise Parquet written here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from errata.engines.copies.snowflake_session import Session, open_transaction
from errata.engines.copies.snowflake_statements import LOAD_OWN_STAGE, Statements
from errata.errors import EngineError, UsageError
from errata.model.copy.delivery import Loaded
from errata.model.copy.load_plan import LoadPlan, plan_load
from errata.ports.copies import LakeRows

if TYPE_CHECKING:
    import pyarrow as pa

_FILE_BYTES = 128 * 1024 * 1024
_ROWS_AT_ONCE = 100_000
_FILES_AT_ONCE = 1_000
_LOADED = "LOADED"


def load_rows(session: Session, statements: Statements, staging: str, rows: LakeRows, stage: str | None) -> Loaded:
    """Load the rows. ``stage`` is an external stage over the lake, if there is one."""
    plan = plan_load(rows.files(), find_stage_url(session, stage) if stage else None)
    own_stage = statements.write("{own_stage}", staging=staging)
    # each in its own folder, because files of different partitions may have the same name
    for number, (_, path) in enumerate(plan.local):
        put_file(session, f"{own_stage}/lake-{number:05d}", path)
    written = put_rows(session, own_stage, statements, rows.batches([file.path for file in plan.files]))
    wanted = written + plan.rows
    if not wanted:
        return Loaded(0)
    # files are put before: between BEGIN and COMMIT there is nothing but DML
    with open_transaction(statements.copy.warehouse, session, staging):
        loaded = 0
        for statement in _write_loads(statements, staging, plan, stage or "", has_own=bool(written or plan.local)):
            loaded += run_load(session, statement)
        if loaded != wanted:
            raise EngineError(
                f"{statements.copy.name}: expected {wanted:,} rows to be loaded, found {loaded:,}",
                state="the copy was not touched",
            )
    return Loaded(loaded, len(plan.files), plan.rows)


def _write_loads(statements: Statements, staging: str, plan: LoadPlan, stage: str, *, has_own: bool) -> Iterator[str]:
    names = [name for _, name in plan.staged]
    for start in range(0, len(names), _FILES_AT_ONCE):
        yield statements.write_load(staging, stage, names[start : start + _FILES_AT_ONCE])
    if has_own:
        yield statements.write(LOAD_OWN_STAGE, staging=staging)


def find_stage_url(session: Session, stage: str) -> str:
    """The address that an external stage is over."""
    *place, name = stage.removeprefix("@").rstrip("/").split(".")
    where = f" IN SCHEMA {'.'.join(place)}" if place else ""
    known = session.run(f"SHOW STAGES LIKE '{name}'{where}").read("name", "url")
    # an underscore of the pattern matches any character
    found = [url for other, url in known if url and str(other).upper() == name.upper()]
    if not found:
        raise UsageError(
            f"the stage {stage} was refused; expected an external stage that the role may use, found none",
            state="nothing was loaded",
            hint="correct stage in errata.yaml, or leave it out: files are then uploaded",
        )
    return str(found[0])


def put_rows(session: Session, stage: str, statements: Statements, batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows to Parquet files and put them into a stage; returns their number.

    A file is removed here as soon as it is in the stage, so that one of them at a time takes up space.
    """
    written = 0
    with tempfile.TemporaryDirectory(prefix="errata-load-") as directory:
        for file, rows in write_files(batches, [one.source for one in statements.copy.columns], Path(directory)):
            put_file(session, stage, str(file))
            file.unlink()
            written += rows
    return written


def write_files(batches: Iterator[pa.RecordBatch], names: Sequence[str], directory: Path) -> Iterator[tuple[Path, int]]:
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


def put_file(session: Session, stage: str, path: str) -> None:
    """Upload one file as it is; its name becomes its name in the stage."""
    answer = session.run(f"PUT 'file://{path}' {stage} AUTO_COMPRESS = FALSE OVERWRITE = TRUE")
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
