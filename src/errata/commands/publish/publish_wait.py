"""`errata publish --wait`: publish group after group in one command, with a hold between groups.

The ledger decides when a hold ends; this module only sleeps. A process that dies in between loses nothing: repeating
the command waits for the rest of the hold and continues.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from errata.approval.permissions import require_role
from errata.errors import PublishHeld
from errata.failpoints import failpoint
from errata.live_writers.freeze import freeze_partitions
from errata.model.audit import Actor
from errata.model.product import Role
from errata.publishing.groups import audit_unhealthy_refusal, groups_view, require_not_stopped, watch_signals
from errata.text.numbers import format_clock, format_moment, plural
from errata.views import GroupsView, PublishView
from errata.worker.ledger_wait import retry_ledger_call
from errata.worker.pipeline_health import Level
from errata.workspace import RunContext, Workspace

_POLL_SECONDS = 2.0


def publish_by_group(
    workspace: Workspace, actor: Actor, run_id: str, publish: Callable[[], PublishView], *, holds: bool
) -> PublishView:
    """Publish until no group is left; raise as soon as a publication is refused or a hold is interrupted.

    ``publish`` makes one publication, including all its checks. ``holds`` is False if a person gave a reason for
    skipping the holds.
    """
    run = workspace.ledger.runs.get(run_id)
    # refuse a missing role before the hold, not after it
    require_role(workspace, actor, (Role.PUBLISHER, Role.BREAK_GLASS), "publish", run.run_id)
    context = workspace.open_run(run.run_id, actor)
    while True:
        if holds:
            _wait_for_turn(context)
        try:
            view = publish()
        except PublishHeld:
            continue  # another process published meanwhile; the hold starts from there
        if view.groups is None or view.groups.next is None:
            return view
        done = sum(group.state == "published" for group in view.groups.groups)
        workspace.narrate(
            f"group {done} of {len(view.groups.groups)} published: {view.publication_id}, "
            f"{plural(len(view.partitions), 'partition')}, snapshot {view.snapshot_id}"
        )
        failpoint("groups.between")


def _wait_for_turn(context: RunContext) -> None:
    """Sleep until the next group may be published; raise if the run is stopped or a health signal demands a pause."""
    turn = _read_hold(context)
    if turn is None:
        return
    found, left = turn
    progress = context.workspace.progress(context.run_id, len(found.groups), "group")
    progress.advance(sum(group.state == "published" for group in found.groups), 0)
    progress.show(
        f"group {found.next}", f"goes {format_moment(found.not_before or '')} UTC, after {format_clock(left)}"
    )
    try:
        # keep the unpublished partitions frozen during the hold, if the plan freezes them
        with freeze_partitions(context), watch_signals(context.workspace, context.manifest) as watch:
            while turn is not None:
                if turn[0].stopped:
                    require_not_stopped(context.workspace, context.actor, context.run)
                if (worst := watch.worst) is not None and worst.level is Level.PAUSE:
                    raise audit_unhealthy_refusal(context.workspace, context.actor, context.run, worst)
                context.workspace.sleep(min(_POLL_SECONDS, max(0.05, turn[1])))
                turn = retry_ledger_call(lambda: _read_hold(context), context.workspace)
    finally:
        progress.close()


def _read_hold(context: RunContext) -> tuple[GroupsView, float] | None:
    """The groups and the seconds left of the hold; None when there is nothing to wait for."""
    found = groups_view(context.workspace, context.ledger.runs.get(context.run_id), context.manifest)
    if found is None or found.next is None or found.not_before is None:
        return None
    until, now = datetime.fromisoformat(found.not_before), datetime.fromisoformat(context.ledger.now())
    return found, (until - now).total_seconds()
