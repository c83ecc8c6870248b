"""Take rows of erased subjects out of a recorded file: the same rows without theirs, always the same bytes.

A line of text becomes an empty one, so that the other lines keep their numbers. Lines that are no rows go too, because
nobody can tell whom they are about.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from errata.engines.recordings.lines import Line, iterate_lines
from errata.engines.recordings.text_rows import CsvReader, TextRow, iterate_json
from errata.model.recording.declaration import Source

IsErased = Callable[[str], bool]
_NUMBER = re.compile(r"[+-]?\d+(?:\.0*)?(?:[eE][+-]?\d{1,2})?")


@dataclass(slots=True)
class RowCounts:
    """What a redaction keeps and takes out."""

    rows: int = 0  # that stay
    erased: int = 0  # rows of the subjects
    bad: int = 0  # lines that are no rows, which go as well


class SubjectFinder:
    """Finds rows of erased subjects by the columns that identify them; each different id is asked for once."""

    def __init__(self, columns: Sequence[str], is_erased: IsErased) -> None:
        self._columns = tuple(columns)
        self._is_erased = is_erased
        self._known: dict[str, bool] = {}

    def is_about(self, values: Any) -> bool:
        """Whether one of the columns names an erased subject."""
        return any(self.is_subject(values.get(name)) for name in self._columns)

    def is_subject(self, value: object) -> bool:
        """Whether a value is the id of an erased subject; a whole number counts however it is written."""
        if value is None:
            return False
        text = str(value)
        if text not in self._known:
            self._known[text] = any(self._is_erased(one) for one in _list_spellings(text))
        return self._known[text]


def _list_spellings(text: str) -> tuple[str, ...]:
    """An id as it is written, and as a column of whole numbers would hold it.

    >>> _list_spellings(" 007.0")
    (' 007.0', '007.0', '7')
    """
    stripped = text.strip()
    whole = str(int(Decimal(stripped))) if _NUMBER.fullmatch(stripped) else stripped
    return tuple(dict.fromkeys((text, stripped, whole)))


def redact_text(blocks: Iterator[bytes], source: Source, finder: SubjectFinder, counts: RowCounts) -> Iterator[bytes]:
    """The lines of a file of text without those of the subjects; raises ``UnreadableFile`` if it has no header."""
    held: list[Line] = []

    def remember() -> Iterator[Line]:
        for line in iterate_lines(blocks):
            held.append(line)
            yield line

    written = 0
    csv = CsvReader(source.delimiter)
    rows: Iterator[TextRow] = iterate_json(remember()) if source.format == "json" else csv.iterate(remember())
    for row in rows:
        *before, line = held  # a header comes before the first row
        held.clear()
        for one in before:
            yield b"\n" * (one.number - written - 1) + one.content + b"\n"
            written = one.number
        if row.problem is not None:
            counts.bad += 1
            continue
        if finder.is_about(row.values):
            counts.erased += 1
            continue
        counts.rows += 1
        yield b"\n" * (line.number - written - 1) + line.content + b"\n"
        written = line.number
    for one in held:  # a header without rows
        yield one.content + b"\n"


@contextmanager
def pack_text(file: Any, *, is_packed: bool) -> Iterator[Any]:
    """Write to a file of text, packed as the file was; the same lines give the same bytes."""
    if not is_packed:
        yield file
        return
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        yield packed


def redact_parquet(content: Any, finder: SubjectFinder, columns: Sequence[str], counts: RowCounts, out: Any) -> None:
    """Write the rows of a Parquet file to another one, without those of the subjects."""
    import pyarrow as pa
    from pyarrow import parquet

    with (
        parquet.ParquetFile(content) as file,
        parquet.ParquetWriter(out, file.schema_arrow, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in file.iter_batches():
            listed = [batch.column(name).to_pylist() for name in columns]
            keep = [not any(map(finder.is_subject, ids)) for ids in zip(*listed, strict=True)]
            counts.rows += sum(keep)
            counts.erased += len(keep) - sum(keep)
            writer.write_batch(batch.filter(pa.array(keep, pa.bool_())))
