"""Group after group in one command: publish, hold, look around, publish the next.

The hold is slept through here and decided by the ledger, so a process that dies in between loses nothing: the same
command again waits for what is left of the hold and goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from errata.approval.permissions import require_role
from errata.errors import PublishHeld
from errata.failpoints import failpoint
from errata.ledger import RunRecord
from errata.live_writers.freeze import freeze_partitions
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.publishing.groups import audit_unhealthy_refusal, groups_view, require_not_stopped, watch_signals
from errata.text.numbers import format_clock, format_moment, plural
from errata.views import GroupsView, PublishView
from errata.worker.health import Level
from errata.worker.ledger_wait import retry_ledger_call
from errata.workspace import Workspace

POLL_SECONDS = 2.0
sleep = time.sleep


def publish_by_group(
    workspace: Workspace, actor: Actor, run_id: str, publish: Callable[[], PublishView], *, holds: bool
) -> PublishView:
    """Publish until nothing is left; raises at once when something speaks against going on.

    ``publish`` is one publication, with everything that is checked before it. Without ``holds`` a person has said why
    they are not waited for.
    """
    run = workspace.ledger.runs.get(run_id)
    # who may not publish is told so before the hold, not after it
    require_role(workspace, actor, (Role.PUBLISHER, Role.BREAK_GLASS), "publish", run.run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    while True:
        if holds:
            _wait_for_turn(workspace, actor, run, manifest)
        try:
            view = publish()
        except PublishHeld:
            continue  # someone else published meanwhile; the hold counts from there
        if view.groups is None or view.groups.next is None:
            return view
        done = sum(group.state == "published" for group in view.groups.groups)
        workspace.narrate(
            f"group {done} of {len(view.groups.groups)} published: {view.publication_id}, "
            f"{plural(len(view.partitions), 'partition')}, snapshot {view.snapshot_id}"
        )
        failpoint("groups.between")


def _wait_for_turn(workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest) -> None:
    """Sleep until the next group may go; whatever happens meanwhile ends it: that is what the hold is for."""
    turn = _read_hold(workspace, run, manifest)
    if turn is None:
        return
    found, left = turn
    progress = workspace.progress(run.run_id, len(found.groups), "group")
    progress.advance(sum(group.state == "published" for group in found.groups), 0)
    progress.show(
        f"group {found.next}", f"goes {format_moment(found.not_before or '')} UTC, after {format_clock(left)}"
    )
    try:
        # what has not gone yet stays frozen, where live jobs are held off, as for a worker that waits
        with freeze_partitions(workspace, actor, run, manifest), watch_signals(workspace, manifest) as watch:
            while turn is not None:
                if turn[0].stopped:
                    require_not_stopped(workspace, actor, run)
                if (worst := watch.worst) is not None and worst.level is Level.PAUSE:
                    raise audit_unhealthy_refusal(workspace, actor, run, worst)
                sleep(min(POLL_SECONDS, max(0.05, turn[1])))
                turn = retry_ledger_call(lambda: _read_hold(workspace, run, manifest), workspace.narrate)
    finally:
        progress.close()


def _read_hold(workspace: Workspace, run: RunRecord, manifest: Manifest) -> tuple[GroupsView, float] | None:
    """What is waited for and for how many seconds; None when a group may go, or when there is none to wait for."""
    found = groups_view(workspace, workspace.ledger.runs.get(run.run_id), manifest)
    if found is None or found.next is None or found.not_before is None:
        return None
    until, now = datetime.fromisoformat(found.not_before), datetime.fromisoformat(workspace.ledger.now())
    return found, (until - now).total_seconds()
