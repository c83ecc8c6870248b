"""Take rows of erased subjects out of a recorded file: the same rows without theirs, always the same bytes.

A line of text becomes an empty one, so that the other lines keep their numbers. Lines that are no rows, and messages
that are no JSON, go too, because nobody can tell whom they are about.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from errata.engines.recordings.lines import Line, iterate_lines
from errata.engines.recordings.text_rows import CsvReader, TextRow, iterate_json
from errata.model.recording.declaration import Source
from errata.model.recording.subject_names import KEY, VALUE, SubjectNames

IsErased = Callable[[str], bool]
_NUMBER = re.compile(r"[+-]?\d+(?:\.0*)?(?:[eE][+-]?\d{1,2})?")


@dataclass(slots=True)
class RowCounts:
    """What a redaction keeps and takes out."""

    rows: int = 0  # that stay
    erased: int = 0  # rows of the subjects
    bad: int = 0  # lines that are no rows, which go as well


class SubjectFinder:
    """Finds rows of erased subjects by the names that identify them; each different id is asked for once."""

    def __init__(self, names: SubjectNames, is_erased: IsErased) -> None:
        self.names = names
        self._fields = frozenset(name.lower() for name in names.fields)
        self._is_erased = is_erased
        self._known: dict[str, bool] = {}

    def is_about(self, values: Mapping[str, Any]) -> bool | None:
        """Whether a row names an erased subject, in a column or in the message that it is; None: nobody can tell."""
        if any(self.is_subject(values.get(name)) for name in self.names.columns):
            return True
        return self._is_message_about(values) if self._fields else False

    def _is_message_about(self, record: Mapping[str, Any]) -> bool | None:
        key, value = (_read_object(record.get(name)) for name in (KEY, VALUE))
        rows = [] if value is None else [value, *(_list_images(value) if self.names.is_log else ())]
        objects = rows if key is None else [key, *rows]
        if any(name.lower() in self._fields and self.is_subject(told) for one in objects for name, told in one):
            return True
        # after a delete, a log has a message without a value; elsewhere its key may be anyone's
        is_marker = self.names.is_log and record.get(VALUE) is None and record.get(f"{VALUE}_base64") is None
        return None if value is None and not is_marker else False

    def is_subject(self, value: object) -> bool:
        """Whether a value is the id of an erased subject; a whole number counts however it is written."""
        if value is None:
            return False
        text = str(value)
        if text not in self._known:
            self._known[text] = any(self._is_erased(one) for one in _list_spellings(text))
        return self._known[text]


class _Fields(list[tuple[str, Any]]):
    """Fields of a JSON object, with those that repeat."""


def _read_object(text: object) -> _Fields | None:
    """The fields of a JSON object, numbers as they are written; None if the text is none."""
    try:
        found = json.loads(str(text), object_pairs_hook=_Fields, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, _Fields) else None


def _list_images(message: _Fields) -> list[_Fields]:
    """The rows before and after a change, which are in its payload if it has a schema; a mark has none."""
    inner = [told for name, told in message if name == "payload" and isinstance(told, _Fields)]
    fields = [one for part in (message, *inner) for one in part]
    return [told for name, told in fields if name in ("before", "after") and isinstance(told, _Fields)]


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
        is_about = None if row.problem is not None else finder.is_about(row.values)
        if is_about is not False:
            counts.bad += is_about is None
            counts.erased += is_about is True
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


def redact_parquet(content: Any, finder: SubjectFinder, counts: RowCounts, out: Any) -> None:
    """Write the rows of a Parquet file to another one, without those of the subjects."""
    import pyarrow as pa
    from pyarrow import parquet

    names = finder.names
    looked_at = {*names.columns, *((KEY, VALUE, f"{VALUE}_base64") if names.fields else ())}
    with (
        parquet.ParquetFile(content) as file,
        parquet.ParquetWriter(out, file.schema_arrow, compression="zstd", write_page_checksum=True) as writer,
    ):
        columns = [name for name in file.schema_arrow.names if name in looked_at]
        for batch in file.iter_batches():
            listed = [batch.column(name).to_pylist() for name in columns]
            found = [finder.is_about(dict(zip(columns, row, strict=True))) for row in zip(*listed, strict=True)]
            found = found or [False] * batch.num_rows  # none of these columns: rows of nobody
            keep = [is_about is False for is_about in found]
            counts.rows += sum(keep)
            counts.erased += found.count(True)
            counts.bad += found.count(None)
            writer.write_batch(batch.filter(pa.array(keep, pa.bool_())))
