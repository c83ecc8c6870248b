"""`errata record`: read a window of a source that others can change, and record it like a file.

The window is read to a directory of the project, and imported from there. A process that dies in between leaves a file
that nothing names; the same command reads or continues again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from errata.approval.permissions import require_role
from errata.canonical import digest_of
from errata.commands.sources.import_ import find_source, import_file
from errata.errors import UsageError
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.recording.business_range import BusinessRange, parse_range
from errata.views.recordings import ImportView
from errata.workspace import Workspace


def record_window(workspace: Workspace, actor: Actor, source: str, start: str, end: str) -> ImportView:
    """Record what a source has for a window, the end excluded."""
    declared, window = find_source(workspace.project, source), parse_range(start, end)
    reader = workspace.engines.windows(declared)
    if reader is None:
        raise UsageError(
            f"source {source} was not recorded; its files come from others, and errata.yaml has no sql or http for it",
            state="nothing was changed",
            hint=f"errata import PATH --source {source}",
        )
    workspace.ledger.create()
    require_role(workspace, actor, (Role.OPERATOR, Role.REQUESTER), "record")
    directory = _name_directory(workspace, source, window)
    fetched = reader.fetch(declared, window, str(directory))
    failpoint("record.after_fetch")
    name = f"{source}_{_shorten(window.start)}_{_shorten(window.end)}.{declared.format}"
    path = Path(fetched.path).replace(directory / name)
    done = import_file(workspace, actor, str(path), declared, window, fetched.mark, fetched)
    shutil.rmtree(directory, ignore_errors=True)
    return ImportView(source, (done,), fetched.notes)


def _name_directory(workspace: Workspace, source: str, window: BusinessRange) -> Path:
    key = digest_of([source, window.start, window.end])[:16]
    return Path(workspace.project.root) / ".errata" / "recording" / f"{source}-{key}"


def _shorten(instant: str) -> str:
    """An instant as a part of a file's name.

    >>> _shorten("2026-01-03T00:00:00Z"), _shorten("2026-01-03T05:30:00Z")
    ('2026-01-03', '2026-01-03T053000Z')
    """
    return instant.removesuffix("T00:00:00Z").replace(":", "")
