"""Publish: every precondition again, then one replacement through the publisher."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from errata.approval.authorization import Warrant, warrant
from errata.approval.break_glass import may_break, newest_broken
from errata.approval.release import released_view
from errata.errors import StateRefused
from errata.gate.warnings import accepted_in_verdict
from errata.ledger import CandidateRecord, PartitionState, RunRecord
from errata.live_writers.freeze import held_off
from errata.live_writers.rebase import rebased_instead
from errata.model.audit import Actor
from errata.model.duration import days
from errata.model.groups import hold_days
from errata.model.manifest import Manifest
from errata.model.partition import fold_text
from errata.model.product import Role
from errata.model.side_tables import beside_table, is_beside
from errata.model.table import DataFile, by_partition, columns_to_add
from errata.ports.publish import TableVersion
from errata.publishing.erasure import kept, require_judged
from errata.publishing.expected_files import replacement
from errata.publishing.follow_up import follow_up, owed_by
from errata.publishing.groups import groups_view, in_group, require_its_turn
from errata.publishing.late_inputs import notice_late_inputs
from errata.publishing.leftovers import unpin
from errata.publishing.recovery import LedgerLog, settle_open
from errata.publishing.replacement import Replaced, Replacement, carry_out, first_line
from errata.publishing.selection import chosen, conflicts_told
from errata.publishing.set_back import find_set_backs
from errata.publishing.side_tables import publish_beside
from errata.publishing.sweep import sweep
from errata.views import PublishView
from errata.workspace import Desk

_CANDIDATE_DAYS = 7


def publish(
    desk: Desk,
    actor: Actor,
    run_id: str,
    partitions: str | Sequence[str] | None,
    *,
    digest: str | None = None,
    break_glass: str | None = None,
    by_itself: bool = False,
    early: str | None = None,
) -> PublishView:
    """Publish the candidate: one metadata-only commit of the chosen partitions, or of the next group.

    ``digest`` is what a person looked at, as a release would sign it. ``break_glass`` says why no second person can be
    waited for. ``by_itself``: no person looks at it, so only a release that was given before or a clean gate of a
    product that wants none lets it go. ``early`` is why the hold before the next group is not waited for.
    """
    started = time.monotonic()
    run = desk.ledger.run(run_id)
    if break_glass is not None:
        may_break(desk, actor, break_glass, "publish", run.run_id)
    else:
        desk.allow(actor, (Role.PUBLISHER,), "publish", run.run_id)
        desk.not_the_requester(actor, run.planned_by, "publish", run.run_id)
    settle_open(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    asked = chosen(manifest, partitions)
    states = desk.ledger.partition_states(run.run_id)
    asked = in_group(manifest, asked, states, named=partitions is not None)
    scope = tuple(name for name in asked if states[name] is PartitionState.UNPUBLISHED)
    if not scope:
        return _already(desk, run, manifest, asked, states)
    turn = require_its_turn(desk, actor, run, manifest, scope, early)
    by = warrant(desk, actor, run, manifest, looked_at=digest, break_glass=break_glass or "", by_itself=by_itself)
    late = notice_late_inputs(desk, actor, run, manifest, scope, "publish")
    done = _landed(desk, actor, run, manifest, scope, by, turn)
    told = tuple(one.text(manifest.target.grain.value) for one in late)
    return _published(desk, actor, run, manifest, scope, done, started, told)


def _landed(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    scope: tuple[str, ...],
    by: Warrant,
    turn: Mapping[str, Any],
) -> Replaced:
    """One publication of what is warranted, with its intent, its locks and its outcome on the record."""
    candidate = by.candidate
    mark = require_judged(desk, actor, run, candidate)
    verdict = desk.ledger.latest_verdict(run.run_id)
    log = LedgerLog(
        desk, actor, run.run_id, "publish", run.table, scope, manifest.reason,
        {"candidate": candidate.n, "snapshot_id": candidate.snapshot_id, "digest": candidate.digest,
         "accepted": [one.check for one in accepted_in_verdict(desk, run)],
         "checks": len(verdict.checks) if verdict else 0, **kept(mark), **by.told, **turn},
        owes=owed_by(desk, run, manifest, "publish", scope),
        last_look=lambda: require_judged(desk, actor, run, candidate),
    )  # fmt: skip
    with (
        held_off(desk, actor, run, manifest),
        conflicts_told(desk, actor, run, "publish"),
        rebased_instead(desk, actor, run, manifest),
        log.kept_alive(),
    ):
        if is_beside(manifest.publish):
            return publish_beside(desk, run, manifest, candidate, scope, log)
        order = _publication(desk, run, manifest, candidate, scope, by.files)
        return carry_out(order, desk.engines.publishing, desk.engines.content, log)


def _published(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    scope: tuple[str, ...],
    done: Replaced,
    started: float,
    late: tuple[str, ...],
) -> PublishView:
    """What follows a publication that landed, and what is told of it."""
    followed = follow_up(desk, actor, run.table)
    run = desk.ledger.run(run.run_id)
    warnings, live_commits = _afterwards(desk, actor, run, manifest, done.snapshot_id)
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
        undo_until=_undo_until(desk.now(), manifest),
        grain=manifest.target.grain.value,
        warnings=(*late, *followed, *warnings),
        release=released_view(desk, run, manifest),
        break_glass=newest_broken(desk, run.run_id),
        single_user=actor.single_user,
        landed_on=beside_table(manifest),
        groups=groups_view(desk, run, manifest),
    )


def _publication(
    desk: Desk,
    run: RunRecord,
    manifest: Manifest,
    candidate: CandidateRecord,
    scope: tuple[str, ...],
    files: tuple[DataFile, ...],
) -> Replacement:
    return replace(
        replacement(desk, run, manifest, scope),
        add=by_partition(files, scope),
        add_from=(candidate.snapshot_id or "",),
        add_table=manifest.target.shadow or "",
        undo_days=days(manifest.rollback_window),
        # a shadow's branches are not the target's to keep, and nothing expires there
        keep_refs={}
        if manifest.target.shadow
        else {candidate.branch: _CANDIDATE_DAYS + hold_days(manifest.publish.groups)},
        properties={"errata.candidate-digest": candidate.digest},
    )


def _already(
    desk: Desk, run: RunRecord, manifest: Manifest, asked: Sequence[str], states: Mapping[str, PartitionState]
) -> PublishView:
    gone = [name for name in asked if states[name] is PartitionState.ROLLED_BACK]
    if gone:
        raise StateRefused(
            f"publish of {run.run_id} was refused; {fold_text(manifest.target.grain, gone)} was rolled back, "
            "and what was rolled back is not published again",
            state="main is unchanged",
            hint=f'errata plan {run.product} --partitions … --reason "…"',
            partitions=gone,
        )
    set_back = find_set_backs(desk.ledger, desk.engines, run.table, asked)
    if set_back:
        # to say "already" would let whoever scripts this go on with rows that readers do not see
        raise StateRefused(
            f"publish of {run.run_id} was refused; " + "; ".join(one.told for one in set_back),
            state="this command changed nothing",
            hint=set_back[0].next,
            partitions=[name for one in set_back for name in one.partitions],
        )
    last = [p for p in desk.ledger.publications(run.run_id) if p.kind == "publish" and p.result_snapshot_id][-1]
    return PublishView(
        run_id=run.run_id,
        state=run.state.value,
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
        undo_until=_undo_until(datetime.fromisoformat(last.settled_at or ""), manifest),
        grain=manifest.target.grain.value,
        release=released_view(desk, run, manifest),
        break_glass=newest_broken(desk, run.run_id),
        single_user=bool(last.release.get("single_user")),
        landed_on=beside_table(manifest),
        groups=groups_view(desk, run, manifest),
    )


def _afterwards(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, snapshot_id: str
) -> tuple[tuple[str, ...], int]:
    """What is looked at and tidied once the commit has landed; trouble here is a warning, the publication stands."""
    try:
        version = desk.engines.publishing.version(manifest.target)
        warnings = _changed_since(version, manifest, snapshot_id)
        live_commits = _live_commits(version, manifest)
        unpin(desk, actor, run, manifest)
        sweep(desk, actor, run.table)
    except Exception as error:  # noqa: BLE001  whatever it is, the publication has landed
        return (f"published, but tidying up did not end well: {first_line(error)}; errata cleanup does the rest",), 0
    return warnings, live_commits


def _changed_since(version: TableVersion, manifest: Manifest, snapshot_id: str) -> tuple[str, ...]:
    """REST catalogs do not assert schema and spec in a commit, so look at them again afterwards."""
    target = manifest.target
    missing = columns_to_add(target, version.schema)
    as_promised = not missing if target.new_columns else missing is not None
    if as_promised and version.spec_id == target.spec_id:
        return ()
    what = f"the schema or partition spec of {target.table} changed while snapshot {snapshot_id} was committed"
    return (f"{what}; look at the table, and roll back if in doubt",)


def _live_commits(version: TableVersion, manifest: Manifest) -> int:
    """How often others moved main between planning and publishing."""
    history = version.history(manifest.target.base_snapshot_id, ())
    return sum(1 for commit in history.commits if not commit.summary.get("errata.publication"))


def _undo_until(now: datetime, manifest: Manifest) -> str:
    return (now + timedelta(days=days(manifest.rollback_window))).date().isoformat()
