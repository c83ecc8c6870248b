"""Roll back: what the partitions held before the publication that brought their content in, as a new commit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from errata.errors import PublishConflict, RunExpired, StateRefused, UsageError
from errata.gate.measure.names import content_columns
from errata.ledger import PartitionState, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.duration import days
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.partition import fold_text, list_text
from errata.model.product import Role
from errata.model.refs import pre_tag, undo_branch
from errata.model.run import RUN_MOVES, RunState
from errata.model.side_tables import beside_table, is_beside
from errata.model.table import ROW_LINEAGE, FileSets
from errata.ports.measure import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT
from errata.publishing.erasure import kept, require_no_earlier, require_no_return
from errata.publishing.follow_up import follow_up, owed_by
from errata.publishing.hazards import open_hazards, record_guard
from errata.publishing.recovery import LedgerLog, settle_open
from errata.publishing.replacement import Replacement, carry_out
from errata.publishing.selection import chosen, conflicts_told
from errata.publishing.side_tables import take_back_beside
from errata.publishing.sweep import sweep
from errata.views import HazardView, RollbackView
from errata.workspace import Desk


def rollback(
    desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None, reason: str
) -> RollbackView:
    """Restore what the chosen partitions held before this run, as a new commit."""
    started = time.monotonic()
    if not reason.strip():
        raise UsageError("a rollback without a reason was refused; expected --reason with why it is taken back")
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.PUBLISHER,), "rollback", run.run_id, persons=True)
    desk.persons_only(actor, (Role.PUBLISHER,), "rollback", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    asked = chosen(manifest, partitions)
    states = desk.ledger.partition_states(run.run_id)
    scope = tuple(name for name in asked if states[name] is PartitionState.ACCEPTED)
    if not scope:
        return _rolled_back_already(desk, actor, run, manifest, asked, states, named=partitions is not None)
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over and partitions is not None:
        raise _superseded(desk, run, manifest, taken_over)
    not_out = [name for name in asked if states[name] is PartitionState.UNPUBLISHED]
    if not_out and partitions is not None:
        desk.narrate(f"{fold_text(manifest.target.grain, not_out)} is not published and stays as it is")
    owes = owed_by(desk, run, manifest, "rollback", scope)
    mark = ""
    order = None if is_beside(manifest.publish) else _undo(desk, run, manifest, scope)
    if order:
        mark = require_no_return(desk, actor, run, manifest, order)
    elif manifest.publish.versions:
        mark = require_no_earlier(desk, actor, run, manifest, scope)
    log = LedgerLog(
        desk, actor, run.run_id, "rollback", run.table, scope, reason,
        {"single_user": actor.single_user, **kept(mark)}, owes,
        last_look=lambda: order and require_no_return(desk, actor, run, manifest, order, mark),
    )  # fmt: skip
    with conflicts_told(desk, actor, run, "rollback"), log.kept_alive():
        if order is None:
            done = take_back_beside(desk, run, manifest, scope, reason, log)
        else:
            record_guard(desk, actor, manifest.target)
            done = carry_out(order, desk.engines.publishing, desk.engines.content, log)
    for warning in follow_up(desk, actor, run.table):
        desk.narrate(f"WARNING: {warning}")
    sweep(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    return RollbackView(
        run_id=run.run_id,
        state=run.state.value,
        already=False,
        publication_id=done.publication_id,
        snapshot_id=done.snapshot_id,
        partitions=scope,
        data_files_written=done.data_files_written,
        seconds=round(time.monotonic() - started, 3),
        grain=manifest.target.grain.value,
        product=run.product,
        single_user=actor.single_user,
        landed_on=beside_table(manifest),
        warnings=_lineage(desk, run, manifest),
        hazard=_hazard(desk, manifest, done.publication_id),
    )


def _hazard(desk: Desk, manifest: Manifest, publication_id: str) -> HazardView | None:
    run_id = desk.ledger.publication(publication_id).run_id
    found = open_hazards(desk, manifest, run_id)
    return next((one for one in found if one.publication_id == publication_id), None)


def _lineage(desk: Desk, run: RunRecord, manifest: Manifest) -> tuple[str, ...]:
    """Files that come back are added anew, and Iceberg gives the rows of an added file new ids."""
    if beside_table(manifest) or desk.engines.tables.describe(run.table).format_version < ROW_LINEAGE:
        return ()
    return ("rows and values are those of before; their _row_id and _last_updated_sequence_number are new",)


def _undo(desk: Desk, run: RunRecord, manifest: Manifest, scope: tuple[str, ...]) -> Replacement:
    """What each partition held before the publication that brought its content in."""
    accepted = desk.ledger.accepted(run.table, scope)
    by_publication: dict[str, list[str]] = {}
    for name in scope:
        by_publication.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    refs = desk.engines.pins.refs(run.table)
    expected: dict[str, tuple[ExpectedFile, ...]] = {}
    add: dict[str, tuple[ExpectedFile, ...]] = {}
    sources: list[str] = []
    rewrite: dict[str, tuple[str, ...]] = {}
    for pub_id, names in by_publication.items():
        detail = desk.ledger.publication_detail(pub_id)
        expected |= _files(detail["add"], names)
        with_deletes = tuple(name for name in names if name in detail["with_deletes"])
        shared = tuple(name for name in names if name in detail.get("shared", ()) and name not in with_deletes)
        whole = [name for name in names if name not in (*with_deletes, *shared)]
        add |= _files(detail["remove"], whole)
        needed = {undo_branch(pub_id): bool(whole or shared), pre_tag(pub_id): bool(with_deletes)}
        if any(wanted and ref not in refs for ref, wanted in needed.items()):
            raise _window_over(run, manifest, pub_id)
        if whole:
            sources.append(refs[undo_branch(pub_id)])
        # what shared a file with other partitions, or carries deletes, comes back as rows and not as files
        rewrite |= {
            refs[ref(pub_id)]: asked for ref, asked in ((undo_branch, shared), (pre_tag, with_deletes)) if asked
        }
    publications = [desk.ledger.publication(pub_id) for pub_id in by_publication]
    window = days(manifest.rollback_window)
    return Replacement(
        kind="rollback",
        run_id=run.run_id,
        manifest_digest=run.manifest_digest,
        target=manifest.target,
        partitions=scope,
        expected=expected,
        base_snapshot_id=min(publications, key=lambda p: p.settled_at or "").result_snapshot_id,
        add=add,
        add_from=tuple(sources),
        undo_days=window,
        keep_refs={undo_branch(pub_id): window for pub_id in by_publication if undo_branch(pub_id) in refs},
        # a publication looks for live writes after it has written its undo branch, so deletes that are newer than the
        # branch came after the publication; and the branch outlives main's snapshots
        marks=tuple(refs[undo_branch(pub_id)] for pub_id in by_publication if undo_branch(pub_id) in refs),
        content_columns=content_columns(manifest),
        # later ones on these partitions were all taken back, or this would not be the accepted run
        own=frozenset(desk.ledger.committed_on(run.table)),
        known_content=_measured_content(desk, run, scope),
        rewrite=rewrite,
        # each partition is held against what its own publication left: an earlier snapshot may have held other rows
        rebased={name: pub.result_snapshot_id for pub in publications for name in by_publication[pub.pub_id]},
        instead=_restoring(run, manifest, {pub.pub_id: pub for pub in publications}, by_publication, refs),
    )


def _restoring(
    run: RunRecord,
    manifest: Manifest,
    publications: Mapping[str, PublicationRecord],
    by_publication: Mapping[str, Sequence[str]],
    refs: Mapping[str, str],
) -> str:
    """The commands that put back the rows of before each publication, for a table whose files cannot be exchanged."""
    found = []
    for pub_id, names in by_publication.items():
        before = pre_tag(pub_id) if pre_tag(pub_id) in refs else publications[pub_id].base_snapshot_id
        listed = list_text(manifest.target.grain, names)
        found.append(f'errata plan {run.product} --partitions {listed} --restore {before} --reason "…"')
    return "; ".join(found)


def _files(listed: Mapping[str, Sequence[Sequence[Any]]], names: Sequence[str]) -> FileSets:
    return {
        name: tuple(ExpectedFile(path, rows, content) for content, path, rows in listed.get(name, ())) for name in names
    }


def _measured_content(desk: Desk, run: RunRecord, scope: Sequence[str]) -> Mapping[str, str]:
    """What the gate measured of these partitions: it outlives every snapshot."""
    candidate = desk.ledger.latest_candidate(run.run_id)
    stored = desk.ledger.measurements(run.run_id, candidate.n) if candidate else ()
    found: dict[str, dict[str, str]] = {name: {} for name in scope}
    for m in stored:
        if m.scope == CANDIDATE and m.partition in found and m.name in (ROW_COUNT, CONTENT_A, CONTENT_B):
            found[m.partition][m.name] = m.value or "0"
    return {
        name: f"{values[ROW_COUNT]}:{values[CONTENT_A]}:{values[CONTENT_B]}"
        for name, values in found.items()
        if len(values) == 3
    }


def _window_over(run: RunRecord, manifest: Manifest, pub_id: str) -> RunExpired:
    return RunExpired(
        f"rollback of {run.run_id} was refused; the undo set of {pub_id} is gone "
        f"(it was promised for {manifest.rollback_window})",
        state="main is unchanged",
        hint=f"put back an older snapshot, if one is there (errata history {run.table} PARTITION): errata plan "
        f'{run.product} --partitions … --restore SNAPSHOT --reason "…"; or compute it again, without --restore',
    )


def _superseded(desk: Desk, run: RunRecord, manifest: Manifest, names: Sequence[str]) -> PublishConflict:
    later = sorted({record.run_id or "" for record in desk.ledger.accepted(run.table, names).values()})
    return PublishConflict(
        f"rollback of {run.run_id} was refused; {fold_text(manifest.target.grain, names)} was published again by "
        f"{', '.join(later)}",
        state="main is unchanged",
        hint=f'later runs first: errata rollback {later[0]} --reason "…"',
        partitions=list(names),
    )


def _not_published(
    run: RunRecord, manifest: Manifest, asked: Sequence[str], states: Mapping[str, PartitionState]
) -> StateRefused:
    """Readers never saw these partitions of the run; the hint is about what they do see of it."""
    grain = manifest.target.grain
    out = [name for name in manifest.partitions if states[name] is PartitionState.ACCEPTED]
    missing = [name for name in asked if states[name] is PartitionState.UNPUBLISHED]
    if out:
        hint = f'errata rollback {run.run_id} --partitions {list_text(grain, out)} --reason "…"'
    elif RunState.CANCELLED in RUN_MOVES[run.state]:
        hint = f"errata cancel {run.run_id} ends it"
    else:
        hint = f"errata status {run.run_id}"
    return StateRefused(
        f"rollback of {run.run_id} was refused; expected partitions that it published, found "
        f"{fold_text(grain, missing)} not published (the run is {run.state.value.replace('_', ' ')})",
        state="main is unchanged",
        hint=hint,
        partitions=missing,
    )


def _rolled_back_already(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    asked: Sequence[str],
    states: Mapping[str, PartitionState],
    *,
    named: bool,
) -> RollbackView:
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over:
        raise _superseded(desk, run, manifest, taken_over)
    taken_back = [name for name in asked if states[name] is PartitionState.ROLLED_BACK]
    if not taken_back or (named and len(taken_back) < len(asked)):
        error = _not_published(run, manifest, asked, states)
        desk.ledger.refuse(run.run_id, actor, "rollback", error.message)
        raise error
    last = [p for p in desk.ledger.publications(run.run_id) if p.kind == "rollback" and p.result_snapshot_id][-1]
    return RollbackView(
        run_id=run.run_id,
        state=run.state.value,
        already=True,
        publication_id=last.pub_id,
        snapshot_id=last.result_snapshot_id or "",
        partitions=tuple(taken_back),
        data_files_written=last.data_files_written or 0,
        seconds=0.0,
        grain=manifest.target.grain.value,
        product=run.product,
        single_user=bool(last.release.get("single_user")),
        landed_on=beside_table(manifest),
        hazard=_hazard(desk, manifest, last.pub_id),
        later=_published_since(desk, run, taken_back),
    )


def _published_since(desk: Desk, run: RunRecord, taken_back: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Later runs that are the truth in partitions that were taken back. What stood before the run came before it."""
    rollbacks = [p for p in desk.ledger.publications(run.run_id) if p.kind == "rollback" and p.result_snapshot_id]
    back_at = {name: p.settled_at or "" for p in rollbacks for name in p.partitions}
    found: dict[str, list[str]] = {}
    for name, top in desk.ledger.accepted(run.table, taken_back).items():
        origin = desk.ledger.publication(top.origin_pub_id) if top.origin_pub_id else None
        if origin is not None and (origin.settled_at or "") > back_at[name]:
            found.setdefault(origin.run_id, []).append(name)
    return {later: tuple(names) for later, names in found.items()}
