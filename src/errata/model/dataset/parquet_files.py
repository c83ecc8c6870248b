"""What the files of a dataset must have in common before a table may take them over as they are. Pure.

Folders are partitions, as Hive names them: ``day=2026-01-03``. A column that only the folders have gets its value from
there; one that the files have too must have the same value in every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import unquote

from errata.canonical import digest_of
from errata.model.types import normalize_type

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_PIECE = re.compile(r"([^=/]+)=([^/]*)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_LARGEST_INT, _LARGEST_LONG = 2**31, 2**63
_HARMLESS = re.compile(r"_SUCCESS|_metadata|_common_metadata|_(?:started|committed)_\w+|\..*\.crc|\.DS_Store")
PARTITION_TYPES = ("date", "int", "long", "string")
_SHOWN = 3

Value = str | None
"""Value of a partition as its folder says it; None for NULL."""


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """One file of a dataset, by its path below the dataset and its footer."""

    path: str
    size: int
    version: str = ""  # changes when the file does
    rows: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    has_field_ids: bool = False
    bounds: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)  # of columns that folders name too
    problem: str | None = None  # why its footer cannot be read

    @property
    def folders(self) -> tuple[tuple[str, Value], ...]:
        """Columns and values of its folders, outermost first."""
        return tuple(split_folder(piece) or ("", None) for piece in self.path.split("/")[:-1])


@dataclass(frozen=True, slots=True)
class Dataset:
    """The files below a path."""

    path: str
    files: tuple[ParquetFile, ...]
    unfinished: tuple[str, ...] = ()  # hidden files of writers that have not finished
    others: tuple[str, ...] = ()  # files whose names do not say that they are Parquet

    @property
    def digest(self) -> str:
        """Digest of the files: the same files give the same one."""
        return digest_of([self.path, *([one.path, one.size, one.version] for one in self.files)])

    @property
    def rows(self) -> int:
        """Rows of all files, by their footers."""
        return sum(one.rows for one in self.files)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that the folders name."""
        return tuple(name for name, _ in self.files[0].folders) if self.files else ()


def split_folder(piece: str) -> tuple[str, Value] | None:
    """Column and value that a folder says; None if it says none.

    >>> split_folder("at=2026-01-03%2010%3A00"), split_folder("day=__HIVE_DEFAULT_PARTITION__"), split_folder("raw")
    (('at', '2026-01-03 10:00'), ('day', None), None)
    """
    found = _PIECE.fullmatch(piece)
    if found is None:
        return None
    return unquote(found[1]), None if found[2] == NULL_FOLDER else unquote(found[2])


def is_harmless(name: str) -> bool:
    """Whether a hidden file has no rows: marks and checksums that writers leave."""
    return _HARMLESS.fullmatch(name) is not None


def find_flaws(dataset: Dataset) -> Iterator[str]:
    """Why a table cannot take over the files as they are; nothing if it can."""
    if dataset.unfinished:
        yield f"a writer has not finished, or has died: {_list(dataset.unfinished)}"
    if dataset.others:
        yield f"it has files that are not Parquet: {_list(dataset.others)}"
    broken = [f"{one.path} ({one.problem})" for one in dataset.files if one.problem]
    if broken:
        yield f"footers cannot be read: {_list(broken)}"
        return
    if not dataset.files:
        yield "it has no file whose name ends with .parquet"
        return
    yield from _find_folder_flaws(dataset)
    yield from _find_column_flaws(dataset)


def _find_folder_flaws(dataset: Dataset) -> Iterator[str]:
    plain = [one.path for one in dataset.files if not one.folders or any(not name for name, _ in one.folders)]
    if plain:
        yield f"expected every file in folders such as day=2026-01-03, which become partitions; found {_list(plain)}"
        return
    other = [one.path for one in dataset.files if tuple(name for name, _ in one.folders) != dataset.keys]
    if other:
        yield f"expected the folders {'/'.join(f'{key}=…' for key in dataset.keys)} everywhere; found {_list(other)}"
    elif len({key.lower() for key in dataset.keys}) < len(dataset.keys):
        yield f"two folders name the same column: {', '.join(dataset.keys)}"


def _find_column_flaws(dataset: Dataset) -> Iterator[str]:
    first = dataset.files[0]
    for one in dataset.files:
        if dict(one.columns) != dict(first.columns):
            yield f"schemas differ: {one.path} has {_describe(one, first)}, other than {first.path}"
            break
    unknown = [f"{name} {kind}" for name, kind in first.columns.items() if normalize_type(kind) is None]
    if unknown:
        yield f"a table cannot have columns of these types: {_list(unknown)}"
    ids = [one.path for one in dataset.files if one.has_field_ids]
    if ids:
        yield f"files have field ids of another table, by which they would be misread: {_list(ids)}"
    for key in dataset.keys:
        kind = first.columns.get(key)
        if kind is not None and kind not in PARTITION_TYPES:
            yield f"the folders name {key}, which is {kind} in the files; expected {', '.join(PARTITION_TYPES)}"
            continue
        wrong = [one.path for one in dataset.files if key in one.columns and not _is_constant(one, key)]
        if wrong:
            yield f"files have other values of {key} than their folder says, or do not say which: {_list(wrong)}"


def _is_constant(one: ParquetFile, key: str) -> bool:
    value = dict(one.folders)[key]
    return one.rows == 0 or (value is not None and one.bounds.get(key) == (value, value))


def _describe(one: ParquetFile, first: ParquetFile) -> str:
    told = [f"{name} {kind}" for name, kind in one.columns.items() if first.columns.get(name) != kind]
    told += [f"no {name}" for name in first.columns if name not in one.columns]
    return ", ".join(told[:_SHOWN])


def infer_type(values: Sequence[Value]) -> str:
    """Type of a column that only folders have: the narrowest that keeps every value as it is written.

    >>> infer_type(["2026-01-03", None]), infer_type(["7", "12"]), infer_type(["07", "12"]), infer_type(["x"])
    ('date', 'int', 'string', 'string')
    """
    known = [value for value in values if value is not None]
    if known and all(map(_is_date, known)):
        return "date"
    if known and all(_WHOLE.fullmatch(value) for value in known):
        largest = max(abs(int(value)) for value in known)
        return "int" if largest < _LARGEST_INT else "long" if largest < _LARGEST_LONG else "string"
    return "string"


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def find_partition_types(dataset: Dataset) -> dict[str, str]:
    """Type of each column that the folders name."""
    first = dataset.files[0]
    return {
        key: first.columns.get(key) or infer_type([dict(one.folders)[key] for one in dataset.files])
        for key in dataset.keys
    }


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
