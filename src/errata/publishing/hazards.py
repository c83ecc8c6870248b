"""Hazards: protect files that a rollback brought back, which depend on the guard, until they are safe.

Until those files are rewritten, or the snapshot that removed them has expired, only the guard keeps a snapshot expiry
by another tool from deleting them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.errors import ErrataError
from errata.model.partition import format_ranges
from errata.model.refs import GUARD
from errata.model.side_tables import find_side_table
from errata.publishing.intent import Intent
from errata.publishing.rewrite_call import build_rewrite_call
from errata.text.numbers import plural
from errata.views import HazardView

if TYPE_CHECKING:
    from errata.ledger import HazardRecord, PublicationRecord
    from errata.model.audit import Actor
    from errata.model.manifest import Manifest, TargetPin
    from errata.workspace import Workspace


def list_open_hazards(workspace: Workspace, manifest: Manifest, run_id: str) -> tuple[HazardView, ...]:
    """Open hazards of a run's rollbacks, each with the statement that closes it."""
    found = []
    for hazard in workspace.ledger.guards.open_hazards(manifest.target.table):
        rollback = workspace.ledger.publications.get(hazard.pub_id)
        if rollback.run_id == run_id and _list_restored_files(workspace, rollback, manifest):
            call = build_rewrite_call(manifest.target, rollback.partitions)
            found.append(HazardView(hazard.pub_id, hazard.table, rollback.partitions, hazard.opened_at, call))
    return tuple(found)


def record_guard(workspace: Workspace, actor: Actor, target: TargetPin) -> None:
    """Ensure the guard of a table and record its snapshot id; a guard created again later has another id."""
    guard, _ = workspace.engines.publishing.ensure_guard(target)
    workspace.ledger.guards.record(target.table_uuid, guard, actor, target.table)


def watch_guard(workspace: Workspace, actor: Actor, table: str | None = None) -> None:
    """Close hazards that have ended; while one is open, restore a dropped guard with a warning.

    Without the guard, an expiry would delete live files.
    """
    for hazard in workspace.ledger.guards.open_hazards(table):
        rollback = workspace.ledger.publications.get(hazard.pub_id)
        manifest = workspace.ledger.runs.manifest(rollback.run_id, actor)
        back = _list_restored_files(workspace, rollback, manifest)
        if not back:
            workspace.ledger.guards.close_hazard(
                hazard.pub_id, "the rollback brought no files back into the table", actor
            )
            continue
        try:
            guard = workspace.engines.pins.refs(hazard.table).get(GUARD)
            over = _find_end_reason(workspace, hazard, rollback, manifest, back, guard) if guard else None
        except ErrataError as error:
            workspace.narrate(f"the guard of {hazard.table} could not be looked at: {error.message}")
            continue
        if over:
            workspace.ledger.guards.close_hazard(hazard.pub_id, over, actor)
        if guard:
            continue
        record_guard(workspace, actor, manifest.target)
        workspace.narrate(
            f"WARNING: branch {GUARD} of {hazard.table} was gone and has been put back; an expiry by another tool in "
            "between may have removed files that the rollback brought back: errata doctor looks for each of them"
        )


def _list_restored_files(workspace: Workspace, rollback: PublicationRecord, manifest: Manifest) -> frozenset[str]:
    """Files that the rollback added back to the target; none for side tables and after an append."""
    if find_side_table(manifest):
        return frozenset()
    intent = Intent.from_dict(workspace.ledger.publications.detail(rollback.pub_id))
    return frozenset(file.path for files in intent.add.values() for file in files)


def _find_end_reason(
    workspace: Workspace,
    hazard: HazardRecord,
    rollback: PublicationRecord,
    manifest: Manifest,
    back: frozenset[str],
    guard: str,
) -> str | None:
    """Why the restored files are no longer in danger; None while they are."""
    target = manifest.target
    # a guard that was dropped and created again has another snapshot id
    throughout = workspace.ledger.guards.get_at(target.table_uuid, hazard.opened_at) == guard
    gap = "" if throughout else "; the guard was missing for a time"
    undone = [
        publication.result_snapshot_id
        for publication in workspace.ledger.publications.list(rollback.run_id)
        if publication.kind == "publish" and publication.result_snapshot_id
    ]
    live = workspace.engines.targets.read_target(
        target.table, target.column, target.grain, rollback.partitions
    ).expected
    if not any(file.path in back for files in live.values() for file in files):
        return f"the files that were brought back have been rewritten{gap}"
    if any(workspace.engines.pins.snapshot_exists(rollback.table, snapshot) for snapshot in undone):
        return None
    if throughout:
        return "the publication's snapshot has expired while the guard was there"
    count, missing = workspace.engines.rows.missing_files(target, rollback.partitions)
    if not missing:
        return f"the publication's snapshot has expired{gap}, and {plural(count, 'file')} of the partitions were found"
    workspace.narrate(
        f"WARNING: {len(missing)} of {plural(count, 'file')} that main of {hazard.table} lists in "
        f"{format_ranges(target.grain, rollback.partitions)} are gone, and readers of them fail: errata "
        "doctor names them"
    )
    return None
