"""`errata rollback`: restore the content of partitions from before their publication, as a new commit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from errata.approval.permissions import require_person, require_role
from errata.commands.publish.stale_readers import note_stale_readers
from errata.commands.situation import hint_next_step
from errata.delivery.copies.retention import count_kept_days
from errata.delivery.copies.run_copies import run_copy_lines
from errata.delivery.obligations import ROLLED_BACK, list_owed
from errata.delivery.payment import pay
from errata.delivery.topics.topic_items import list_sent
from errata.delivery.unpaid import describe_unpaid
from errata.errors import PublishConflict, RunExpired, StateRefused
from errata.gate.measure.names import content_columns
from errata.ledger import PartitionState, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.duration import to_days
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.partition import format_partition_list, format_ranges
from errata.model.product import Role
from errata.model.product.erasure import format_erased_count
from errata.model.refs import pre_tag, undo_branch
from errata.model.run import RUN_MOVES, RunState
from errata.model.side_tables import find_side_table, is_side_table_mode
from errata.model.table import ROW_LINEAGE
from errata.model.waves import find_wave
from errata.ports.measure import CANDIDATE, CONTENT_A, CONTENT_B, ROW_COUNT
from errata.publishing.erasure import (
    ErasedBefore,
    find_erased_before,
    require_clean_versions,
    require_same_list,
    watermark_fields,
)
from errata.publishing.hazards import list_open_hazards, record_guard
from errata.publishing.intent import Intent
from errata.publishing.origins import find_origins
from errata.publishing.recovery import LedgerLog, recover_open_intents
from errata.publishing.replacement import Replacement, ReplacementResult, commit_replacement, examine_version
from errata.publishing.selection import audit_conflicts, select_partitions
from errata.publishing.side_tables import roll_back_side_table
from errata.publishing.sweep import sweep_refs
from errata.text.escape import require_reason
from errata.views import HazardView, RollbackView
from errata.workspace import RunContext, Workspace


@hint_next_step
def roll_back_run(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    partitions: str | Sequence[str] | None,
    reason: str,
    wave: int | None = None,
    *,
    left: Mapping[str, str] | None = None,
) -> RollbackView:
    """Restore the content that the chosen partitions had before this run was published, as a new commit.

    ``left`` are runs that were computed from it and that a person leaves as they are, each with the reason.
    """
    started = time.monotonic()
    require_reason("a rollback", reason, f"errata rollback {run_id}")
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.PUBLISHER,), "rollback", run.run_id, persons=True)
    require_person(workspace, actor, (Role.PUBLISHER,), "rollback", run.run_id)
    # an earlier commit may have landed without being recorded: settle it before reading any state
    recover_open_intents(workspace, actor, run.table)
    context = workspace.open_run(run.run_id, actor)
    run, manifest = context.run, context.manifest
    if wave is not None:
        partitions = find_wave(manifest, wave).partitions
    asked = select_partitions(manifest, partitions)
    states = workspace.ledger.partitions.states(run.run_id)
    scope = tuple(name for name in asked if states[name] is PartitionState.ACCEPTED)
    if not scope:
        return _report_already_rolled_back(context, asked, states, left, named=partitions is not None)
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over and partitions is not None:
        raise _superseded_error(context, taken_over)
    not_out = [name for name in asked if states[name] is PartitionState.UNPUBLISHED]
    if not_out and partitions is not None:
        workspace.narrate(f"{format_ranges(manifest.target.grain, not_out)} is not published and stays as it is")
    workspace.engines.start_early(session=False)
    sent = list_sent(workspace, manifest, list(find_origins(workspace, run, scope)), scope)
    done, left_out = _commit_rollback(context, scope, reason)
    # after the commit is recorded: only what has landed owes anything
    _pay_owed(context)
    stale = note_stale_readers(workspace, actor, workspace.ledger.publications.get(done.publication_id), left)
    sweep_refs(workspace, actor, run.table)
    run = workspace.ledger.runs.get(run.run_id)
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
        landed_on=find_side_table(manifest),
        warnings=(*left_out, *_lineage_warnings(context), *sent, *stale),
        hazard=_find_hazard(workspace, manifest, done.publication_id),
        stale=stale,
        copies=run_copy_lines(workspace, run),
    )


def look_at_rollback(context: RunContext, scope: tuple[str, ...]) -> None:
    """Raise what would keep these partitions from going back now; changes nothing."""
    if is_side_table_mode(context.manifest.publish):
        if context.manifest.publish.versions:
            require_clean_versions(context, scope)
        return
    order = build_undo(context, scope)
    examine_version(order, context.engines.publishing.version(context.manifest.target), context.engines.content)


def _commit_rollback(
    context: RunContext, scope: tuple[str, ...], reason: str
) -> tuple[ReplacementResult, tuple[str, ...]]:
    """Restore the partitions in one commit, with the intent before it and the record after it.

    Returns what landed, and what to say about rows of erased subjects that were left out.
    """
    workspace, actor, run, manifest = context.workspace, context.actor, context.run, context.manifest
    owes = list_owed(workspace, run, manifest, ROLLED_BACK, scope)
    # erased subjects are looked for before the intent, which would lock the partitions, and again before the commit
    erased, before = ErasedBefore(), dict[str, tuple[ExpectedFile, ...] | None]()
    order = None if is_side_table_mode(manifest.publish) else build_undo(context, scope)
    if order:
        erased = find_erased_before(context, order)
        before = {name: order.add.get(name) for name in erased.partitions}
        order = build_undo(context, scope, erased) if erased.partitions else order
    elif manifest.publish.versions:
        erased = ErasedBefore(require_clean_versions(context, scope))
    log = LedgerLog(
        workspace, actor, run.run_id, "rollback", run.table, scope, reason,
        {"single_user": actor.single_user, **watermark_fields(erased.watermark), **_name_erased(erased)}, owes,
        last_look=lambda: require_same_list(context, erased) if order else None,
    )  # fmt: skip
    with audit_conflicts(workspace, actor, run, "rollback"), log.keep_alive():
        if order is None:
            done = roll_back_side_table(workspace, run, manifest, scope, reason, log)
        else:
            # before the commit: the files that come back are safe from an expiry only behind the guard
            record_guard(workspace, actor, manifest.target)
            done = commit_replacement(order, workspace.engines.publishing, workspace.engines.content, log)
    return done, _describe_left_out(context, done.publication_id, before)


def _describe_left_out(
    context: RunContext, publication_id: str, before: Mapping[str, tuple[ExpectedFile, ...] | None]
) -> tuple[str, ...]:
    """Say how many rows did not come back; files with deletes do not tell how many rows they held."""
    if not before:
        return ()
    after = Intent.from_dict(context.ledger.publications.detail(publication_id)).add
    where = format_ranges(context.manifest.target.grain, tuple(before))
    if any(files is None for files in before.values()):
        return (f"rows of erased subjects were left out of {where}",)
    old = sum(file.rows for files in before.values() for file in files or ())
    new = sum(file.rows for name in before for file in after.get(name, ()))
    return (f"{format_erased_count(old - new)} rows of erased subjects were left out of {where}",)


def _find_hazard(workspace: Workspace, manifest: Manifest, publication_id: str) -> HazardView | None:
    run_id = workspace.ledger.publications.get(publication_id).run_id
    found = list_open_hazards(workspace, manifest, run_id)
    return next((one for one in found if one.publication_id == publication_id), None)


def _lineage_warnings(context: RunContext) -> tuple[str, ...]:
    """Warn about new row ids: restored files are added again, and Iceberg assigns new ids to added rows."""
    if (
        find_side_table(context.manifest)
        or context.engines.tables.describe(context.run.table).format_version < ROW_LINEAGE
    ):
        return ()
    return ("rows and values are as before; their _row_id and _last_updated_sequence_number are new",)


def _name_erased(erased: ErasedBefore) -> dict[str, Any]:
    """Partitions that come back without rows of erased subjects, for the record of the rollback."""
    return {"without_erased": list(erased.partitions)} if erased.partitions else {}


def build_undo(context: RunContext, scope: tuple[str, ...], erased: ErasedBefore | None = None) -> Replacement:
    """Replacement that restores each partition to its content before the publication of its current content.

    Partitions whose old files hold rows of ``erased`` subjects come back as rows, without them.
    """
    unclean = erased.partitions if erased else ()
    accepted = context.ledger.partitions.accepted(context.run.table, scope)
    by_publication: dict[str, list[str]] = {}
    for name in scope:
        by_publication.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    refs = context.engines.pins.refs(context.run.table)
    expected: dict[str, tuple[ExpectedFile, ...]] = {}
    add: dict[str, tuple[ExpectedFile, ...]] = {}
    sources: list[str] = []
    rewrite: dict[str, tuple[str, ...]] = {}
    for pub_id, names in by_publication.items():
        intent = Intent.from_dict(context.ledger.publications.detail(pub_id))
        expected |= {name: intent.add.get(name, ()) for name in names}
        with_deletes = tuple(name for name in names if name in intent.with_deletes)
        shared = tuple(name for name in names if name in (*intent.shared, *unclean) and name not in with_deletes)
        whole = [name for name in names if name not in (*with_deletes, *shared)]
        add |= {name: intent.remove.get(name, ()) for name in whole}
        needed = {undo_branch(pub_id): bool(whole or shared), pre_tag(pub_id): bool(with_deletes)}
        if any(wanted and ref not in refs for ref, wanted in needed.items()):
            raise _undo_gone_error(context.run, context.manifest, pub_id)
        if whole:
            sources.append(refs[undo_branch(pub_id)])
        # partitions that shared a file with others, had deletes or hold erased subjects are restored as rows, not files
        rewrite |= {
            refs[ref(pub_id)]: asked for ref, asked in ((undo_branch, shared), (pre_tag, with_deletes)) if asked
        }
    publications = [context.ledger.publications.get(pub_id) for pub_id in by_publication]
    window = to_days(context.manifest.rollback_window)
    return Replacement(
        kind="rollback",
        run_id=context.run_id,
        product=context.run.product,
        manifest_digest=context.run.manifest_digest,
        target=context.manifest.target,
        partitions=scope,
        expected=expected,
        base_snapshot_id=min(publications, key=lambda p: p.settled_at or "").result_snapshot_id,
        add=add,
        add_from=tuple(sources),
        undo_days=window,
        pub_days=count_kept_days(context.workspace, context.manifest.product),
        keep_refs={undo_branch(pub_id): window for pub_id in by_publication if undo_branch(pub_id) in refs},
        # a publication checks for live writes after it has written its undo branch, so deletes that are newer than the
        # branch came after the publication; and the branch outlives the snapshots of main
        marks=tuple(refs[undo_branch(pub_id)] for pub_id in by_publication if undo_branch(pub_id) in refs),
        content_columns=content_columns(context.manifest),
        # later publications of these partitions were all rolled back, or this run would not be the current one
        own=frozenset(context.ledger.publications.list_committed(context.run.table)),
        known_content=_read_measured_content(context.workspace, context.run, scope),
        rewrite=rewrite,
        without=erased.without if erased else None,
        # compare each partition with the result of its own publication: earlier snapshots may hold other rows
        rebased={name: pub.result_snapshot_id for pub in publications for name in by_publication[pub.pub_id]},
        instead=_restore_commands(
            context.run, context.manifest, {pub.pub_id: pub for pub in publications}, by_publication, refs
        ),
    )


def _restore_commands(
    run: RunRecord,
    manifest: Manifest,
    publications: Mapping[str, PublicationRecord],
    by_publication: Mapping[str, Sequence[str]],
    refs: Mapping[str, str],
) -> str:
    """Commands that restore the rows from before each publication, for a table whose files cannot be replaced."""
    found = []
    for pub_id, names in by_publication.items():
        before = pre_tag(pub_id) if pre_tag(pub_id) in refs else publications[pub_id].base_snapshot_id
        listed = format_partition_list(manifest.target.grain, names)
        found.append(f'errata plan {run.product} --partitions {listed} --restore {before} --reason "…"')
    return "; ".join(found)


def _read_measured_content(workspace: Workspace, run: RunRecord, scope: Sequence[str]) -> Mapping[str, str]:
    """Content digests of these partitions as measured by the gate; they outlive every snapshot."""
    found: dict[str, dict[str, str]] = {name: {} for name in scope}
    made = [one for one in workspace.ledger.candidates.list(run.run_id) if set(one.detail["rows"]) & set(scope)]
    # a partition may have several candidates, after a live write: the newest was published
    for m in (m for one in made for m in workspace.ledger.candidates.measurements(run.run_id, one.n)):
        if m.scope == CANDIDATE and m.partition in found and m.name in (ROW_COUNT, CONTENT_A, CONTENT_B):
            found[m.partition][m.name] = m.value or "0"
    return {
        name: f"{values[ROW_COUNT]}:{values[CONTENT_A]}:{values[CONTENT_B]}"
        for name, values in found.items()
        if len(values) == 3
    }


def _undo_gone_error(run: RunRecord, manifest: Manifest, pub_id: str) -> RunExpired:
    return RunExpired(
        f"rollback of {run.run_id} was refused; the undo set of {pub_id} is gone "
        f"(it was promised for {manifest.rollback_window})",
        state="main is unchanged",
        hint=f"put back an older snapshot, if one is there (errata history {run.table} PARTITION): errata plan "
        f'{run.product} --partitions … --restore SNAPSHOT --reason "…"; or compute it again, without --restore',
    )


def _superseded_error(context: RunContext, names: Sequence[str]) -> PublishConflict:
    later = sorted(
        {record.run_id or "" for record in context.ledger.partitions.accepted(context.run.table, names).values()}
    )
    return PublishConflict(
        f"rollback of {context.run_id} was refused; {format_ranges(context.manifest.target.grain, names)} was "
        f"published again by {', '.join(later)}",
        state="main is unchanged",
        hint=f'later runs first: errata rollback {later[0]} --reason "…"',
        partitions=list(names),
    )


def _unpublished_error(
    run: RunRecord, manifest: Manifest, asked: Sequence[str], states: Mapping[str, PartitionState]
) -> StateRefused:
    """Error for partitions that were never published; the hint names what can be rolled back instead."""
    grain = manifest.target.grain
    out = [name for name in manifest.partitions if states[name] is PartitionState.ACCEPTED]
    missing = [name for name in asked if states[name] is PartitionState.UNPUBLISHED]
    if out:
        hint = f'errata rollback {run.run_id} --partitions {format_partition_list(grain, out)} --reason "…"'
    elif RunState.CANCELLED in RUN_MOVES[run.state]:
        hint = f'errata cancel {run.run_id} --reason "…"'
    else:
        hint = f"errata status {run.run_id}"
    return StateRefused(
        f"rollback of {run.run_id} was refused; expected partitions that it published, found "
        f"{format_ranges(grain, missing)} not published (the run is {run.state.value.replace('_', ' ')})",
        state="main is unchanged",
        hint=hint,
        partitions=missing,
    )


def _pay_owed(context: RunContext) -> None:
    """Pay what can be paid now, and say what is still owed."""
    followed = pay(context.workspace, context.actor, table=context.run.table, settle=False)
    for warning in followed.warnings:
        context.workspace.narrate(f"WARNING: {warning}")
    for line in describe_unpaid(context.ledger.outbox.list(run_id=context.run_id), context.manifest, followed):
        context.workspace.narrate(f"still owed: {line}")


def _report_already_rolled_back(
    context: RunContext,
    asked: Sequence[str],
    states: Mapping[str, PartitionState],
    left: Mapping[str, str] | None,
    *,
    named: bool,
) -> RollbackView:
    taken_over = [name for name in asked if states[name] is PartitionState.SUPERSEDED]
    if taken_over:
        raise _superseded_error(context, taken_over)
    taken_back = [name for name in asked if states[name] is PartitionState.ROLLED_BACK]
    if not taken_back or (named and len(taken_back) < len(asked)):
        error = _unpublished_error(context.run, context.manifest, asked, states)
        context.ledger.audit.record_refusal(context.run_id, context.actor, "rollback", error.message)
        raise error
    last = context.ledger.publications.latest_landed(context.run_id, "rollback")
    _pay_owed(context)
    # a process may have died between the rollback and the note
    stale = note_stale_readers(context.workspace, context.actor, last, left)
    return RollbackView(
        run_id=context.run_id,
        state=context.run.state.value,
        already=True,
        publication_id=last.pub_id,
        snapshot_id=last.result_snapshot_id or "",
        partitions=tuple(taken_back),
        data_files_written=last.data_files_written or 0,
        seconds=0.0,
        grain=context.manifest.target.grain.value,
        product=context.run.product,
        single_user=bool(last.release.get("single_user")),
        landed_on=find_side_table(context.manifest),
        hazard=_find_hazard(context.workspace, context.manifest, last.pub_id),
        later=_find_later_runs(context.workspace, context.run, taken_back),
        stale=stale,
        copies=run_copy_lines(context.workspace, context.run),
    )


def _find_later_runs(workspace: Workspace, run: RunRecord, taken_back: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Later runs that are current in partitions that were rolled back; earlier runs do not count."""
    rollbacks = [
        p for p in workspace.ledger.publications.list(run.run_id) if p.kind == "rollback" and p.result_snapshot_id
    ]
    back_at = {name: p.settled_at or "" for p in rollbacks for name in p.partitions}
    found: dict[str, list[str]] = {}
    for name, top in workspace.ledger.partitions.accepted(run.table, taken_back).items():
        origin = workspace.ledger.publications.get(top.origin_pub_id) if top.origin_pub_id else None
        if origin is not None and (origin.settled_at or "") > back_at[name]:
            found.setdefault(origin.run_id, []).append(name)
    return {later: tuple(names) for later, names in found.items()}
