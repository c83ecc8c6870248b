"""Record which recorded files a run was planned with."""

from __future__ import annotations

import json
from collections.abc import Mapping

from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.run import FINAL
from errata.workspace import Workspace


def note_recordings(
    workspace: Workspace, actor: Actor, run_id: str, manifest: Manifest, parts: Mapping[str, bytes]
) -> None:
    """Name the run in the rows of its recorded files, as the first with each; safe to repeat."""
    found = [one for pin in manifest.inputs if pin.recording for one in list_file_ids(parts[str(pin.files_part)])]
    workspace.ledger.recordings.note_run(run_id, found, actor)


def list_read_files(workspace: Workspace, run_id: str) -> tuple[str, ...]:
    """Ids of the recorded files that a run reads."""
    pins = workspace.ledger.runs.manifest(run_id).inputs
    parts = [pin.files_part for pin in pins if pin.recording and pin.files_part]
    return tuple(one for part in parts for one in list_file_ids(workspace.ledger.parts.get(part)))


def find_readers(workspace: Workspace, file_id: str) -> tuple[RunRecord, ...]:
    """Runs that have not ended and were planned with a recorded file."""
    runs = [run for run in workspace.ledger.runs.list() if run.state not in FINAL]
    return tuple(run for run in runs if file_id in list_read_files(workspace, run.run_id))


def list_file_ids(part: bytes) -> tuple[str, ...]:
    """Ids of the recorded files in a pinned list: each is the directory of its file."""
    paths = (file["path"] for listed in json.loads(part).values() for file in listed)
    return tuple(dict.fromkeys(path.rsplit("/", 2)[1] for path in paths))
