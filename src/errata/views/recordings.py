"""Recorded files, and what an import did. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What became of one file."""

    path: str
    file_id: str
    status: str  # accepted | rejected | superseded
    already: bool  # it was on record, and nothing was added
    sha256: str
    bytes: int
    rows: int
    bad_rows: int
    start: str | None
    end: str | None
    twin: str | None
    supersedes: str | None
    why: str  # of a rejected file
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportView:
    """Result of ``errata import`` and ``errata record``."""

    source: str
    files: tuple[ImportedFile, ...]
    notes: tuple[str, ...] = ()  # of `record`: what was strange about the source

    @property
    def rejected(self) -> tuple[ImportedFile, ...]:
        """Files that were not accepted."""
        return tuple(one for one in self.files if one.status == "rejected")


@dataclass(frozen=True, slots=True)
class RecordedFileView:
    """One file on record."""

    file_id: str
    source: str
    name: str
    path: str
    status: str  # accepted | rejected | superseded | expired
    why: str
    bytes: int
    sha256: str
    rows: int
    bad_rows: int
    start: str | None
    end: str | None
    columns: tuple[str, ...]
    schema_fingerprint: str
    produced_at: str
    first_seen_at: str
    attempt: int
    manifest_id: str | None
    first_run: str | None
    twin: str | None
    supersedes: str | None
    keep_until: str
    expired_at: str | None
    place: str
    content_sha256: str


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A table that was made of plain Parquet files."""

    table: str
    path: str
    files: int
    rows: int
    partitions: int
    snapshot_id: str
    already: bool  # it was made before
    only_in_folders: tuple[str, ...]  # columns that no file has


@dataclass(frozen=True, slots=True)
class RecordingsView:
    """Result of ``errata recordings``."""

    source: str | None
    files: tuple[RecordedFileView, ...]
