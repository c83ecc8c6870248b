"""Whether a data file of the lake may be loaded into a warehouse as it is. Pure.

A warehouse reads a file by the names in it, the lake by the ids of its fields, with deletes, defaults and partition
values from the metadata. Both read the same rows only if the metadata proves it. Every other file is read through the
table and written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column by the id of its field, as the table has it now or as a file has it."""

    field_id: int | None
    name: str
    type: str  # Iceberg type text; of a file: what its footer says


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the metadata of the table says about a data file, and its own footer."""

    format: str
    is_encrypted: bool
    has_deletes: bool
    is_whole: bool  # the partition proves that every row of it is delivered
    columns: tuple[FileColumn, ...] | None = None  # None: its footer has not been read


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A data file that has rows of a delivery."""

    path: str
    rows: int
    refusal: str | None  # why it may not be loaded as it is; None: it may


def find_load_refusal(file: FileFacts, wanted: Sequence[FileColumn]) -> str | None:
    """Why a file may not be loaded as it is, for these columns of the table; None: it may, as far as is known.

    >>> amount = FileColumn(2, "amount", "decimal(12, 2)")
    >>> renamed = FileFacts("parquet", False, False, True, (FileColumn(2, "amt", "decimal(12, 2)"),))
    >>> find_load_refusal(renamed, [amount])
    'column amount is called amt in it'
    """
    if file.format.lower() != "parquet":
        return f"it is {file.format.lower()}; expected parquet"
    if file.is_encrypted:
        return "it is encrypted"
    if file.has_deletes:
        return "rows of it are deleted"
    if not file.is_whole:
        return "it may have rows of other partitions"
    if file.columns is None:
        return None
    return next((refusal for column in wanted if (refusal := _check_column(file.columns, column))), None)


def _check_column(columns: Sequence[FileColumn], wanted: FileColumn) -> str | None:
    found = next((one for one in columns if one.field_id is not None and one.field_id == wanted.field_id), None)
    if found is None:
        # added later, or in the path only; another field of the same name would give wrong values
        return f"column {wanted.name} is not stored in it"
    if found.name != wanted.name:
        return f"column {wanted.name} is called {found.name} in it"
    if found.type != wanted.type:
        return f"column {wanted.name} is {found.type} in it; expected {wanted.type}"
    # a warehouse matches names in any case
    if sum(one.name.casefold() == wanted.name.casefold() for one in columns) > 1:
        return f"several columns of it are called {wanted.name}, in different cases"
    return None
