"""`errata record`: read a window of a source that others can change, and record it like a file.

The window is read to a directory of the project, and imported from there. A process that dies in between leaves a file
that nothing names; the same command reads or continues again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from errata.approval.permissions import require_role
from errata.canonical import digest_of
from errata.commands.sources.copy_source import find_copy_source
from errata.commands.sources.import_ import describe_known, find_source, import_file
from errata.errors import MissingCredentials, StateRefused, UsageError
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.recording.business_range import BusinessRange, parse_range
from errata.model.recording.declaration import Source
from errata.model.recording.id_range import IdRange, find_ids, parse_ids
from errata.model.recording.recorded_file import FileStatus, RecordedFile
from errata.ports.recordings import Fetched, ScanReader
from errata.views.recordings import ImportView
from errata.workspace import Workspace

WORKING_DIRECTORY = ".errata/recording"
"""Where windows are read to, below the project: one directory for each source and window."""


def record_window(
    workspace: Workspace, actor: Actor, source: str, start: str | None = None, end: str | None = None
) -> ImportView:
    """Record what a source has for a window, the end excluded; for a source without windows, all that it has."""
    declared = find_copy_source(workspace, source) or find_source(workspace.project, source)
    _require_variables(workspace, declared)
    scanner = workspace.engines.scans(declared)
    if scanner is not None:
        return _record_scan(workspace, actor, declared, scanner, start, end)
    window = parse_range(start, end) if start and end else None
    reader = workspace.engines.windows(declared)
    if reader is None:
        raise UsageError(
            f"source {source} was not recorded; errata.yaml has no sql, http or kafka for it",
            state="nothing was changed",
            hint=f"errata import PATH --source {source}",
        )
    if window is None:
        raise _build_missing_window(source)
    _begin(workspace, actor)
    if known := _find_recorded(workspace, declared, window):
        return ImportView(declared.name, (describe_known(known),))
    if declared.kafka is None:  # a record of a topic counts once, wherever it is
        _refuse_overlap(workspace, declared.name, window)
    directory = _name_directory(workspace, declared.name, window.start, window.end)
    fetched = reader.fetch(declared, window, str(directory))
    name = f"{declared.name}_{_shorten(window.start)}_{_shorten(window.end)}"
    return _record(workspace, actor, declared, fetched, directory, name, window)


def _record_scan(
    workspace: Workspace, actor: Actor, source: Source, scanner: ScanReader, start: str | None, end: str | None
) -> ImportView:
    """Record a source by ids, or as a whole; then its window says which time it is about, if a person gives one."""
    ids, window, name = None, None, source.name
    if source.http is not None and source.http.window == "ids":
        if not (start and end):
            raise _build_missing_window(source.name)
        ids = parse_ids(start, end)
        name = f"{source.name}_{ids.start}_{ids.end}"
    elif start and end:
        window = parse_range(start, end)
    _begin(workspace, actor)
    if ids is not None:
        _refuse_same_ids(workspace, source.name, ids)
    directory = _name_directory(workspace, source.name, name)
    fetched = scanner.scan(source, ids, str(directory))
    return _record(workspace, actor, source, fetched, directory, name, window)


def _require_variables(workspace: Workspace, source: Source) -> None:
    """Raise ``MissingCredentials`` before an address or a header without its value is sent anywhere."""
    project = workspace.project
    account = project.warehouses[source.sql.warehouse] if source.sql else None
    cluster = project.kafka[source.kafka.cluster] if source.kafka else None
    if missing := project.find_unset_variable((source, account, cluster)):
        raise MissingCredentials(
            f"source {source.name} needs the variable {missing}, which is not set here",
            state="nothing was recorded",
            hint="type the command where the variable is set",
        )


def _begin(workspace: Workspace, actor: Actor) -> None:
    workspace.ledger.create()
    require_role(workspace, actor, (Role.OPERATOR, Role.REQUESTER), "record")


def _build_missing_window(source: str) -> UsageError:
    return UsageError(
        f"source {source} was not recorded; expected --from and --to, the end not included",
        state="nothing was changed",
        hint=f"errata record {source} --from 2026-01-03 --to 2026-01-04",
    )


def _record(
    workspace: Workspace,
    actor: Actor,
    source: Source,
    fetched: Fetched,
    directory: Path,
    name: str,
    window: BusinessRange | None,
) -> ImportView:
    failpoint("record.after_fetch")
    found = Path(fetched.path)
    path = found.replace(directory / f"{name}.{source.format}{'.gz' if source.is_text and _is_packed(found) else ''}")
    done = import_file(workspace, actor, str(path), source, window, fetched.mark, fetched)
    shutil.rmtree(directory, ignore_errors=True)
    return ImportView(source.name, (done,), fetched.notes)


def _is_packed(path: Path) -> bool:
    """Whether a file of text is gzip: an export has no name that says so."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _refuse_same_ids(workspace: Workspace, source: str, ids: IdRange) -> None:
    """As for windows of time."""
    held = workspace.ledger.recordings.list(source, FileStatus.ACCEPTED)
    known = [(one, found) for one in held if (found := find_ids(one.name)) and found != ids and found.overlaps(ids)]
    if known:
        raise StateRefused(
            f"source {source} was not recorded from {ids.text}; {known[0][0].file_id[:12]} has {known[0][1].text} "
            "already, and rows in both would count twice",
            state="nothing was changed",
            hint=f"record the same ids again, or others: errata recordings {source}",
        )


def _refuse_overlap(workspace: Workspace, source: str, window: BusinessRange) -> None:
    """Rows of a time that two windows have in common would count twice."""
    held = workspace.ledger.recordings.list(source, FileStatus.ACCEPTED)
    others = [one for one in held if one.range and one.range != window and one.range.overlaps(window)]
    if others:
        known = others[0].range
        raise StateRefused(
            f"source {source} was not recorded from {window.text}; {others[0].file_id[:12]} has {known and known.text} "
            "already, and rows in both would count twice",
            state="nothing was changed",
            hint=f"record the same window again, or one that does not touch it: errata recordings {source}",
        )


def _find_recorded(workspace: Workspace, source: Source, window: BusinessRange) -> RecordedFile | None:
    """The accepted recording of a window of a topic, which has grown since, so that another read would differ.

    None for other sources, and where the source wants the new one as a correction.
    """
    if source.kafka is None or source.duplicates == "correction":
        return None
    known = workspace.ledger.recordings.list(source.name, FileStatus.ACCEPTED)
    return next((one for one in known if one.range == window), None)


def _name_directory(workspace: Workspace, source: str, *about: str) -> Path:
    key = digest_of([source, *about])[:16]
    return Path(workspace.project.root) / WORKING_DIRECTORY / f"{source}-{key}"


def _shorten(instant: str) -> str:
    """An instant as a part of a file's name.

    >>> _shorten("2026-01-03T00:00:00Z"), _shorten("2026-01-03T05:30:00Z")
    ('2026-01-03', '2026-01-03T053000Z')
    """
    return instant.removesuffix("T00:00:00Z").replace(":", "")
