"""`errata publish`: check every precondition again, then commit one replacement of the partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from errata.approval.authorization import Authorization, authorize_publication, require_authority, require_publisher
from errata.approval.break_glass import find_last_break_glass
from errata.approval.release import released_view
from errata.commands.publish.holds import hold_consumers, release_if_refused
from errata.commands.situation import hint_next_step
from errata.delivery.alarms import raise_alarm
from errata.delivery.copies.retention import count_kept_days
from errata.delivery.copies.run_copies import run_copy_lines
from errata.delivery.obligations import PUBLISHED, list_owed
from errata.delivery.payment import PaymentReport, pay
from errata.delivery.unpaid import describe_unpaid
from errata.errors import PublishConflict, ScopeLocked, StateRefused
from errata.gate.warnings import find_verdict_acceptances
from errata.ledger import CandidateRecord, PartitionState
from errata.live_writers.freeze import freeze_partitions
from errata.live_writers.rebase import rebase_on_conflict
from errata.model.audit import Actor
from errata.model.duration import to_days
from errata.model.manifest import Manifest
from errata.model.partition import format_partition_list, format_ranges
from errata.model.refs import FIRST_PROPERTY, pre_tag, undo_branch
from errata.model.run import RunState
from errata.model.side_tables import find_side_table, is_side_table_mode
from errata.model.table import DataFile, find_columns_to_add, group_by_partition
from errata.model.waves import count_pause_days
from errata.ports.publish import TableVersion
from errata.publishing.erasure import require_erasure_check, watermark_fields
from errata.publishing.expected_files import build_replacement
from errata.publishing.intent import Intent
from errata.publishing.late_inputs import notice_late_inputs
from errata.publishing.leftovers import remove_run_tags
from errata.publishing.recovery import LedgerLog, recover_open_intents
from errata.publishing.replacement import Replacement, ReplacementResult, commit_replacement
from errata.publishing.selection import audit_conflicts, select_partitions
from errata.publishing.set_back_detection import find_set_backs
from errata.publishing.side_tables import publish_to_side_table
from errata.publishing.streams.preconditions import require_planned_operation, require_stopped_readers
from errata.publishing.sweep import sweep_refs
from errata.publishing.waves import narrow_to, require_wave_ready, turn_view, wave_views
from errata.text.exceptions import first_line
from errata.views import PublishView
from errata.workspace import RunContext, Workspace

_CANDIDATE_DAYS = 7


class _Authority(TypedDict):
    """On whose authority it is published."""

    looked_at: str | None
    break_glass: str
    by_itself: bool


@hint_next_step
def publish_run(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    partitions: str | Sequence[str] | None,
    *,
    digest: str | None = None,
    break_glass: str | None = None,
    by_itself: bool = False,
    early: str | None = None,
) -> PublishView:
    """Publish the candidate: one metadata-only commit of the chosen partitions, or of the next wave.

    ``digest`` is the release digest that the person reviewed. ``break_glass`` is the reason for not waiting for a
    second person. ``by_itself`` means that no person decides now, so it needs an earlier release, or a clean gate of a
    product that publishes without one. ``early`` is the reason for not waiting: for the pause before the next wave, and
    for consumers that are held.
    """
    started = time.monotonic()
    run = workspace.ledger.runs.get(run_id)
    require_publisher(workspace, actor, run, break_glass)
    # an earlier publication may have landed without being recorded: settle it before reading any state
    recover_open_intents(workspace, actor, run.table)
    context = narrow_to(workspace.open_run(run.run_id, actor), partitions)
    run, manifest = context.run, context.manifest
    asked = select_partitions(manifest, partitions)
    states = workspace.ledger.partitions.states(run.run_id)
    scope = tuple(name for name in asked if states[name] is PartitionState.UNPUBLISHED)
    if not scope:
        return _report_already_published(context, asked, states)
    # the turn and the readers first: authorisation records a release, which a wave that has to wait must not leave
    turn = require_wave_ready(context, scope, early, named=partitions is not None)
    require_stopped_readers(context, scope)
    asked_by: _Authority = {"looked_at": digest, "break_glass": break_glass or "", "by_itself": by_itself}
    turn |= hold_consumers(context, scope, early, lambda: require_authority(context, **asked_by))
    try:
        with release_if_refused(context, scope):
            by = authorize_publication(context, **asked_by)
            raise_alarm(workspace, actor, run)
            require_planned_operation(context, scope, by.files)
            workspace.engines.start_early(session=False)
            late = notice_late_inputs(context, scope, "publish")
            done = _commit_publication(context, scope, by, turn)
    except _Overtaken:
        return _report_already_published(context.reload(), asked, workspace.ledger.partitions.states(run.run_id))
    told = tuple(one.text(manifest.target.grain.value) for one in late)
    return _finish_publication(context, scope, done, started, told)


def _commit_publication(
    context: RunContext, scope: tuple[str, ...], by: Authorization, turn: Mapping[str, Any]
) -> ReplacementResult:
    """Commit one authorised publication, with its intent, locks and outcome recorded in the ledger."""
    candidate = by.candidate
    mark = require_erasure_check(context.workspace, context.actor, context.run, candidate)
    verdict = context.ledger.candidates.latest_verdict(context.run_id, context.run.partitions)
    log = LedgerLog(
        context.workspace, context.actor, context.run_id, "publish", context.run.table, scope, context.manifest.reason,
        {"candidate": candidate.n, "snapshot_id": candidate.snapshot_id, "digest": candidate.digest,
         "accepted": [one.check for one in find_verdict_acceptances(context.workspace, context.run)],
         "checks": len(verdict.checks) if verdict else 0, **watermark_fields(mark), **by.told, **turn},
        owes=list_owed(context.workspace, context.run, context.manifest, PUBLISHED, scope),
        last_look=lambda: require_erasure_check(context.workspace, context.actor, context.run, candidate),
    )  # fmt: skip
    # a conflict passes outwards: it may become a rebase, is audited, and its partitions are unfrozen
    with (
        freeze_partitions(context),
        audit_conflicts(context.workspace, context.actor, context.run, "publish"),
        rebase_on_conflict(context),
        log.keep_alive(),
        _own_commits_apart(context, scope),
    ):
        if is_side_table_mode(context.manifest.publish):
            return publish_to_side_table(context.workspace, context.run, context.manifest, candidate, scope, log)
        order = _build_replacement(context, candidate, scope, by.files)
        return commit_replacement(order, context.engines.publishing, context.engines.content, log)


class _Overtaken(Exception):
    """Another process has published the same partitions of the run meanwhile."""


@contextmanager
def _own_commits_apart(context: RunContext, scope: Sequence[str]) -> Iterator[None]:
    """Tell a commit of this run by another process from a write by someone else, which is a conflict."""
    try:
        yield
    except PublishConflict as conflict:
        states = context.ledger.partitions.states(context.run_id)
        if all(states[name] is not PartitionState.UNPUBLISHED for name in scope):
            raise _Overtaken from conflict
        if open_ones := context.ledger.publications.list_open(run_id=context.run_id):
            raise ScopeLocked(
                f"publish of {context.run_id} was refused; another process is publishing it ({open_ones[0].pub_id})",
                state="this command changed nothing",
                hint=f"errata status {context.run_id}",
                holder=open_ones[0].pub_id,
                holders=[one.pub_id for one in open_ones],
            ) from conflict
        raise


def _finish_publication(
    context: RunContext, scope: tuple[str, ...], done: ReplacementResult, started: float, late: tuple[str, ...]
) -> PublishView:
    """Pay what a publication owes after it has landed, tidy up, and build the view."""
    # before tidying up: payments may need the tags that are removed then
    followed = pay(context.workspace, context.actor, table=context.run.table, settle=False)
    wave, context = context, context.widen().reload()
    run, waves = context.run, context.ledger.waves.list(context.run_id)
    warnings, live_commits = _tidy_up(context, done.snapshot_id)
    return PublishView(
        run_id=run.run_id,
        state=run.state.value,
        already=False,
        publication_id=done.publication_id,
        snapshot_id=done.snapshot_id,
        partitions=scope,
        data_files_written=done.data_files_written,
        removed_files=done.removed,
        added_files=done.added,
        compacted=done.compacted,
        live_commits=live_commits,
        seconds=round(time.monotonic() - started, 3),
        undo_until=_undo_deadline(context.workspace.now(), context.manifest),
        grain=context.manifest.target.grain.value,
        warnings=(*late, *followed.warnings, *warnings),
        owed=_list_unpaid(context, followed),
        # it is out, so whether the release would still count no longer matters
        release=released_view(context.workspace, replace(wave.run, state=RunState.PUBLISHED), context.manifest),
        break_glass=find_last_break_glass(context.workspace, run.run_id),
        single_user=context.actor.single_user,
        landed_on=find_side_table(context.manifest),
        waves=wave_views(context.workspace, run, waves),
        turn=turn_view(context.workspace, run, context.manifest, waves),
        copies=run_copy_lines(context.workspace, run),
    )


def _build_replacement(
    context: RunContext, candidate: CandidateRecord, scope: tuple[str, ...], files: tuple[DataFile, ...]
) -> Replacement:
    pause = count_pause_days(context.manifest.publish.waves)
    undo_days = to_days(context.manifest.rollback_window) + pause
    # a shadow table has its own branches, and nothing expires there
    keep = {} if context.manifest.target.shadow else {candidate.branch: _CANDIDATE_DAYS + pause}
    return replace(
        build_replacement(context.workspace, context.run, context.manifest, scope),
        add=group_by_partition(files, scope),
        add_from=(candidate.snapshot_id or "",),
        add_table=context.manifest.target.shadow or "",
        undo_days=undo_days,
        pub_days=count_kept_days(context.workspace, context.manifest.product),
        keep_refs=keep | _prolong_undo(context, undo_days),
        properties={"errata.candidate-digest": candidate.digest},
    )


def _prolong_undo(context: RunContext, days: int) -> dict[str, int]:
    """Refs that the undo of the run's earlier waves needs: a rollback of the run restores all of them."""
    publications = context.ledger.publications.list(context.run_id)
    landed = [one.pub_id for one in publications if one.kind == "publish" and one.result_snapshot_id]
    wanted = [undo_branch(pub_id) for pub_id in landed]
    # rows with deletes come back from the whole snapshot; elsewhere its tag would only keep files alive
    wanted += [
        pre_tag(pub_id)
        for pub_id in landed
        if Intent.from_dict(context.ledger.publications.detail(pub_id)).with_deletes
    ]
    refs = context.engines.pins.refs(context.run.table) if wanted else {}
    return {ref: days for ref in wanted if ref in refs}


