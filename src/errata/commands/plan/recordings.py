"""Record which recorded files a run was planned with."""

from __future__ import annotations

import json
from collections.abc import Mapping

from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.workspace import Workspace


def note_recordings(
    workspace: Workspace, actor: Actor, run_id: str, manifest: Manifest, parts: Mapping[str, bytes]
) -> None:
    """Name the run in the rows of its recorded files, as the first with each; safe to repeat."""
    found = [one for pin in manifest.inputs if pin.recording for one in list_file_ids(parts[str(pin.files_part)])]
    workspace.ledger.recordings.note_run(run_id, found, actor)


def list_file_ids(part: bytes) -> tuple[str, ...]:
    """Ids of the recorded files in a pinned list: each is the directory of its file."""
    paths = (file["path"] for listed in json.loads(part).values() for file in listed)
    return tuple(dict.fromkeys(path.rsplit("/", 2)[1] for path in paths))
