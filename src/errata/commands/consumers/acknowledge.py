"""`errata ack`: the owner of a consumer acknowledges its hold, and only that one."""

from __future__ import annotations

from errata.errors import NotFound, PermissionRefused, StateRefused
from errata.ledger import HoldRecord, RunRecord
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.hold import READERS, to_instant
from errata.model.product import Project
from errata.views.readiness import HoldView
from errata.workspace import Workspace


def acknowledge_hold(
    workspace: Workspace, actor: Actor, run_id: str, consumer: str, hold_id: str | None = None
) -> HoldView:
    """Acknowledge the hold of a consumer; ``hold_id`` names the one that was seen, so that no later one is meant."""
    run = workspace.ledger.runs.get(run_id)
    _require_owner(workspace, actor, run, _find_consumer(workspace.project, consumer))
    one = _find_hold(workspace, run, consumer, hold_id)
    acknowledged, already = workspace.ledger.holds.acknowledge(one.hold_id, actor)
    return build_hold_view(acknowledged, already=already)


def show_hold(workspace: Workspace, run_id: str, consumer: str, hold_id: str | None = None) -> HoldView:
    """The hold that would be acknowledged; changes nothing."""
    _find_consumer(workspace.project, consumer)
    return build_hold_view(_find_hold(workspace, workspace.ledger.runs.get(run_id), consumer, hold_id))


def _find_hold(workspace: Workspace, run: RunRecord, consumer: str, hold_id: str | None) -> HoldRecord:
    """The hold that is meant: the one with this id, or the one that the consumer has now."""
    mine = [one for one in workspace.ledger.holds.list(run.run_id) if one.consumer == consumer]
    if hold_id is not None:
        found = next((one for one in mine if one.hold_id == hold_id), None)
        if found is None:
            raise NotFound(
                f"{run.run_id} has no hold {hold_id} of {consumer}",
                state="nothing was changed",
                hint=f"errata status {run.run_id}",
            )
        return found
    now_ms = workspace.ledger.now_ms()
    active = [one for one in mine if one.is_active(now_ms)]
    if not active:
        raise StateRefused(
            f"ack of {consumer} was refused; {run.run_id} does not hold it",
            state="nothing was changed",
            hint=f"errata status {run.run_id}",
            run_id=run.run_id,
        )
    return active[-1]


def list_hold_views(workspace: Workspace, run_id: str) -> tuple[HoldView, ...]:
    """The consumers that are held for a run now."""
    now_ms = workspace.ledger.now_ms()
    found = [one for one in workspace.ledger.holds.list(run_id) if one.is_active(now_ms) and one.consumer != READERS]
    return tuple(build_hold_view(one) for one in found)


def build_hold_view(one: HoldRecord, *, already: bool = False) -> HoldView:
    """View of a hold."""
    return HoldView(
        hold_id=one.hold_id,
        run_id=one.run_id,
        consumer=one.consumer,
        wave=one.wave,
        state=one.state.value,
        partitions=one.partitions,
        opened_at=one.opened_at,
        not_before=to_instant(one.notice_until).isoformat(timespec="seconds"),
        until=to_instant(one.until).isoformat(timespec="seconds"),
        acknowledge=one.acknowledge,
        on_timeout=one.on_timeout,
        acknowledged_by=one.acknowledged_by,
        acknowledged_at=one.acknowledged_at,
        already=already,
    )


def _find_consumer(project: Project, name: str) -> Consumer:
    found = project.consumers.get(name)
    if found is None:
        known = ", ".join(sorted(project.consumers)) or "none"
        raise NotFound(f"consumer {name!r} is not in errata.yaml; expected one of {known}", state="nothing was changed")
    return found


def _require_owner(workspace: Workspace, actor: Actor, run: RunRecord, consumer: Consumer) -> None:
    """Require the owner: the person, a person of the team, or the account that is named as the owner."""
    project = workspace.project
    if is_owner(project, actor.person, consumer.owner):
        return
    able = [name for name in sorted(project.people) if is_owner(project, name, consumer.owner)]
    error = PermissionRefused(
        f"ack of {consumer.name} was refused; expected its owner {consumer.owner or '(none is declared)'}, found "
        f"{actor.person or 'nobody'}",
        state="nothing was changed",
        hint=f"ask {' or '.join(able)}" if able else f"consumers.{consumer.name}.owner in errata.yaml names the owner",
        person=actor.person,
    )
    workspace.ledger.audit.record_refusal(run.run_id, actor, "ack", error.message)
    raise error


def is_owner(project: Project, name: str, owner: str) -> bool:
    """Whether this person may speak for what ``owner`` owns; the only person of a single-user project may.

    A service account may only if it is the owner itself: a team decides by its people.
    """
    if project.single_user:
        return True
    person = project.people.get(name)
    if person is None or not owner:
        return False
    return person.name == owner or (owner in person.teams and not person.service)
