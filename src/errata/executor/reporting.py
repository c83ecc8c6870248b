"""Status, the stored plan, and "why did this number change?": reading only, and never a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from errata.errors import NotFound
from errata.executor.acceptances import accepted_in_verdict
from errata.executor.accounting import adopted_attempts
from errata.executor.approving import current_quorum
from errata.executor.budget import cost_view
from errata.executor.cooperating import freeze_view
from errata.executor.darkened import dark_of
from errata.executor.desk import Desk
from errata.executor.differing import classified_in
from errata.executor.glass import broken_in, newest_broken
from errata.executor.grouping import groups_view
from errata.executor.judged import release_digest, released_by, released_view
from errata.executor.late_inputs import late_inputs_of
from errata.executor.noticing import live_writes_of
from errata.executor.quarantining import rows_by_input
from errata.executor.rebases import rebases_told
from errata.executor.views import approvals_view, counts_view, failures_view, stored_plan_view
from errata.ledger import (
    AcceptanceRecord,
    AttemptRecord,
    ChunkRecord,
    Counts,
    PartitionState,
    PublicationRecord,
    ReleaseRecord,
    RunRecord,
)
from errata.model.audit import Actor, AuditEntry
from errata.model.manifest import Manifest
from errata.model.partition import oldest_first, parse
from errata.model.refs import undo_branch
from errata.model.run import AttemptState, ChunkState, PublicationState, RunState
from errata.model.views import (
    BreakGlassView,
    FreezeView,
    GroupsView,
    HistoryView,
    PartitionView,
    PlanView,
    QuorumView,
    RunLine,
    StatusView,
    WhyView,
)
from errata.validator.diff import masked_pair
from errata.validator.ports import CANDIDATE, PRIOR, ROW_COUNT

__all__ = ["run_lines", "show", "status", "why"]

S = RunState


def show(desk: Desk, actor: Actor, run_id: str) -> PlanView:
    """The plan again, from the bytes that were sealed."""
    run = desk.ledger.run(run_id)
    return stored_plan_view(desk, run, desk.ledger.manifest(run.run_id, actor))


def status(desk: Desk, actor: Actor, run_id: str | None) -> StatusView:
    """All runs, or one run with its chunks, partitions, decisions and the next command."""
    if run_id is None:
        return StatusView(runs=run_lines(desk, desk.ledger.runs()), single_user=desk.project.single_user)
    run = desk.ledger.run(run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    chunks = desk.ledger.chunks(run.run_id)
    counts = desk.ledger.counts(run.run_id)
    publications, releases = desk.ledger.publications(run.run_id), desk.ledger.releases(run.run_id)
    attempts, facts = desk.ledger.attempts(run.run_id), desk.ledger.facts(run.run_id)
    now_ms, quorum = desk.ledger.now_ms(), current_quorum(desk, run, manifest)
    groups = groups_view(desk, run, manifest)
    return StatusView(
        run_id=run.run_id,
        product=run.product,
        state=run.state.value,
        grain=manifest.target.grain.value,
        order=manifest.order,
        chunks=counts_view(counts),
        recomputed=counts.recomputed,
        rows=counts.rows,
        partitions=_partitions(desk, run, manifest, chunks),
        attempts=tuple(_attempt(a, now_ms) for a in attempts if a.state is AttemptState.RUNNING),
        failures=failures_view(chunks),
        approvals=approvals_view(desk, run.run_id),
        publications=tuple(_publication(p, releases) for p in publications),
        next=_again(run, quorum) or _going_on(run, groups) or next_command(run, counts, _last_move(desk, run)),
        warnings=tuple(
            f"{p.kind} {p.pub_id} is open since {p.intended_at}"
            for p in publications
            if p.state is PublicationState.INTENDED
        )
        + tuple(
            f"{pub_id} landed, and what follows it is not done yet: {', '.join(owed)}"
            for run_id, pub_id, owed in desk.ledger.debts(run.table)
            if run_id == run.run_id
        ),
        cost=cost_view(desk, manifest, attempts, facts),
        canary=facts.get("canary"),
        determinism=facts.get("determinism"),
        held=_held(desk, run),
        input_rows=rows_by_input(adopted_attempts(desk, run.run_id)),
        accepted=tuple(
            {"check": one.check, "why": one.why, "person": one.person} for one in accepted_in_verdict(desk, run)
        ),
        quorum=quorum,
        break_glass=newest_broken(desk, run.run_id),
        release_digest=release_digest(desk, run),
        release=released_view(desk, run, manifest),
        single_user=manifest.single_user or desk.project.single_user,
        groups=groups,
        dark=dark_of(desk, run),
        freeze=_freeze(desk, run),
        rebases=rebases_told(desk, run.run_id),
        live_writes=live_writes_of(desk, run),
        late_inputs=late_inputs_of(desk, run),
    )


def _freeze(desk: Desk, run: RunRecord) -> FreezeView | None:
    found = desk.ledger.freeze_of(run.run_id)
    return freeze_view(desk, found) if found and found.is_open else None


def _again(run: RunRecord, quorum: QuorumView | None) -> str:
    """Approvals that no longer suffice stand before the next deed that needs them."""
    is_needed = run.state in (S.APPROVED, S.VALIDATED, S.PART_PUBLISHED)
    lacking = quorum is not None and not quorum.met and is_needed
    return f"errata approve {run.run_id} --digest {run.manifest_digest}" if lacking else ""


def _going_on(run: RunRecord, groups: GroupsView | None) -> str:
    """Groups that were stopped go on when someone says so."""
    return f"errata resume {run.run_id}" if groups is not None and groups.stopped else ""


def next_command(run: RunRecord, counts: Counts, last_move: str) -> str:
    """What a person would type next; ``last_move`` is the action that brought the run where it is."""
    again = f'errata plan {run.product} … --supersede {run.run_id} --reason "…"'
    if last_move in _FOR_GOOD or (run.state is S.REJECTED and counts.done < counts.total):
        return again + _FOR_GOOD.get(last_move, "")
    match run.state:
        case S.PLANNED:
            return f"errata approve {run.run_id} --digest {run.manifest_digest}"
        case S.APPROVED | S.RUNNING:
            return f"errata run {run.run_id}"
        case S.PAUSED:
            return f"errata resume {run.run_id}"
        case S.FAILED:
            return f"errata retry {run.run_id} && errata run {run.run_id}"
        case S.STAGED:
            return f"errata validate {run.run_id}"
        case S.REJECTED:
            return f"errata diff {run.run_id}"
        case S.VALIDATED | S.PART_PUBLISHED | S.PUBLISHING:
            return f"errata publish {run.run_id}"
        case S.PUBLISHED:
            return f'errata rollback {run.run_id} [--partitions …] --reason "…"'
        case _:
            return ""


_FOR_GOOD = {"cost.capped": ' --override cost="…"', "determinism.refuted": ""}
"""Moves after which going on would end at the same place, and what another plan needs."""
_RECENT = 200


def _last_move(desk: Desk, run: RunRecord) -> str:
    if run.state not in (S.PAUSED, S.FAILED):
        return ""
    told = desk.ledger.audit_entries(run.run_id, limit=_RECENT)
    return next((entry.action for entry in reversed(told) if "move" in entry.body), "")


def run_lines(desk: Desk, runs: Iterable[RunRecord]) -> tuple[RunLine, ...]:
    """Runs as a list shows them."""
    counts = desk.ledger.all_counts()
    return tuple(_line(run, counts.get(run.run_id, Counts())) for run in runs)


def _line(run: RunRecord, counts: Counts) -> RunLine:
    ordered = run.partitions
    return RunLine(
        run.run_id, run.product, run.state.value, len(ordered), ordered[0], ordered[-1], run.planned_by, run.reason,
        run.planned_at, counts_view(counts),
    )  # fmt: skip


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


def _partitions(
    desk: Desk, run: RunRecord, manifest: Manifest, chunks: tuple[ChunkRecord, ...]
) -> tuple[PartitionView, ...]:
    words = {name: _CHUNK_WORDS[chunk.state] for chunk in chunks for name in chunk.partitions}
    for name, fate in desk.ledger.partition_states(run.run_id).items():
        if fate in _FATE_WORDS:
            words[name] = _FATE_WORDS[fate]
    ordered = oldest_first(manifest.target.grain, manifest.partitions)
    return tuple(PartitionView(name, words.get(name, "waiting")) for name in ordered)


def _held(desk: Desk, run: RunRecord) -> str:
    """The health signal that holds the run most, by the last word on each; a worker that joins looks anew."""
    if run.state is not S.RUNNING:
        return ""
    last: dict[str, AuditEntry] = {}
    for entry in desk.ledger.audit_entries(run.run_id):
        if entry.action == "throttle.applied":
            last.clear()
        elif entry.action in _HOLDS:
            last[entry.body["signal"]] = entry
    worst = max(last.values(), key=lambda entry: list(_HOLDS).index(entry.action), default=None)
    if worst is None or worst.action == "throttle.go":
        return ""
    body = worst.body
    found = "cannot be read" if body.get("reading") is None else f"is {body['reading']}"
    return f"{_HOLDS[worst.action]}: {body['signal']} {found} since {worst.at}"


_HOLDS = {"throttle.go": "", "throttle.slow": "one chunk at a time", "throttle.pause": "no new chunk"}


def _attempt(attempt: AttemptRecord, now_ms: int) -> Mapping[str, Any]:
    return {
        "chunk_id": attempt.chunk_id,
        "fence": attempt.fence,
        "owner": attempt.owner.name,
        "partitions": list(attempt.partitions),
        "started_at": attempt.started_at,
        "heartbeat_at": attempt.heartbeat_at,
        "lease_left_seconds": round((attempt.lease_until - now_ms) / 1000, 1),
    }


def _publication(publication: PublicationRecord, releases: tuple[ReleaseRecord, ...]) -> Mapping[str, Any]:
    release = _under(publication, releases)
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
        "released_by": released_by(release),
        "break_glass": release.break_glass or None if release else None,
        "single_user": bool(publication.release.get("single_user")),
    }


def why(desk: Desk, actor: Actor, table: str, partition: str, key: Mapping[str, str]) -> WhyView:
    """Everything that happened to a partition through Errata, and what it was before."""
    products = [product for product in desk.project.products.values() if table in (product.target.table, product.name)]
    if not products:
        known = ", ".join(sorted(product.target.table for product in desk.project.products.values()))
        raise NotFound(f"{table} is not a governed table of this project; expected one of {known}")
    target = products[0].target
    name = parse(target.grain, partition)
    rows = desk.ledger.acceptance_history(target.table, name)
    history = [item for record in rows for item in _history(desk, actor, record, name, key, is_first=record is rows[0])]
    note = "" if rows else "no run has ever published this partition; what it holds was written by the live pipeline"
    return WhyView(target.table, name, dict(key), tuple(history), note)


def _history(
    desk: Desk, actor: Actor, record: AcceptanceRecord, partition: str, key: Mapping[str, str], *, is_first: bool
) -> list[HistoryView]:
    publication = desk.ledger.publication(record.pub_id)
    run = desk.ledger.run(publication.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    before, after = _values(desk, run, manifest, publication, partition, key)
    approvals = [a.person for a in desk.ledger.approvals(run.run_id) if a.decision == "approved"]
    verdict = desk.ledger.latest_verdict(run.run_id)
    passed = sum(1 for c in verdict.checks if c["level"] == "ok") if verdict else None
    item = HistoryView(
        action=record.action, at=record.at, run_id=run.run_id,
        reason=publication.reason if record.action == "rolled_back" else run.reason,
        requested_by=run.planned_by, approved_by=", ".join(approvals) or None, published_at=record.at,
        before=before, after=after, snapshot_id=publication.result_snapshot_id,
        manifest_digest=run.manifest_digest, published_by=publication.person, checks_passed=passed,
        released_by=released_by(_under(publication, desk.ledger.releases(run.run_id))),
        break_glass=_broken(desk, publication),
        single_user=bool(publication.release.get("single_user", manifest.single_user)),
        restored=manifest.restored.snapshot_id if manifest.restored and record.action == "published" else None,
        rebased=_rebased(desk, record, run, partition),
    )  # fmt: skip
    if not is_first:
        return [item]
    origin = desk.engines.rows.origin(manifest.target, publication.base_snapshot_id, partition)
    live = HistoryView(
        action="live", at=origin.at if origin else "", run_id=None, reason=None, requested_by=None, approved_by=None,
        published_at=None, before=None, after=before, snapshot_id=origin.snapshot_id if origin else None,
        application=origin.application if origin else None,
    )  # fmt: skip
    return [live, item]


def _rebased(desk: Desk, record: AcceptanceRecord, run: RunRecord, partition: str) -> str | None:
    found = [one for one in rebases_told(desk, run.run_id) if partition in one["partitions"]]
    return str(found[-1]["base_snapshot_id"]) if found and record.action == "published" else None


def _under(publication: PublicationRecord, releases: tuple[ReleaseRecord, ...]) -> ReleaseRecord | None:
    """The release that let it out; rollbacks, and publications of before there were releases, have none."""
    return next((one for one in releases if one.release_id == publication.release.get("release")), None)


def _broken(desk: Desk, publication: PublicationRecord) -> BreakGlassView | None:
    """Whether someone decided alone, up to this publication."""
    until = publication.settled_at or publication.intended_at
    found = [one for one in broken_in(desk, publication.run_id) if one.at <= until]
    return found[-1] if found and publication.kind == "publish" else None


def _told(
    desk: Desk, manifest: Manifest, publication: PublicationRecord, partition: str, key: Mapping[str, str]
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] | None:
    """What the table of corrections says of this key; it outlives every snapshot. None: nothing, so rows are asked."""
    table = manifest.publish.corrections
    if table is None or not set(key) <= set(manifest.target.key):
        return None
    return desk.engines.rows.corrections(table, partition, key).get(publication.pub_id)


def _values(
    desk: Desk,
    run: RunRecord,
    manifest: Manifest,
    publication: PublicationRecord,
    partition: str,
    key: Mapping[str, str],
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """With a key, the row itself; without, the row count and the compared metrics of the partition."""
    if key and (told := _told(desk, manifest, publication, partition, key)):
        return masked_pair(*told, classified_in(desk, manifest))
    if key:
        refs = desk.engines.pins.refs(run.table)
        undo, target = refs.get(undo_branch(publication.pub_id)), manifest.target
        before = desk.engines.rows.row(target, undo, partition, key) if undo else None
        after = desk.engines.rows.row(target, publication.result_snapshot_id, partition, key)
        return masked_pair(before, after, classified_in(desk, manifest))
    candidate = desk.ledger.latest_candidate(run.run_id)
    stored = desk.ledger.measurements(run.run_id, candidate.n) if candidate else ()
    names = {ROW_COUNT, *(f"compare.{rule.name}" for rule in manifest.compare)}
    sides: dict[str, dict[str, Any]] = {PRIOR: {}, CANDIDATE: {}}
    for m in stored:
        if m.partition == partition and m.scope in sides and m.name in names:
            sides[m.scope][m.name.removeprefix("compare.")] = m.value
    if publication.kind == "rollback":
        return sides[CANDIDATE] or None, sides[PRIOR] or None
    return sides[PRIOR] or None, sides[CANDIDATE] or None
