"""`errata cleanup`: remove what finished runs left behind, but nothing that a worker may still write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.approval.permissions import require_role
from errata.commands.upkeep.expiry import expire_recordings
from errata.failpoints import failpoint
from errata.gate.diff.kept_diff import discard_kept_diffs, has_kept_diffs
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.refs import emitted_table, quarantine_table
from errata.publishing.leftovers import ENDED_STATES, WHOLE_TABLE, find_removable_refs, retire_fences
from errata.publishing.preview_state import find_preview_views
from errata.publishing.recovery import recover_open_intents
from errata.publishing.selection import read_refs
from errata.views import CleanupView
from errata.workspace import Workspace


def cleanup(workspace: Workspace, actor: Actor, run_id: str | None, *, dry_run: bool) -> CleanupView:
    """Remove what finished runs left behind; the undo set of a publication is kept for its whole window."""
    require_role(workspace, actor, (Role.OPERATOR,), "cleanup")
    runs = (workspace.ledger.runs.get(run_id),) if run_id else workspace.ledger.runs.list()
    for table in {run.table for run in runs}:
        recover_open_intents(workspace, actor, table)
    wanted: dict[str, list[tuple[str, str]]] = {}
    kept: list[Mapping[str, str]] = []
    removed: list[Mapping[str, str]] = []
    for run in runs:
        drop, keep = find_removable_refs(workspace, workspace.ledger.runs.get(run.run_id))
        kept += keep
        if drop:
            removed += _discard_diffs(workspace, run, dry_run=dry_run)
        for table, ref in drop:
            wanted.setdefault(table, []).append((ref, run.run_id))
    for table, refs in wanted.items():
        present = read_refs(workspace, table)
        found = [] if present is None else [(ref, run) for ref, run in refs if ref in {WHOLE_TABLE, *present}]
        if found and not dry_run:
            retire_fences(workspace, actor, {run for _, run in found})
            _remove_refs(workspace, table, found)
            failpoint("cleanup.after_remove")
        removed += [{"table": table, "ref": ref, "run_id": run} for ref, run in found]
    for run in runs:
        removed += _drop_views(workspace, actor, workspace.ledger.runs.get(run.run_id), dry_run=dry_run)
    if run_id is None:
        gone, needed = expire_recordings(workspace, actor, dry_run=dry_run)
        removed += gone
        kept += needed
    if removed and not dry_run:
        only = runs[0].run_id if run_id else None
        workspace.ledger.audit.note(only, actor, "cleanup", {"removed": [dict(item) for item in removed]})
    return CleanupView(tuple(removed), tuple(kept), dry_run)


def _remove_refs(workspace: Workspace, table: str, found: Sequence[tuple[str, str]]) -> None:
    refs = [ref for ref, _ in found]
    if table == quarantine_table(table, found[0][1]):
        workspace.engines.quarantine.drop(table)
    elif table == emitted_table(table, found[0][1]):
        workspace.engines.emitted.drop(table)
    elif WHOLE_TABLE in refs:  # a shadow belongs to one run
        workspace.engines.staging.drop_shadow(workspace.ledger.runs.manifest(found[0][1]).target)
    else:
        workspace.engines.staging.drop_refs(table, refs)


def _discard_diffs(workspace: Workspace, run: RunRecord, *, dry_run: bool) -> list[Mapping[str, str]]:
    """Remove the diffs that were kept of a run; they hold sample rows, and its candidates go as well."""
    if not has_kept_diffs(workspace, run.run_id):
        return []
    if not dry_run:
        discard_kept_diffs(workspace, run.run_id)
    return [{"table": run.table, "ref": "the kept diffs", "run_id": run.run_id}]


def _drop_views(workspace: Workspace, actor: Actor, run: RunRecord, *, dry_run: bool) -> list[Mapping[str, str]]:
    """Drop the comparison views of previews, together with the tags that they read."""
    views = find_preview_views(workspace, run) if run.state in ENDED_STATES else []
    for view in views if not dry_run else ():
        workspace.engines.writer.drop_view(view)
        workspace.ledger.audit.note(run.run_id, actor, "dark.view_dropped", {"view": view})
    return [{"table": view, "ref": "the view itself", "run_id": run.run_id} for view in views]
