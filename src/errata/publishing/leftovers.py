"""Leftovers of a finished run (refs, shadows, quarantine tables), and which of them are no longer needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from errata.gate.row_accounts import list_adopted_attempts, may_have_quarantine
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect
from errata.model.duration import to_days
from errata.model.manifest import Manifest
from errata.model.product.sinks import SEND
from errata.model.rebase import list_rebase_tags
from errata.model.refs import (
    GUARD,
    base_tag,
    emitted_table,
    input_tags,
    pre_tag,
    pub_tag,
    quarantine_table,
    rest_branch,
    rows_branch,
    run_branch,
    undo_branch,
)
from errata.model.run import FINAL, AttemptState, PublicationState, RunState
from errata.publishing.intent import Intent
from errata.publishing.preview_state import find_preview_refs
from errata.publishing.selection import read_refs
from errata.workspace import RunContext, Workspace

S = RunState
WHOLE_TABLE = "the table itself"
_GRACE_MS = 10 * 60 * 1000
ENDED_STATES = FINAL


def retire_fences(workspace: Workspace, actor: Actor, run_ids: Iterable[str]) -> None:
    """Reclaim chunks of ended runs from workers whose lease and grace have expired, before their branch is dropped."""
    for run_id in run_ids:
        # a worker that wakes up late then learns at its next heartbeat that it may no longer append
        if any(attempt.state is AttemptState.RUNNING for attempt in workspace.ledger.progress.attempts(run_id)):
            workspace.ledger.chunks.reclaim(run_id, actor=actor, reason="cleanup")


def remove_run_tags(context: RunContext) -> None:
    """Remove the base and input tags of a fully published run, which would keep old snapshots from expiring."""
    wanted = [(context.run.table, base_tag(context.run_id))]
    wanted += list(input_tags(context.run_id, context.manifest.inputs))
    wanted += [
        tag
        for rebase in context.ledger.rebases.list(context.run_id)
        for tag in list_rebase_tags(context.run_id, context.run.table, rebase)
    ]
    gone = [context.engines.pins.remove(table, tag) for table, tag in wanted]
    removed = [{"table": pin.table, "ref": pin.tag} for pin in gone if pin.outcome == "removed"]
    if removed:
        context.ledger.audit.note(context.run_id, context.actor, "pins.removed", {"removed": removed})


def find_removable_refs(workspace: Workspace, run: RunRecord) -> tuple[list[tuple[str, str]], list[Mapping[str, str]]]:
    """(table, ref) pairs that are no longer needed, and the refs that are kept, each with the reason."""
    if run.state not in ENDED_STATES:
        return [], []
    if workspace.ledger.publications.list_open(run_id=run.run_id):
        return [], [_build_kept_ref(run, run_branch(run.run_id), "a publication or rollback is in progress")]
    if _has_live_attempts(workspace, run):
        return [], [_build_kept_ref(run, run_branch(run.run_id), "a worker may still write to it")]
    manifest = workspace.ledger.runs.manifest(run.run_id)
    drop = [(run.table, base_tag(run.run_id)), *input_tags(run.run_id, manifest.inputs)]
    drop += [
        tag
        for rebase in workspace.ledger.rebases.list(run.run_id)
        for tag in list_rebase_tags(run.run_id, run.table, rebase)
    ]
    if manifest.target.shadow:  # dropped with all its branches
        drop.append((manifest.target.shadow, WHOLE_TABLE))
    else:
        drop.append((run.table, run_branch(run.run_id)))
        drop += [(run.table, candidate.branch) for candidate in workspace.ledger.candidates.list(run.run_id)]
    drop += [
        (table, ref) for table, ref in find_preview_refs(workspace, run, manifest) if table != manifest.target.shadow
    ]
    kept: list[Mapping[str, str]] = []
    is_undoable = False
    owing = _find_owing_copies(workspace, run)
    publications = workspace.ledger.publications.list(run.run_id)
    # a run is rolled back as a whole, so the undo of its first wave lives as long as that of its last
    last = max((one.settled_at or "" for one in publications if one.state is PublicationState.COMMITTED), default=None)
    for publication in publications:
        undo = [undo_branch(publication.pub_id), pre_tag(publication.pub_id)]
        written_anew = Intent.from_dict(workspace.ledger.publications.detail(publication.pub_id)).rewrite
        fence = pub_tag(publication.pub_id)
        rows = [rows_branch(publication.pub_id, n + 1) for n in range(len(written_anew))]
        landed = [] if publication.pub_id in owing else [fence]
        if not landed:
            kept.append(_build_kept_ref(run, fence, "rows that are still owed to a copy in a warehouse"))
        if publication.state is PublicationState.ABANDONED:
            # the fence must outlive any process that might still try to commit
            drop += [(run.table, ref) for ref in (*undo, *rows)]
            kept.append(_build_kept_ref(run, fence, "fence of a closed publication; its own retention ends it"))
        elif _is_window_open(workspace, publication.settled_at and last, manifest.rollback_window):
            is_undoable = True
            kept += [
                _build_kept_ref(run, ref, f"undo until {manifest.rollback_window} after publication") for ref in undo
            ]
            drop += [(run.table, ref) for ref in (*landed, *rows)]
        else:
            drop += [(run.table, ref) for ref in (*undo, *landed, *rows)]
    drop += [*find_side_branches(workspace, run, manifest), *_find_carried_branches(workspace, run, manifest)]
    gone, needed = _choose_row_tables(workspace, run, manifest, is_undoable=is_undoable)
    drop += gone
    kept += needed
    return [(table, ref) for table, ref in drop if ref != GUARD], kept


def _choose_row_tables(
    workspace: Workspace, run: RunRecord, manifest: Manifest, *, is_undoable: bool
) -> tuple[list[tuple[str, str]], list[Mapping[str, str]]]:
    """The tables of rows that the run set aside or emitted: those to drop, and those to keep, each with the reason."""
    drop: list[tuple[str, str]] = []
    kept: dict[str, str] = {}
    table, emitted = quarantine_table(run.table, run.run_id), emitted_table(run.table, run.run_id)
    if not is_undoable:  # unconditionally: attempts that were never adopted may also have created the table
        drop.append((table, WHOLE_TABLE))
    elif may_have_quarantine(manifest, list_adopted_attempts(workspace, run.run_id)):
        kept[table] = f"rows that were set aside, until {manifest.rollback_window} after publication"
    if _has_unsent_rows(workspace, run):
        kept[emitted] = "rows that are still owed to a topic"
    elif any(sink.decision == SEND for sink in manifest.sinks.values()):
        drop.append((emitted, WHOLE_TABLE))
    return drop, [{"table": one, "ref": WHOLE_TABLE, "run_id": run.run_id, "why": why} for one, why in kept.items()]


def _has_unsent_rows(workspace: Workspace, run: RunRecord) -> bool:
    return any(one.effect is Effect.TOPIC for one in workspace.ledger.outbox.list_open(run_id=run.run_id))


def _find_owing_copies(workspace: Workspace, run: RunRecord) -> set[str | None]:
    """Publications whose rows have not reached every copy."""
    return {one.pub_id for one in workspace.ledger.outbox.list_open(run_id=run.run_id) if one.effect is Effect.COPY}


def find_side_branches(workspace: Workspace, run: RunRecord, manifest: Manifest) -> list[tuple[str, str]]:
    """Branches of side tables whose rows never landed because their process died."""
    # publications that still owe something are left out: a process may be writing to their branch right now
    owing = {item.pub_id for item in workspace.ledger.outbox.list_open(run_id=run.run_id)}
    over = [one.pub_id for one in workspace.ledger.publications.list(run.run_id) if one.pub_id not in owing]
    beginnings = tuple(rows_branch(pub_id, 1) for pub_id in over)
    tables = [table for table in (manifest.publish.corrections, manifest.publish.versions) if table]
    found = [(table, ref) for table in tables for ref in read_refs(workspace, table) or ()]
    return [(table, ref) for table, ref in found if ref.startswith(beginnings)]


def _find_carried_branches(workspace: Workspace, run: RunRecord, manifest: Manifest) -> list[tuple[str, str]]:
    """Branches with carried-over rows, which main holds by now or which were never published."""
    if manifest.target.rewrite is None:
        return []
    beginnings = tuple(
        rest_branch(publication.pub_id, 0)[:-1] for publication in workspace.ledger.publications.list(run.run_id)
    )
    return [(run.table, ref) for ref in read_refs(workspace, run.table) or () if ref.startswith(beginnings)]


def _has_live_attempts(workspace: Workspace, run: RunRecord) -> bool:
    """Whether an attempt may still be active; appending to a dropped branch would create it again from main."""
    now = workspace.ledger.now_ms()
    # a dead Python process is not enough: its JVM, or Spark on a cluster, may still be writing
    return any(
        attempt.state is not AttemptState.ADOPTED and attempt.lease_until + _GRACE_MS > now
        for attempt in workspace.ledger.progress.attempts(run.run_id)
    )


def can_roll_back(workspace: Workspace, run: RunRecord) -> bool:
    """Whether the rollback window of any of the run's publications is still open."""
    landed = [one for one in workspace.ledger.publications.list(run.run_id) if one.state is PublicationState.COMMITTED]
    if not landed:
        return False
    window = workspace.ledger.runs.manifest(run.run_id).rollback_window
    return any(_is_window_open(workspace, one.settled_at, window) for one in landed)


def _is_window_open(workspace: Workspace, settled_at: str | None, window: str) -> bool:
    if settled_at is None:
        return True
    return datetime.fromisoformat(settled_at) + timedelta(days=to_days(window)) > workspace.now()


def _build_kept_ref(run: RunRecord, ref: str, why: str) -> Mapping[str, str]:
    return {"table": run.table, "ref": ref, "run_id": run.run_id, "why": why}
