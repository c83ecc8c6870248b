"""Take erased subjects out of recordings: what they have of a subject is gone from the disk when this returns.

A file with rows of a subject is superseded by one without them, with both hashes on record; runs that were to read it
expire; then its bytes are deleted. A process that dies in between is finished by the same call.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from errata.commands.plan.recordings import find_readers
from errata.commands.sources.record import WORKING_DIRECTORY
from errata.commands.upkeep.expiry import list_places
from errata.failpoints import failpoint
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.recording.declaration import Source
from errata.model.recording.recorded_file import (
    ERASURE,
    FileStatus,
    RecordedFile,
    build_redacted,
    describe_redacted,
    name_place,
)
from errata.model.recording.subject_names import SubjectNames
from errata.model.run import FINAL, RUN_MOVES, RunState
from errata.publishing.readers.ready_table import owe_ready
from errata.workspace import Workspace

IsErased = Callable[[str], bool]
_LOG_STAYS = "it has changes of erased subjects, and a change log would be wrong without some of its messages"
_NOTHING_READS_IT = f"{ERASURE}: removed, because nothing reads it"


@dataclass(frozen=True, slots=True)
class RedactedFile:
    """One file that had rows of a subject, or that nobody can read."""

    file_id: str
    source: str
    name: str
    sha256: str
    rows: int  # of the subjects
    bad_rows: int  # lines that are no rows and went with them
    redacted_as: str | None = None  # None: it no longer counted, and was removed
    redacted_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Redaction:
    """What became of the recordings of some sources."""

    files: tuple[RedactedFile, ...]
    unproven: Mapping[str, str]  # files that were left as they are, each with why nobody can tell whom they are about
    expired_runs: tuple[str, ...]


def redact_recordings(
    workspace: Workspace, actor: Actor, subjects: Mapping[str, SubjectNames], is_erased: IsErased, reason: str
) -> Redaction:
    """Take the rows of erased subjects out of the recordings of some sources; safe to repeat.

    ``subjects`` maps each source to the names by which its files identify data subjects; ``is_erased`` says whether an
    id is on the list, such as ``lambda id: hashed(id) in listed``. The reason is kept for good and must name nobody.
    Roles are checked by the caller.
    """
    done: list[RedactedFile] = []
    unproven: dict[str, str] = {}
    runs: dict[str, None] = {}
    for source, names in sorted(subjects.items()):
        # half of a recording that nobody has finished; it is read again
        for path in sorted((Path(workspace.project.root) / WORKING_DIRECTORY).glob(f"{source}-*")):
            shutil.rmtree(path, ignore_errors=True)
        for one in workspace.ledger.recordings.list(source):
            if one.status is FileStatus.EXPIRED:
                continue
            if one.is_erased:  # a process died before its bytes were gone
                runs |= dict.fromkeys(_remove(workspace, actor, one, one.why, reason))
                continue
            found = _redact(workspace, actor, one, names, is_erased, reason)
            if isinstance(found, RedactedFile):
                done.append(found)
                told = _NOTHING_READS_IT if found.redacted_as is None else describe_redacted(found.redacted_as)
                runs |= dict.fromkeys(_remove(workspace, actor, one, told, reason))
            elif found:
                unproven[one.file_id] = found
    return Redaction(tuple(done), unproven, tuple(runs))


def _redact(
    workspace: Workspace, actor: Actor, one: RecordedFile, names: SubjectNames, is_erased: IsErased, reason: str
) -> RedactedFile | str:
    """What became of a file that has to go; otherwise why it is not proven to be about others, if it is not."""
    store, ledger = workspace.engines.recordings, workspace.ledger.recordings
    source = workspace.project.sources.get(one.source) or Source(one.source, one.format)
    known = names.find_in(tuple(one.columns))
    counts = one.status is FileStatus.ACCEPTED
    if counts and one.rows > one.bad_rows and known is None:
        return f"it has no {names.describe()}"
    known = known or names
    found = store.redact(one, source, known, is_erased)
    if not found.erased and (counts or not (found.bad or found.flaw)):
        if found.flaw:
            return found.flaw
        return f"{found.bad} of its lines are no rows" if found.bad else ""
    if not counts:  # nothing reads it, and what cannot be read may be about anyone
        return RedactedFile(one.file_id, one.source, one.name, one.sha256, found.erased, found.bad)
    if known.is_log:
        return _LOG_STAYS
    seen, intake = build_redacted(one, found, ledger.list(one.source))
    stored = store.store_redacted(one, source, known, is_erased, name_place(seen, intake))
    failpoint("redact.after_store")
    ledger.redact(one, seen, intake, stored, reason, actor)
    failpoint("redact.after_record")
    return RedactedFile(
        one.file_id, one.source, one.name, one.sha256, found.erased, found.bad, intake.file_id, seen.sha256
    )


def _remove(workspace: Workspace, actor: Actor, one: RecordedFile, why: str, reason: str) -> list[str]:
    """Expire the runs that were to read a file, delete its bytes, and record that they are gone; returns the runs."""
    expired = [run.run_id for run in find_readers(workspace, one.file_id) if _expire(workspace, actor, run, one)]
    workspace.engines.recordings.remove(tuple(list_places(one)))
    failpoint("redact.after_remove")
    workspace.ledger.recordings.expire([one.file_id], why, actor, reason)
    return expired


def _expire(workspace: Workspace, actor: Actor, run: RunRecord, one: RecordedFile) -> bool:
    """Whether a run ended: one that is over, or in the middle of a publication, stays as it is."""
    if run.state in FINAL or RunState.EXPIRED not in RUN_MOVES[run.state]:
        return False
    owes = owe_ready(workspace.project, RunState.EXPIRED.value)
    told = {"gone": f"{one.source}: {one.name} ({one.file_id[:12]}), redacted"}
    workspace.ledger.runs.move(run.run_id, RunState.EXPIRED, actor=actor, body=told, owes=owes)
    return True