def _report_already_published(
    context: RunContext, asked: Sequence[str], states: Mapping[str, PartitionState]
) -> PublishView:
    gone = [name for name in asked if states[name] is PartitionState.ROLLED_BACK]
    if gone:
        raise StateRefused(
            f"publish of {context.run_id} was refused; {format_ranges(context.manifest.target.grain, gone)} was "
            "rolled back, and what was rolled back is not published again",
            state="main is unchanged",
            hint=f"errata plan {context.run.product} --partitions "
            f'{format_partition_list(context.manifest.target.grain, gone)} --supersede {context.run_id} --reason "…"',
            partitions=gone,
        )
    set_back = find_set_backs(context.ledger, context.engines, context.run.table, asked)
    if set_back:
        # reporting "already" would let a script continue although readers do not see the published rows
        raise StateRefused(
            f"publish of {context.run_id} was refused; " + "; ".join(one.told for one in set_back),
            state="this command changed nothing",
            hint=set_back[0].next,
            partitions=[name for one in set_back for name in one.partitions],
        )
    followed = pay(context.workspace, context.actor, table=context.run.table, settle=False)
    context = context.widen()
    waves = context.ledger.waves.list(context.run_id)
    last = context.ledger.publications.latest_landed(context.run_id, "publish")
    return PublishView(
        run_id=context.run_id,
        state=context.run.state.value,
        already=True,
        publication_id=last.pub_id,
        snapshot_id=last.result_snapshot_id or "",
        partitions=tuple(asked),
        data_files_written=last.data_files_written or 0,
        removed_files=0,
        added_files=0,
        compacted=(),
        live_commits=0,
        seconds=0.0,
        undo_until=_undo_deadline(datetime.fromisoformat(last.settled_at or ""), context.manifest),
        grain=context.manifest.target.grain.value,
        release=released_view(context.workspace, context.run, context.manifest),
        break_glass=find_last_break_glass(context.workspace, context.run_id),
        single_user=bool(last.release.get("single_user")),
        landed_on=find_side_table(context.manifest),
        warnings=tuple(followed.warnings),
        owed=_list_unpaid(context, followed),
        waves=wave_views(context.workspace, context.run, waves),
        turn=turn_view(context.workspace, context.run, context.manifest, waves),
        copies=run_copy_lines(context.workspace, context.run),
    )


