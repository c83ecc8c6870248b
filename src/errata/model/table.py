"""Files and commits of a table, as the rules about staging, publishing and undoing see them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from errata.model.manifest import ExpectedFile

__all__ = [
    "ROW_LINEAGE",
    "Commit",
    "DataFile",
    "Departure",
    "FileSets",
    "History",
    "NewDelete",
    "Touch",
    "by_partition",
]

ROW_LINEAGE = 3
"""The format version from which on every row has a ``_row_id`` and a ``_last_updated_sequence_number``."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file with the delete files that apply to it.

    ``partition`` None: it is shared, that is, nothing proves that all of its rows are in one partition. Of the
    partitions that were asked for, it may hold rows of ``shared_by``.
    """

    path: str
    rows: int
    bytes: int
    partition: str | None
    deletes: tuple[ExpectedFile, ...] = ()
    shared_by: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions it holds, or may hold, rows of."""
        return self.shared_by if self.partition is None else (self.partition,)


FileSets = Mapping[str, tuple[ExpectedFile, ...]]
"""Partition → the data and delete files that are live in it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What one commit did to one partition."""

    added_rows: int = 0
    removed_rows: int = 0
    added_deletes: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit on main, as far as it concerns a scope."""

    snapshot_id: str
    operation: str
    at_ms: int
    application: str
    touched: Mapping[str, Touch]
    touches_everything: bool = False
    summary: Mapping[str, str] = field(default_factory=dict)
    parent_id: str | None = None  # main right before it


@dataclass(frozen=True, slots=True)
class History:
    """The commits from main's head back to a base, newest first; incomplete when the base was not reached."""

    commits: tuple[Commit, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class NewDelete:
    """A delete file that is newer than a base, whether or not it applies to a file that is live.

    ``partition`` None: nothing proves that it is about one partition. Of those asked for, it may be about ``may_hit``.
    """

    path: str
    content: str  # position_deletes | equality_deletes
    partition: str | None
    may_hit: tuple[str, ...] = ()
    commit: Commit | None = None  # that brought it; None when it has expired


@dataclass(frozen=True, slots=True)
class Departure:
    """How main left a snapshot that it held: it was set to another one, or (None) made anew."""

    snapshot_id: str | None
    at_ms: int | None  # None: the log of main does not go back that far
    is_sure: bool  # False: history has expired, so main may still stand on it


def by_partition(files: Iterable[DataFile], partitions: Iterable[str]) -> dict[str, tuple[ExpectedFile, ...]]:
    """File sets of the given partitions; a partition without files has an empty set, a shared file is in several."""
    sets: dict[str, set[ExpectedFile]] = {partition: set() for partition in partitions}
    for file in files:
        for name in file.partitions:
            if name in sets:
                sets[name].add(ExpectedFile(file.path, file.rows, "data"))
                sets[name].update(file.deletes)
    return {name: tuple(sorted(found, key=lambda f: (f.content, f.path))) for name, found in sets.items()}
