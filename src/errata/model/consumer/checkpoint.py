"""A checkpoint of Spark Structured Streaming, read from the content of its files. Pure.

``offsets/N`` is written before batch N and says how far it reads: a line with the format, a line about the batch, and a
line for each source. ``commits/N`` is written after it. ``sources/I/offsets/0`` is where an Iceberg source began.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from errata.errors import EngineError

FORMAT = "v1"
_BATCH = re.compile(r"(offsets|commits)/(0|[1-9][0-9]*)", re.ASCII)
_FIRST_OFFSET = re.compile(r"sources/(0|[1-9][0-9]*)/offsets/0", re.ASCII)
_HEADER_LINES = 2
STATE = "state/"
"""Directory in which a query keeps state between batches."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A position in a table: a snapshot, and how many of the files that it added are read."""

    snapshot_id: str
    position: int
    scan_all_files: bool = False

    def to_json(self) -> str:
        """As Iceberg writes it.

        >>> Offset("42", 1).to_json()
        '{"version":1,"snapshot_id":42,"position":1,"scan_all_files":false}'
        """
        told = {"version": 1, "snapshot_id": int(self.snapshot_id), "position": self.position}
        return json.dumps({**told, "scan_all_files": self.scan_all_files}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Batch:
    """One entry of ``offsets``: how far each source is read once the batch is done."""

    n: int
    header: tuple[str, ...]
    sources: tuple[str, ...]
    is_committed: bool

    def to_bytes(self) -> bytes:
        """The content of its file."""
        return "\n".join((*self.header, *self.sources)).encode()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint says about the query that writes it."""

    location: str
    query_id: str
    batches: tuple[Batch, ...]  # oldest first; Spark removes old ones
    first_offsets: Mapping[int, Offset]  # by source, as far as they are in a table of Iceberg
    is_stateful: bool
    files: Mapping[str, bytes] = field(repr=False)  # every file outside ``state``, by its path

    @property
    def digest(self) -> str:
        """Changes with every file."""
        return digest_files(self.files)

    @property
    def last(self) -> Batch | None:
        """The newest batch; it was begun, and is done if it is committed."""
        return self.batches[-1] if self.batches else None


def parse_checkpoint(location: str, files: Mapping[str, bytes], *, is_stateful: bool = False) -> Checkpoint:
    """Read a checkpoint; raises ``EngineError`` that names the file that is not as expected."""
    if "metadata" not in files:
        raise _build_error(location, "there is no file metadata in it, so it is no checkpoint of a streaming query")
    offsets, commits = (_list_numbers(files, folder) for folder in ("offsets", "commits"))
    committed = max(commits, default=-1)
    if committed >= 0 and committed not in offsets:
        raise _build_error(location, f"commits/{committed} is there and offsets/{committed} is not")
    batches = [_parse_batch(location, n, files[f"offsets/{n}"], is_committed=n <= committed) for n in offsets]
    found = {int(hit[1]): name for name in files if (hit := _FIRST_OFFSET.fullmatch(name))}
    first = {source: parse_offset(_decode(location, name, files[name])) for source, name in sorted(found.items())}
    return Checkpoint(
        location=location,
        query_id=_parse_query_id(location, files["metadata"]),
        batches=tuple(batches),
        first_offsets={source: one for source, one in first.items() if one is not None},
        is_stateful=is_stateful,
        files=files,
    )


def parse_offset(text: str) -> Offset | None:
    """A position in a table of Iceberg; None for the offset of any other source.

    >>> parse_offset('{"version":1,"snapshot_id":42,"position":1,"scan_all_files":false}')
    Offset(snapshot_id='42', position=1, scan_all_files=False)
    >>> parse_offset('{"orders":{"0":12}}'), parse_offset("-"), parse_offset("12")
    (None, None, None)
    """
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("version") != 1:
        return None
    snapshot, position, is_whole = (found.get(key) for key in ("snapshot_id", "position", "scan_all_files"))
    if not isinstance(snapshot, int) or not isinstance(position, int) or not isinstance(is_whole, bool):
        return None
    return Offset(str(snapshot), position, is_whole)


def digest_files(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents.

    >>> digest_files({"a": b"1", "b": b"2"}) == digest_files({"b": b"2", "a": b"1"})
    True
    """
    lines = (f"{hashlib.sha256(files[name]).hexdigest()} {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def name_checksum(name: str) -> str:
    """The file in which Hadoop keeps the checksum of a local file.

    >>> name_checksum("sources/0/offsets/0")
    'sources/0/offsets/.0.crc'
    """
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.crc"


def _list_numbers(files: Iterable[str], folder: str) -> list[int]:
    hits = (_BATCH.fullmatch(name) for name in files)
    return sorted(int(hit[2]) for hit in hits if hit and hit[1] == folder)


def _parse_batch(location: str, n: int, content: bytes, *, is_committed: bool) -> Batch:
    name = f"offsets/{n}"
    lines = _decode(location, name, content).split("\n")
    if lines[0] != FORMAT:
        raise _build_error(location, f"{name} has format {lines[0][:20]!r}; Errata knows {FORMAT}")
    if len(lines) <= _HEADER_LINES:
        raise _build_error(location, f"{name} ends before the line of the first source")
    return Batch(n, tuple(lines[:_HEADER_LINES]), tuple(lines[_HEADER_LINES:]), is_committed)


def _parse_query_id(location: str, content: bytes) -> str:
    try:
        return str(json.loads(_decode(location, "metadata", content))["id"])
    except (ValueError, KeyError, TypeError):
        raise _build_error(location, "its file metadata names no query") from None


def _decode(location: str, name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _build_error(location, f"{name} is not text") from None


def _build_error(location: str, why: str) -> EngineError:
    return EngineError(f"checkpoint {location} could not be read: {why}")