def _list_unpaid(context: RunContext, followed: PaymentReport) -> tuple[str, ...]:
    items = context.ledger.outbox.list(run_id=context.run_id)
    return tuple(describe_unpaid(items, context.manifest, followed))


def _tidy_up(context: RunContext, snapshot_id: str) -> tuple[tuple[str, ...], int]:
    """Check and clean up after the commit has landed; a problem here is a warning and does not undo the publication."""
    try:
        version = context.engines.publishing.version(context.manifest.target)
        warnings = _find_shape_changes(version, context.manifest, snapshot_id)
        live_commits = _count_live_commits(version, context.manifest)
        if context.run.state is RunState.PUBLISHED:  # once for all waves
            remove_run_tags(context)
            sweep_refs(context.workspace, context.actor, context.run.table)
    except Exception as error:  # noqa: BLE001  whatever it is, the publication has landed
        return (f"published, but cleaning up failed: {first_line(error)}; errata cleanup does the rest",), 0
    return warnings, live_commits


def _find_shape_changes(version: TableVersion, manifest: Manifest, snapshot_id: str) -> tuple[str, ...]:
    """Warn about a changed schema or spec; checked after the commit, because REST catalogs do not assert them in it."""
    target = manifest.target
    missing = find_columns_to_add(target, version.schema)
    as_promised = not missing if target.new_columns else missing is not None
    if as_promised and version.spec_id == target.spec_id:
        return ()
    what = f"the schema or partition spec of {target.table} changed while snapshot {snapshot_id} was committed"
    return (f"{what}; look at the table, and roll back if in doubt",)


def _count_live_commits(version: TableVersion, manifest: Manifest) -> int:
    """Number of commits by others to main between planning and publishing."""
    history = version.history(manifest.target.base_snapshot_id, ())
    own = {"errata.publication", FIRST_PROPERTY}
    return sum(1 for commit in history.commits if own.isdisjoint(commit.summary))


def _undo_deadline(now: datetime, manifest: Manifest) -> str:
    return (now + timedelta(days=to_days(manifest.rollback_window))).date().isoformat()
