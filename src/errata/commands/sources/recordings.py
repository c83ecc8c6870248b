"""`errata recordings`: the files on record."""

from __future__ import annotations

from errata.commands.sources.copy_source import find_declared_copy
from errata.commands.sources.import_ import find_source
from errata.model.recording.copy_query import name_copy_source
from errata.model.recording.recorded_file import FileStatus, RecordedFile
from errata.views.recordings import RecordedFileView, RecordingsView
from errata.workspace import Workspace


def list_recordings(workspace: Workspace, source: str | None = None, *, every: bool = False) -> RecordingsView:
    """Accepted files of a source or of all, in the order in which they came; with ``every`` the others too."""
    if source is not None and find_declared_copy(workspace.project, source) is not None:
        source = name_copy_source(source)
    elif source is not None:
        find_source(workspace.project, source)
    with workspace.ledger.or_empty() as ledger:
        found = ledger.recordings.list(source, None if every else FileStatus.ACCEPTED)
    return RecordingsView(source, tuple(_describe(one) for one in found))


def _describe(one: RecordedFile) -> RecordedFileView:
    return RecordedFileView(
        file_id=one.file_id,
        source=one.source,
        name=one.name,
        path=one.path,
        status=one.status.value,
        why=one.why,
        bytes=one.bytes,
        sha256=one.sha256,
        rows=one.rows,
        bad_rows=one.bad_rows,
        start=one.range.start if one.range else None,
        end=one.range.end if one.range else None,
        columns=tuple(one.columns),
        schema_fingerprint=one.fingerprint,
        produced_at=one.produced_at,
        first_seen_at=one.seen_at,
        attempt=one.attempt,
        manifest_id=one.manifest_id,
        first_run=one.first_run,
        twin=one.twin,
        supersedes=one.supersedes,
        keep_until=one.keep_until,
        expired_at=one.expired_at,
        place=one.place,
        content_sha256=one.content_sha256,
    )
