"""`errata import`: copy files that others dropped to the recordings, each as a whole or not at all.

A file is looked at, stored under an id that follows from its content, and then recorded with its audit entry. A process
that dies in between leaves a copy that nothing names; the same command stores it again at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.approval.permissions import require_role
from errata.errors import NotFound, UsageError
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.product import Project, Role
from errata.model.recording.business_range import BusinessRange, parse_range
from errata.model.recording.declaration import Source
from errata.model.recording.keep_time import compute_keep_until
from errata.model.recording.recorded_file import FileStatus, Inspection, Intake, RecordedFile, name_place
from errata.ports.recordings import Fetched
from errata.text.escape import require_one_line
from errata.text.numbers import plural
from errata.views.recordings import ImportedFile, ImportView
from errata.workspace import Workspace

_MAX_MANIFEST_ID = 200


def import_files(
    workspace: Workspace,
    actor: Actor,
    paths: Sequence[str],
    source: str,
    start: str | None = None,
    end: str | None = None,
    manifest_id: str | None = None,
) -> ImportView:
    """Import files, or every file below a directory; what became of each."""
    declared = find_source(workspace.project, source)
    given = _parse_given(start, end)
    if manifest_id is not None:
        require_one_line("--manifest", manifest_id, _MAX_MANIFEST_ID)
    workspace.ledger.create()
    require_role(workspace, actor, (Role.OPERATOR, Role.REQUESTER), "import")
    store = workspace.engines.recordings
    found = [one for path in paths for one in store.list_landing(path)]
    done = [import_file(workspace, actor, path, declared, given, manifest_id) for path in dict.fromkeys(found)]
    return ImportView(source, tuple(done))


def find_source(project: Project, name: str) -> Source:
    """The declared source; raises ``NotFound`` if errata.yaml has none of this name."""
    found = project.sources.get(name)
    if found is None:
        known = ", ".join(sorted(project.sources)) or "none"
        raise NotFound(
            f"there is no source {name!r}; expected one of {known}",
            state="nothing was changed",
            hint=f"sources: {{{name}: {{format: json}}}} in errata.yaml declares it",
        )
    return found


def _parse_given(start: str | None, end: str | None) -> BusinessRange | None:
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise UsageError(
            "a range with one end was refused; expected --from and --to, the end not included",
            state="nothing was changed",
            hint="--from 2026-01-03 --to 2026-01-04 is one day",
        )
    return parse_range(start, end)


def import_file(
    workspace: Workspace,
    actor: Actor,
    path: str,
    source: Source,
    given: BusinessRange | None,
    manifest_id: str | None,
    fetched: Fetched | None = None,
) -> ImportedFile:
    """Import one file; what became of it."""
    ledger, store = workspace.ledger.recordings, workspace.engines.recordings
    workspace.narrate(f"{source.name}: {path}")
    seen = store.inspect(path, source, given)
    if fetched is not None and fetched.flaw is not None:
        seen = replace(seen, flaw=seen.flaw or fetched.flaw)
    duplicates = source.duplicates
    if fetched is not None and ledger.preview(seen, "ignored").known:
        duplicates = (
            "ignored"  # the source has for this window what is on record: it was read again, not delivered again
        )
    intake = ledger.preview(seen, duplicates)
    if intake.known:
        return _describe(seen, intake, changed=None)
    failpoint("import.before_copy")
    place = name_place(seen, intake)
    accepted = intake.status is FileStatus.ACCEPTED
    stored = store.store(seen, source, place, with_rows=accepted)
    if not accepted:
        store.write_reason(place, intake.why)
    if fetched is not None and fetched.beside is not None:
        store.keep_beside(fetched.beside, place)
    failpoint("import.after_copy")
    keep_until = compute_keep_until(workspace.ledger.now(), source.keep or workspace.project.recordings.keep)
    before = _find_columns_before(workspace, source) if accepted else None
    intake = ledger.record(seen, source.format, duplicates, intake, stored, keep_until, actor, manifest_id=manifest_id)
    failpoint("import.after_record")
    return _describe(seen, intake, changed=before)


def _find_columns_before(workspace: Workspace, source: Source) -> tuple[str, ...] | None:
    """Columns of the last accepted file that had rows."""
    known = workspace.ledger.recordings.list(source.name, FileStatus.ACCEPTED)
    return next((tuple(one.columns) for one in reversed(known) if one.columns), None)


def describe_known(known: RecordedFile) -> ImportedFile:
    """A file that is on record already."""
    return ImportedFile(
        path=known.path,
        file_id=known.file_id,
        status=known.status.value,
        already=True,
        sha256=known.sha256,
        bytes=known.bytes,
        rows=known.rows,
        bad_rows=known.bad_rows,
        start=known.range.start if known.range else None,
        end=known.range.end if known.range else None,
        twin=known.twin,
        supersedes=known.supersedes,
        why=known.why,
        notes=("already on record",),
    )


def _describe(seen: Inspection, intake: Intake, changed: tuple[str, ...] | None) -> ImportedFile:
    notes = [intake.note] if intake.note else []
    if intake.twin:
        notes.append(f"the same content as {intake.twin[:12]}, which is about another time")
    if intake.supersedes:
        notes.append(f"supersedes {intake.supersedes[:12]}; errata stale shows what was computed from it")
    if seen.bad_rows and intake.status is FileStatus.ACCEPTED:
        notes.append(f"{plural(seen.bad_rows, 'bad line')}; runs quarantine {'it' if seen.bad_rows == 1 else 'them'}")
    if changed is not None and seen.columns and set(changed) != set(seen.columns):
        more, less = (sorted(set(a) - set(b)) for a, b in ((seen.columns, changed), (changed, seen.columns)))
        told = [*(f"+{name}" for name in more), *(f"-{name}" for name in less)]
        notes.append(f"other columns than the file before: {' '.join(told[:8])}")
    return ImportedFile(
        path=seen.path,
        file_id=intake.file_id,
        status=intake.status.value,
        already=intake.known,
        sha256=seen.sha256,
        bytes=seen.bytes,
        rows=seen.rows,
        bad_rows=seen.bad_rows,
        start=seen.range.start if seen.range else None,
        end=seen.range.end if seen.range else None,
        twin=intake.twin,
        supersedes=intake.supersedes,
        why=intake.why,
        notes=tuple(notes),
    )
