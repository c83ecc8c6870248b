"""Read lines of JSON or CSV as rows of text, strictly: a line that is not a row gets a problem, never a guess. Pure.

Numbers keep the digits of the file, objects and lists become compact JSON, an empty CSV field is NULL. A record is one
line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.engines.recordings.lines import KEPT_BYTES, MAX_LINE_BYTES, Line, UnreadableFile

MAX_COLUMNS = 5_000
OWN_PREFIX = "__errata"
_BAD_HEADER = "its first line is not a header"


@dataclass(frozen=True, slots=True)
class TextRow:
    """One line: its values, or the problem and the text."""

    line: int
    values: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None
    text: str | None = None


class _Number(str):
    """A number with the digits of the file."""

    __slots__ = ()


def iterate_json(lines: Iterable[Line]) -> Iterator[TextRow]:
    """One row per line, each a JSON object."""
    decoder = build_decoder()
    for line in lines:
        text, problem = _decode(line)
        if problem is None:
            try:
                found = decoder.decode(text.strip())
                if isinstance(found, dict):
                    yield TextRow(line.number, {name: _to_text(value) for name, value in found.items()})
                    continue
                problem = "not an object"
            except _RepeatedKey:
                problem = "repeated key"
            except UnicodeEncodeError:
                problem = "not Unicode"
            except (ValueError, RecursionError):
                problem = "not JSON"
        yield TextRow(line.number, problem=f"line {problem}", text=text[:KEPT_BYTES])


def build_decoder() -> json.JSONDecoder:
    """Reads JSON strictly: numbers keep their digits, and a repeated key is a ``ValueError``."""
    return json.JSONDecoder(
        object_pairs_hook=_build_object, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant
    )


class CsvReader:
    """Rows of a CSV file; the first line is the header."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.columns: tuple[str, ...] = ()

    def iterate(self, lines: Iterable[Line]) -> Iterator[TextRow]:
        """One row per line after the header; raises ``UnreadableFile`` if there is no usable header."""
        csv.field_size_limit(MAX_LINE_BYTES)
        for line in lines:
            text, problem = _decode(line)
            if not self.columns:
                self.columns = self._read_header(text, problem)
                continue
            if problem is None:
                try:
                    fields = self._split(text)
                    if len(fields) == len(self.columns):
                        yield TextRow(
                            line.number, dict(zip(self.columns, (one or None for one in fields), strict=True))
                        )
                        continue
                    problem = "with another number of fields than the header"
                except csv.Error:
                    problem = "with broken quotes"
            yield TextRow(line.number, problem=f"line {problem}", text=text[:KEPT_BYTES])

    def _split(self, text: str) -> Sequence[str]:
        return next(csv.reader([text], delimiter=self.delimiter, strict=True))

    def _read_header(self, text: str, problem: str | None) -> tuple[str, ...]:
        if problem is not None:
            raise UnreadableFile(f"{_BAD_HEADER}: it is {problem}")
        try:
            names = tuple(self._split(text))
        except csv.Error as error:
            raise UnreadableFile(f"{_BAD_HEADER}: {error}") from error
        check_columns(names)
        return names


def check_columns(names: Sequence[str]) -> None:
    """Raise ``UnreadableFile`` for names that no table can have side by side."""
    seen: dict[str, str] = {}
    if len(names) > MAX_COLUMNS:
        raise UnreadableFile(f"it has more than {MAX_COLUMNS:,} different columns")
    for name in names:
        if not name.strip() or not name.isprintable() or name.lower().startswith(OWN_PREFIX):
            raise UnreadableFile(f"it has a column {name!r}, which is no name that can be used")
        if name.lower() in seen:
            raise UnreadableFile(f"it has the columns {seen[name.lower()]!r} and {name!r}, which no reader tells apart")
        seen[name.lower()] = name


def _decode(line: Line) -> tuple[str, str | None]:
    if line.is_cut:
        return line.content.decode(errors="replace"), f"longer than {MAX_LINE_BYTES // 1024**2} MiB"
    try:
        return line.content.decode(), None
    except UnicodeDecodeError:
        return f"0x{line.content[: KEPT_BYTES // 2].hex()}", "not UTF-8"


class _RepeatedKey(ValueError):
    pass


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKey
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _to_text(value: Any) -> str | None:
    """A value as text; NULL stays NULL."""
    if value is None:
        return None
    text = value if isinstance(value, str) else write_json(value)
    text.encode()  # a lone surrogate cannot be stored
    return str(text)


def write_json(value: Any) -> str:
    """Compact JSON of what the decoder read; numbers have the digits of the file."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{write_json(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(write_json, value))}]"
    return json.dumps(value, ensure_ascii=False)
