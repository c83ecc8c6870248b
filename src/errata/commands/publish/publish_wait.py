"""`errata publish --wait`: publish wave after wave in one command, with pauses between waves and waits for consumers.

The ledger decides when a pause or a wait ends; this module only sleeps. A process that dies in between loses nothing:
repeating the command waits for the rest of it and continues.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from errata.approval.permissions import require_role
from errata.approval.release import find_release_digest
from errata.commands.publish.holds import wait_for_holds
from errata.errors import PublishHeld
from errata.failpoints import failpoint
from errata.live_writers.freeze import freeze_partitions
from errata.model.audit import Actor
from errata.model.product import Role
from errata.publishing.waves import audit_unhealthy_refusal, require_not_stopped, turn_view, watch_signals, wave_views
from errata.text.numbers import format_clock, format_moment, plural
from errata.views import PublishView, WaveTurnView
from errata.worker.ledger_wait import retry_ledger_call
from errata.worker.pipeline_health import Level
from errata.workspace import RunContext, Workspace

_POLL_SECONDS = 2.0
_MAY_GO = ("validated", "part_published")


def publish_by_wave(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    publish: Callable[[str | None], PublishView],
    *,
    digest: str | None,
    pauses: bool,
) -> PublishView:
    """Publish until no judged wave is left; raise as soon as a publication is refused or a pause is interrupted.

    ``publish`` makes one publication, including all its checks, of what has this release digest. ``digest`` is the one
    that a person reviewed: their yes is to the waves that were judged by then, as they were. ``pauses`` is False if a
    person gave a reason for skipping the pauses.
    """
    run = workspace.ledger.runs.get(run_id)
    # refuse a missing role before the pause, not after it
    require_role(workspace, actor, (Role.PUBLISHER, Role.BREAK_GLASS), "publish", run.run_id)
    context = workspace.open_run(run.run_id, actor)
    reviewed = _list_release_digests(context) if digest is not None else {}
    while True:
        if pauses:
            wait_for_turn(context)
        try:
            view = publish(digest)
        except PublishHeld as held:
            # consumers have to be waited for, or another process published meanwhile and the pause starts from there
            wait_for_holds(context, held.fields.get("holds", ()))
            continue
        if view.turn is None or view.turn.next is None:
            return view
        upcoming = view.waves[view.turn.next - 1]
        if upcoming.state not in _MAY_GO or (digest is not None and upcoming.n not in reviewed):
            workspace.narrate(f"wave {upcoming.n} was not judged yet; it and those behind it wait")
            return view
        digest = reviewed.get(upcoming.n)
        done = next(wave.n for wave in view.waves if view.publication_id in wave.publications)
        workspace.narrate(
            f"wave {done} of {view.turn.of} published: {view.publication_id}, "
            f"{plural(len(view.partitions), 'partition')}, snapshot {view.snapshot_id}"
        )
        failpoint("waves.between")


def _list_release_digests(context: RunContext) -> dict[int, str]:
    """What a release of each judged wave would sign now, by wave."""
    waves = context.ledger.waves.list(context.run_id)
    found = {wave.n: find_release_digest(context.workspace, context.narrow(wave.n).run) for wave in waves}
    return {n: digest for n, digest in found.items() if digest is not None}


def wait_for_turn(context: RunContext) -> None:
    """Sleep until the next wave may be published; raise if the run is stopped or a health signal demands a pause."""
    turn = _read_pause(context)
    if turn is None:
        return
    found, left = turn
    progress = context.workspace.progress(context.run_id, found.of, "wave")
    waves = wave_views(context.workspace, context.run, context.ledger.waves.list(context.run_id))
    progress.advance([str(wave.n) for wave in waves if wave.state == "published"], 0)
    progress.show(f"wave {found.next}", f"goes {format_moment(found.not_before or '')} UTC, after {format_clock(left)}")
    try:
        # keep the unpublished partitions frozen during the pause, if the plan freezes them
        with freeze_partitions(context), watch_signals(context.workspace, context.manifest) as watch:
            while turn is not None:
                if turn[0].stopped:
                    require_not_stopped(context.workspace, context.actor, context.run)
                if (worst := watch.worst) is not None and worst.level is Level.PAUSE:
                    raise audit_unhealthy_refusal(context.workspace, context.actor, context.run, worst)
                context.workspace.sleep(min(_POLL_SECONDS, max(0.05, turn[1])))
                turn = retry_ledger_call(lambda: _read_pause(context), context.workspace)
    finally:
        progress.close()


def _read_pause(context: RunContext) -> tuple[WaveTurnView, float] | None:
    """Whose turn it is and the seconds left of the pause; None when there is nothing to wait for."""
    run, waves = context.ledger.runs.get(context.run_id), context.ledger.waves.list(context.run_id)
    found = turn_view(context.workspace, run, context.manifest, waves)
    if found is None or found.next is None or found.not_before is None:
        return None
    until, now = datetime.fromisoformat(found.not_before), datetime.fromisoformat(context.ledger.now())
    return found, (until - now).total_seconds()
