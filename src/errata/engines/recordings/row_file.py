"""Write rows of text with their line numbers as a Parquet file: one text column per column of the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from errata.engines.recordings.text_rows import TextRow
from errata.model.recording.row_columns import LINE, PROBLEM, TEXT

_BATCH = 20_000
_BATCH_CHARACTERS = 32 * 1024 * 1024


def write_rows(file: Any, columns: Sequence[str], rows: Iterable[TextRow]) -> int:
    """Write the rows to an open file and return their number."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = [pa.field(LINE, pa.int64()), pa.field(PROBLEM, pa.string()), pa.field(TEXT, pa.string())]
    schema = pa.schema([*kinds, *(pa.field(name, pa.string()) for name in columns)])
    written, left = 0, iter(rows)
    with parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        while batch := _take(left):
            made = [
                pa.array([row.line for row in batch], pa.int64()),
                pa.array([row.problem for row in batch], pa.string()),
                pa.array([row.text for row in batch], pa.string()),
                *(pa.array([row.values.get(name) for row in batch], pa.string()) for name in columns),
            ]
            writer.write_batch(pa.record_batch(made, schema=schema))
            written += len(batch)
    return written


def _take(rows: Any) -> list[TextRow]:
    """The next rows, fewer if they are long."""
    found: list[TextRow] = []
    characters = 0
    for row in islice(rows, _BATCH):
        found.append(row)
        characters += sum(len(value or "") for value in row.values.values())
        if characters > _BATCH_CHARACTERS:
            break
    return found
