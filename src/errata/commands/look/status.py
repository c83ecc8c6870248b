"""`errata status RUN`: one run with its partitions; reads only, and never starts a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from errata.approval.break_glass import find_last_break_glass
from errata.approval.quorum import approvals_view, current_quorum_view
from errata.approval.release import find_release_digest, name_releaser, released_view
from errata.approval.suggestion import complete_commands
from errata.commands.consumers.acknowledge import list_hold_views
from errata.commands.consumers.outbox import item_views, list_decisive, suggest_payment
from errata.commands.look.quarantine import rows_by_input
from errata.commands.look.run_list import counts_view
from errata.commands.next_step import next_step
from errata.commands.plan.show import failures_view
from errata.commands.situation import (
    build_situation,
    find_campaign_of,
    find_last_move,
    find_successor,
    find_warnings_to_accept,
    focus_for_step,
    goes_by_itself,
    waits_for_consumers,
)
from errata.delivery.copies.run_copies import copy_lines, derive_run_delivered, list_copy_items
from errata.delivery.run_recovery import derive_run_recovery, list_recovery_items, recovery_lines
from errata.gate.row_accounts import list_adopted_attempts
from errata.gate.warnings import find_verdict_acceptances
from errata.ledger import (
    AttemptRecord,
    ChunkRecord,
    PartitionState,
    PublicationRecord,
    ReleaseRecord,
    RunRecord,
)
from errata.live_writers.lease import freeze_view
from errata.model.audit import Actor, AuditEntry
from errata.model.manifest import Manifest
from errata.model.partition import sort_oldest_first
from errata.model.run import AttemptState, ChunkState, PublicationState, RunState
from errata.publishing.hazards import list_open_hazards
from errata.publishing.late_inputs import read_late_inputs
from errata.publishing.live_writes import read_live_writes
from errata.publishing.preview_state import read_newest_preview
from errata.publishing.set_back_detection import find_run_set_backs
from errata.publishing.waves import turn_view, wave_views
from errata.views import FreezeView, PartitionView, StatusView
from errata.worker.budget import cost_view
from errata.workspace import Workspace

S = RunState


def build_status(workspace: Workspace, actor: Actor, run_id: str) -> StatusView:
    """One run with its chunks, partitions, decisions and the next command."""
    return workspace.ledger.read_together(lambda: _run_status(workspace, actor, run_id))


def _run_status(workspace: Workspace, actor: Actor, run_id: str) -> StatusView:
    context = workspace.open_run(run_id, actor)
    run, manifest, next_run = context.run, context.manifest, focus_for_step(context)
    chunks = workspace.ledger.progress.chunks(run.run_id)
    counts = workspace.ledger.progress.counts(run.run_id)
    publications, releases = workspace.ledger.publications.list(run.run_id), workspace.ledger.releases.list(run.run_id)
    attempts, facts = workspace.ledger.progress.attempts(run.run_id), workspace.ledger.facts.list(run.run_id)
    now_ms, quorum = workspace.ledger.now_ms(), current_quorum_view(workspace, run, manifest)
    waves = workspace.ledger.waves.list(run.run_id)
    turn = turn_view(workspace, run, manifest, waves)
    set_back, unknown = find_run_set_backs(workspace.ledger, workspace.engines, run)
    live_writes, states = read_live_writes(workspace, run), workspace.ledger.partitions.states(run.run_id)
    reaching, copies = list_recovery_items(workspace, run.run_id), list_copy_items(workspace, run.run_id)
    campaign, open_items = find_campaign_of(workspace, run), workspace.ledger.outbox.list_open(run_id=run.run_id)
    situation = build_situation(
        next_run, manifest, counts=counts, states=states, quorum=quorum, turn=turn, live_writes=live_writes,
        set_back=set_back, last_move=find_last_move(workspace, run), chunks=chunks,
        open_warnings=find_warnings_to_accept(workspace, next_run), successor=find_successor(workspace, run),
        campaign=campaign, owes=suggest_payment(list_decisive(open_items), run.run_id),
        goes_by_itself=goes_by_itself(context), waits_for_consumers=waits_for_consumers(workspace, run),
    )  # fmt: skip
    return StatusView(
        run_id=run.run_id,
        product=run.product,
        state=run.state.value,
        grain=manifest.target.grain.value,
        order=manifest.order,
        kind=manifest.kind,
        chunks=counts_view(counts),
        recomputed=counts.recomputed,
        rows=counts.rows,
        partitions=_partition_views(manifest, chunks, states),
        attempts=tuple(_attempt_view(a, now_ms) for a in attempts if a.state is AttemptState.RUNNING),
        failures=failures_view(chunks),
        approvals=approvals_view(workspace, run.run_id),
        publications=tuple(_publication_view(p, releases) for p in publications),
        next=complete_commands(workspace, actor, next_step(situation)),
        warnings=(*unknown, *(one.told for one in set_back), *_list_unfinished(publications)),
        cost=cost_view(workspace, manifest, attempts, facts),
        canary=facts.get("canary"),
        determinism=facts.get("determinism"),
        held=_describe_throttle(workspace, run),
        input_rows=rows_by_input(list_adopted_attempts(workspace, run.run_id), manifest),
        accepted=tuple(
            {"check": one.check, "why": one.why, "person": one.person}
            for one in find_verdict_acceptances(workspace, next_run)
        ),
        quorum=quorum,
        break_glass=find_last_break_glass(workspace, run.run_id),
        release_digest=find_release_digest(workspace, next_run),
        release=released_view(workspace, next_run, manifest),
        single_user=manifest.single_user or workspace.project.single_user,
        waves=wave_views(workspace, run, waves),
        turn=turn,
        dark=read_newest_preview(workspace, run),
        freeze=_open_freeze_view(workspace, run),
        hazards=list_open_hazards(workspace, manifest, run.run_id),
        set_back=set_back,
        rebases=workspace.ledger.rebases.facts(run.run_id),
        live_writes=live_writes,
        late_inputs=read_late_inputs(workspace, run),
        campaign=campaign or None,
        holds=list_hold_views(workspace, run.run_id),
        recovery=recovery.value if (recovery := derive_run_recovery(reaching)) else None,
        recoveries=recovery_lines(workspace, run, manifest, reaching),
        delivered=delivered.value if (delivered := derive_run_delivered(copies)) else None,
        copies=copy_lines(workspace, run.product, copies),
        owed=item_views(workspace, open_items),
    )


def _list_unfinished(publications: Iterable[PublicationRecord]) -> Iterator[str]:
    """Warnings about open publications."""
    for one in publications:
        if one.state is PublicationState.INTENDED:
            yield f"{one.kind} {one.pub_id} has been open since {one.intended_at}"


def _open_freeze_view(workspace: Workspace, run: RunRecord) -> FreezeView | None:
    """What is frozen of the run: of all its waves, from the first to be frozen to the last to end."""
    held = [one for one in workspace.ledger.freezes.list(run.run_id) if one.is_open]
    if not held:
        return None
    names = {name for one in held for name in one.partitions}
    first = min(held, key=lambda one: one.opened_at)
    whole = replace(
        first,
        partitions=tuple(name for name in run.partitions if name in names),
        lease_until=max(one.lease_until for one in held),
        most_until=max(one.most_until for one in held),
    )
    return freeze_view(workspace, whole)


_CHUNK_WORDS = {
    ChunkState.PENDING: "waiting",
    ChunkState.RUNNING: "running",
    ChunkState.DONE: "staged",
    ChunkState.FAILED: "failed",
    ChunkState.QUARANTINED: "failed",
}
_FATE_WORDS = {
    PartitionState.ACCEPTED: "published",
    PartitionState.ROLLED_BACK: "rolled_back",
    PartitionState.SUPERSEDED: "superseded",
}


def _partition_views(
    manifest: Manifest, chunks: tuple[ChunkRecord, ...], states: Mapping[str, PartitionState]
) -> tuple[PartitionView, ...]:
    words = {name: _CHUNK_WORDS[chunk.state] for chunk in chunks for name in chunk.partitions}
    for name, fate in states.items():
        if fate in _FATE_WORDS:
            words[name] = _FATE_WORDS[fate]
    ordered = sort_oldest_first(manifest.target.grain, manifest.partitions)
    return tuple(PartitionView(name, words.get(name, "waiting")) for name in ordered)


def _describe_throttle(workspace: Workspace, run: RunRecord) -> str:
    """The health signal that limits the run most, from the last entry of each; a worker that joins starts afresh."""
    if run.state is not S.RUNNING:
        return ""
    last: dict[str, AuditEntry] = {}
    for entry in workspace.ledger.audit.entries(run.run_id):
        if entry.action == "throttle.applied":
            last.clear()
        elif entry.action in _THROTTLE_TEXT:
            last[entry.body["signal"]] = entry
    worst = max(last.values(), key=lambda entry: list(_THROTTLE_TEXT).index(entry.action), default=None)
    if worst is None or worst.action == "throttle.go":
        return ""
    body = worst.body
    found = "cannot be read" if body.get("reading") is None else f"is {body['reading']}"
    return f"{_THROTTLE_TEXT[worst.action]}: {body['signal']} {found} since {worst.at}"


_THROTTLE_TEXT = {"throttle.go": "", "throttle.slow": "one chunk at a time", "throttle.pause": "no new chunk"}


def _attempt_view(attempt: AttemptRecord, now_ms: int) -> Mapping[str, Any]:
    return {
        "chunk_id": attempt.chunk_id,
        "fence": attempt.fence,
        "owner": attempt.owner.name,
        "partitions": list(attempt.partitions),
        "started_at": attempt.started_at,
        "heartbeat_at": attempt.heartbeat_at,
        "lease_left_seconds": round((attempt.lease_until - now_ms) / 1000, 1),
    }


def _publication_view(publication: PublicationRecord, releases: tuple[ReleaseRecord, ...]) -> Mapping[str, Any]:
    release = find_release(publication, releases)
    return {
        "publication_id": publication.pub_id,
        "kind": publication.kind,
        "state": publication.state.value,
        "partitions": list(publication.partitions),
        "snapshot_id": publication.result_snapshot_id,
        "person": publication.person,
        "reason": publication.reason,
        "at": publication.settled_at or publication.intended_at,
        "data_files_written": publication.data_files_written,
        "released_by": name_releaser(release),
        "break_glass": release.break_glass or None if release else None,
        "single_user": bool(publication.release.get("single_user")),
    }


def find_release(publication: PublicationRecord, releases: tuple[ReleaseRecord, ...]) -> ReleaseRecord | None:
    """The release of a publication; rollbacks, and publications older than the release feature, have none."""
    return next((one for one in releases if one.release_id == publication.release.get("release")), None)
