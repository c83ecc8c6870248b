"""Remove recorded files whose time is over, but none that a run may still need; what was removed stays on record.

The record comes first: a process that dies in between leaves files that nobody needs; the next clean-up removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from errata.commands.plan.recordings import list_read_files
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.recording.business_range import to_instant
from errata.model.recording.declaration import name_recording
from errata.model.recording.keep_time import compute_keep_until
from errata.model.recording.recorded_file import FileStatus, RecordedFile
from errata.model.run import FINAL
from errata.publishing.leftovers import can_roll_back
from errata.workspace import Workspace

_AGAIN = timedelta(days=7)
"""How long after its expiry a file is removed again, in case a process died before it was."""
_BESIDE = ("reason.txt", "requests.zip")


def expire_recordings(
    workspace: Workspace, actor: Actor, *, dry_run: bool
) -> tuple[list[Mapping[str, str]], list[Mapping[str, str]]]:
    """Expire what is due; returns what was removed, and what was due and is kept because a run may need it."""
    clock = datetime.fromisoformat(workspace.ledger.now())
    now = to_instant(clock)
    files = workspace.ledger.recordings.list()
    due = [one for one in files if one.status is not FileStatus.EXPIRED and _is_due(workspace, one, now)]
    needed = _find_needed(workspace) if due else {}
    gone = [one for one in due if one.file_id not in needed]
    if not dry_run:
        for source in {one.source for one in gone}:
            mine = [one.file_id for one in gone if one.source == source]
            workspace.ledger.recordings.expire(mine, _name_policy(workspace, source), actor)
        failpoint("cleanup.after_expire")
        recent = to_instant(clock - _AGAIN)
        late = [one for one in files if one.status is FileStatus.EXPIRED and (one.expired_at or "") > recent]
        if places := tuple(place for one in (*gone, *late) for place in list_places(one)):
            workspace.engines.recordings.remove(places)
    removed: list[Mapping[str, str]] = [_describe(one) | {"why": _name_policy(workspace, one.source)} for one in gone]
    kept: list[Mapping[str, str]] = [
        _describe(one) | {"why": f"{needed[one.file_id]} needs it"} for one in due if one.file_id in needed
    ]
    return removed, kept


def _is_due(workspace: Workspace, one: RecordedFile, now: str) -> bool:
    """Whether the time is over that was promised when it was recorded, and the time that is configured now."""
    declared = workspace.project.sources.get(one.source)
    keep = (declared.keep if declared else None) or workspace.project.recordings.keep
    return max(one.keep_until, compute_keep_until(one.seen_at, keep)) <= now


def _find_needed(workspace: Workspace) -> dict[str, str]:
    """Files that runs may still read, or whose publication can still be rolled back, each with such a run."""
    found: dict[str, str] = {}
    for run in workspace.ledger.runs.list():
        if run.state in FINAL and not can_roll_back(workspace, run):
            continue
        found |= dict.fromkeys(list_read_files(workspace, run.run_id), run.run_id)
    return found


def _name_policy(workspace: Workspace, source: str) -> str:
    declared = workspace.project.sources.get(source)
    if declared is not None and declared.keep:
        return f"sources.{source}.keep: {declared.keep}"
    return f"recordings.keep: {workspace.project.recordings.keep}"


def list_places(one: RecordedFile) -> Iterable[str]:
    """Everything that is stored of a file."""
    directory = one.place.rpartition("/")[0]
    return dict.fromkeys((one.place, one.content, *(f"{directory}/{name}" for name in _BESIDE)))


def _describe(one: RecordedFile) -> dict[str, str]:
    return {"table": name_recording(one.source), "ref": one.name, "run_id": one.first_run or ""}
