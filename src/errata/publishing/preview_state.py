"""Preview names of a run, read from the audit log. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.ledger import RunRecord
from errata.model.manifest import Manifest
from errata.publishing.selection import read_refs
from errata.workspace import Workspace

_ACTIONS = ("dark.intended", "dark.published", "dark.withdrawn", "dark.view_dropped")


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview name of a run, from its newest audit entry; ``snapshots`` are all the snapshots it ever pointed to."""

    told: Mapping[str, Any]
    at: str
    person: str
    is_made: bool
    snapshots: frozenset[str]


def find_previews(workspace: Workspace, run: RunRecord) -> dict[str, Preview]:
    """Previews of a run that were intended and not withdrawn, by name, newest last."""
    found: dict[str, Preview] = {}
    for entry in workspace.ledger.audit.readable_entries(run.run_id, actions=_ACTIONS):
        if entry.action in ("dark.intended", "dark.published"):
            name = str(entry.body["name"])
            before = found.pop(name, None)
            seen = (before.snapshots if before else frozenset()) | {str(entry.body["snapshot_id"])}
            found[name] = Preview(entry.body, entry.at, entry.actor.person, entry.action == "dark.published", seen)
        elif entry.action == "dark.withdrawn":
            found.pop(str(entry.body["name"]), None)
    return found


def find_preview_owner(workspace: Workspace, run: RunRecord, name: str, snapshot_id: str) -> RunRecord | None:
    """The run, this or another of the table, that previews this snapshot under this name; None if none does."""
    others = [one for one in workspace.ledger.runs.list() if one.table == run.table and one.run_id != run.run_id]
    for one in (run, *others):
        if any(candidate.snapshot_id == snapshot_id for candidate in workspace.ledger.candidates.list(one.run_id)):
            return one if name in find_previews(workspace, one) else None
    return None


def read_newest_preview(workspace: Workspace, run: RunRecord) -> Mapping[str, Any] | None:
    """Newest preview of a run, for display."""
    made = [one for one in find_previews(workspace, run).values() if one.is_made]
    if not made:
        return None
    told = {key: made[-1].told[key] for key in ("name", "table", "snapshot_id", "view", "rejected")}
    return told | {"at": made[-1].at, "person": made[-1].person}


def find_preview_refs(workspace: Workspace, run: RunRecord, manifest: Manifest) -> list[tuple[str, str]]:
    """(table, tag) pairs of this run's previews, without names that another run has taken over."""
    found: list[tuple[str, str]] = []
    for name, one in find_previews(workspace, run).items():
        held = (read_refs(workspace, one.told["table"]) or {}).get(name)
        if held is not None and held not in one.snapshots:
            continue
        found.append((one.told["table"], name))
        if one.told["before"]:
            found.append((manifest.target.table, one.told["before"]))
    return found


def find_preview_views(workspace: Workspace, run: RunRecord) -> list[str]:
    """Comparison views that a run may have left behind."""
    made: set[str] = set()
    for entry in workspace.ledger.audit.readable_entries(run.run_id, actions=_ACTIONS):
        view = str(entry.body.get("view") or "")
        if entry.action == "dark.intended" and view:
            made.add(view)
        elif entry.action == "dark.view_dropped":
            made.discard(view)
        elif entry.action == "dark.withdrawn" and entry.body.get("to"):
            made.discard(str(entry.body.get("view") or ""))  # the view now shows the other run's candidate
    return sorted(made)
