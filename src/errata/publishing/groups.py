"""Publication groups: which group is next, when it may be published, and what stops it.

The hold starts at the run's last publication that landed, on the ledger's clock. A rollback of anything the run
published stops the groups, as does ``errata pause``, until a person continues with ``errata resume``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from errata.approval.permissions import require_person, require_role
from errata.approval.release import PUBLISHABLE_STATES, audit_refusal
from errata.errors import StateRefused, UsageError
from errata.ledger import PartitionState, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.duration import to_seconds
from errata.model.groups import (
    GROUP_ACTIONS,
    PAUSED,
    RESUMED,
    TAKEN_BACK,
    Group,
    build_hold_error,
    build_stopped_error,
    compute_hold_end,
    find_next_group,
    resolve_group_order,
    split_into_groups,
)
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.product.throttle import Signal
from errata.model.run import PublicationState
from errata.text.numbers import format_moment, plural
from errata.views import GroupsView, GroupView, StateView
from errata.worker.pipeline_health import HealthMonitor, Level, Reading
from errata.workspace import RunContext, Workspace

_STATE_WORDS = {
    PartitionState.UNPUBLISHED: "waiting",
    PartitionState.ACCEPTED: "published",
    PartitionState.ROLLED_BACK: "rolled_back",
    PartitionState.SUPERSEDED: "superseded",
}
States = Mapping[str, PartitionState]


def select_group(manifest: Manifest, asked: Sequence[str], states: States, *, named: bool) -> tuple[str, ...]:
    """Partitions to publish: the next group, or all of ``asked`` when they are named or the run has no groups."""
    if manifest.publish.groups is None or named:
        return tuple(asked)
    found = find_next_group(_build_groups(manifest), _find_unpublished(states))
    return found.partitions if found else tuple(asked)


def require_group_ready(context: RunContext, scope: Sequence[str], early: str | None) -> dict[str, Any]:
    """Refuse a group that is too large, too early or stopped, or while the live pipeline is unhealthy.

    ``early`` is a person's reason not to wait; it lifts the hold and nothing else. Returns what the publication
    records about its group.
    """
    groups = context.manifest.publish.groups
    if early is not None and not early.strip():
        raise UsageError("--early without a reason was refused; say why the hold is skipped")
    if groups is None or context.run.state not in PUBLISHABLE_STATES:
        return {}  # a run that has ended or was not validated is refused later, with that reason
    if len(scope) > groups.size:
        error = StateRefused(
            f"publish of {context.run_id} was refused; expected at most {groups.size} partitions at once "
            f"(publish.groups), found {len(scope)}",
            state="main is unchanged",
            hint=f"errata publish {context.run_id} publishes the next group",
        )
        raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)
    require_not_stopped(context.workspace, context.actor, context.run)
    parts = [group for group in _build_groups(context.manifest) if set(group.partitions) & set(scope)]
    told: dict[str, Any] = {
        "n": [group.n for group in parts],
        "of": len(_build_groups(context.manifest)),
        "hold": groups.hold,
    }
    told["hold_seconds"] = to_seconds(groups.hold)
    until, now = (
        compute_hold_end(groups, _find_last_publish_time(context.ledger.publications.list(context.run_id))),
        _now(context.workspace),
    )
    is_early = until is not None and now < until
    if until is not None and is_early and early is None:
        # not audited: being early is no violation, and a job that polls every minute would fill the audit log
        raise build_hold_error(context.run_id, groups.hold, until, now)
    if reading := find_pause_signal(context.workspace, context.manifest):
        raise audit_unhealthy_refusal(context.workspace, context.actor, context.run, reading)
    if is_early:
        require_person(
            context.workspace, context.actor, (Role.PUBLISHER,), "publish before the hold is over", context.run_id
        )
        context.ledger.audit.note(context.run_id, context.actor, "hold.skipped", {"groups": told["n"], "why": early})
        told["early"] = True
    return {"group": told}


def require_not_stopped(workspace: Workspace, actor: Actor, run: RunRecord) -> None:
    """Refuse to continue after a pause, or after a part of the run was rolled back."""
    if stopped := _find_stop_reason(workspace, run):
        raise audit_refusal(workspace, actor, run, "publish", build_stopped_error(run.run_id, stopped))


def _list_signals(workspace: Workspace, manifest: Manifest) -> tuple[Signal, ...]:
    """Health signals of the live pipeline: the project's and the product's."""
    product = workspace.project.products.get(manifest.product)
    return (*workspace.project.health, *(product.health if product else ()))


def watch_signals(workspace: Workspace, manifest: Manifest) -> HealthMonitor:
    """Monitor that reads the signals until it is closed; without signals no engine is started."""

    def read(signal: Signal) -> Decimal:
        return workspace.engines.probes.read(signal)

    return HealthMonitor(_list_signals(workspace, manifest), read, lambda _: None)


def find_pause_signal(workspace: Workspace, manifest: Manifest) -> Reading | None:
    """Read each signal once and return the reading that requires a pause, if any."""
    with watch_signals(workspace, manifest) as watch:
        worst = watch.worst
    return worst if worst and worst.level is Level.PAUSE else None


def audit_unhealthy_refusal(workspace: Workspace, actor: Actor, run: RunRecord, reading: Reading) -> StateRefused:
    """Build and audit the refusal to publish while the live pipeline is unhealthy."""
    error = StateRefused(
        f"publish of {run.run_id} was refused by a health signal: {reading.told}",
        state="what was published stays; the next group waits",
        hint=f"look at the live pipeline first; then errata publish {run.run_id}",
        signal=reading.signal.name,
    )
    audit_refusal(workspace, actor, run, "publish", error)
    return error


def set_groups_running(workspace: Workspace, actor: Actor, run_id: str, *, going: bool) -> StateView | None:
    """Pause or resume the groups of a run; None when it has no groups or cannot be published yet."""
    run = workspace.ledger.runs.get(run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    if run.state not in PUBLISHABLE_STATES or manifest.publish.groups is None:
        return None
    verb = "resume" if going else "pause"
    require_role(workspace, actor, (Role.OPERATOR, Role.PUBLISHER), verb, run.run_id)
    if going:
        require_person(workspace, actor, (Role.OPERATOR, Role.PUBLISHER), verb, run.run_id)
    already = going is not bool(_find_stop_reason(workspace, run))
    if not already:
        workspace.ledger.audit.note(run.run_id, actor, RESUMED if going else PAUSED)
    if not going:
        return StateView(
            run.run_id, run.state.value, already, f"no further group is published until: errata resume {run.run_id}"
        )
    found = groups_view(workspace, run, manifest)
    held = f" at {format_moment(found.not_before)} UTC" if found and found.not_before else ""
    return StateView(run.run_id, run.state.value, already, f"the next group may go{held}: errata publish {run.run_id}")


def describe_groups(manifest: Manifest) -> dict[str, Any]:
    """Groups of a plan for display; empty without groups."""
    groups = manifest.publish.groups
    if groups is None:
        return {}
    found = _build_groups(manifest)
    first = resolve_group_order(groups, manifest.order)
    return {
        "groups": {
            "size": groups.size,
            "hold": groups.hold,
            "order": first,
            "groups": [list(group.partitions) for group in found],
        }
    }


def groups_view(workspace: Workspace, run: RunRecord, manifest: Manifest) -> GroupsView | None:
    """Published groups of a run, the next group, and when it may be published."""
    groups = manifest.publish.groups
    if groups is None:
        return None
    states = workspace.ledger.partitions.states(run.run_id)
    publications = _find_committed(workspace.ledger.publications.list(run.run_id))
    by_partition = {name: one for one in publications for name in one.partitions}
    found = _build_groups(manifest)
    upcoming = find_next_group(found, _find_unpublished(states)) if run.state in PUBLISHABLE_STATES else None
    until = compute_hold_end(groups, _find_last_publish_time(publications)) if upcoming else None
    left = (until - _now(workspace)).total_seconds() if until else 0.0
    return GroupsView(
        size=groups.size,
        hold=groups.hold,
        order=resolve_group_order(groups, manifest.order),
        groups=tuple(_group_view(group, states, by_partition) for group in found),
        next=upcoming.n if upcoming else None,
        not_before=until.replace(microsecond=0).isoformat() if until and left > 0 else None,
        seconds_left=max(0, round(left)),
        stopped=_find_stop_reason(workspace, run) if upcoming else "",
    )


def _group_view(group: Group, states: States, by_partition: Mapping[str, PublicationRecord]) -> GroupView:
    words = {_STATE_WORDS[states[name]] for name in group.partitions}
    landed = {one.pub_id: one for name in group.partitions if (one := by_partition.get(name))}
    own = sorted(landed.values(), key=lambda one: one.n)
    return GroupView(
        group.n,
        group.partitions,
        words.pop() if len(words) == 1 else "part_published",
        tuple(one.pub_id for one in own),
        own[-1].settled_at if own else None,
    )


def _build_groups(manifest: Manifest) -> tuple[Group, ...]:
    groups = manifest.publish.groups
    return split_into_groups(groups, manifest.order, manifest.target.grain, manifest.partitions) if groups else ()


def _find_unpublished(states: States) -> frozenset[str]:
    return frozenset(name for name, state in states.items() if state is PartitionState.UNPUBLISHED)


def _find_committed(publications: Sequence[PublicationRecord]) -> list[PublicationRecord]:
    return [one for one in publications if one.kind == "publish" and one.state is PublicationState.COMMITTED]


def _find_last_publish_time(publications: Sequence[PublicationRecord]) -> str | None:
    return max((one.settled_at or "" for one in _find_committed(publications)), default=None)


def _find_stop_reason(workspace: Workspace, run: RunRecord) -> str:
    """Why the groups are stopped: the newest pause or rollback, unless they were resumed since; else empty."""
    for entry in workspace.ledger.audit.readable_entries(run.run_id, limit=1, actions=GROUP_ACTIONS):
        when = f"{entry.actor.person}, {format_moment(entry.at)} UTC"
        if entry.action == PAUSED:
            return f"paused by {when}"
        if entry.action == TAKEN_BACK:
            return (
                f"{entry.body['publication']} rolled back {plural(len(entry.body['partitions']), 'partition')} ({when})"
            )
    return ""


def _now(workspace: Workspace) -> datetime:
    return datetime.fromisoformat(workspace.ledger.now())
