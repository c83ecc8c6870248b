"""`errata run CAMPAIGN`: walk the members in order; each is an ordinary run with its own gate, release and publication.

Safe to repeat and to start twice: a member is sealed once, each chunk is claimed by one worker, and what a killed
process left is found in the ledger and in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.approval.authorization import can_publish_unattended
from errata.approval.permissions import refuse_requester, require_role
from errata.approval.release import find_valid_release, load_judged_candidate
from errata.commands.campaign.dbt_steps import build_step
from errata.commands.campaign.member_state import DRIFT, FAILED, NOT_APPROVED, READY, CampaignState, read_campaign
from errata.commands.campaign.seal import pin_member, seal_member
from errata.commands.campaign.status import build_campaign_status
from errata.commands.compute.run import run_chunks
from errata.commands.publish.holds import wait_for_any
from errata.commands.publish.publish import publish_run
from errata.commands.publish.validate import validate_run
from errata.errors import (
    ErasureListMoved,
    ErrataError,
    PublishConflict,
    PublishHeld,
    Rebased,
    Refused,
    ScopeLocked,
    StateRefused,
    ValidationRejected,
)
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RunState
from errata.model.waves import list_waves
from errata.publishing.erasure import MOST_VERDICTS
from errata.text.numbers import plural
from errata.views.campaign import CampaignView
from errata.worker.heartbeat import write_lease
from errata.workspace import Workspace

S = RunState
_COMPUTES = frozenset({S.APPROVED, S.RUNNING})
_CAN_PUBLISH = frozenset({S.VALIDATED, S.PART_PUBLISHED})
_STREAMS = _CAN_PUBLISH | {S.STAGED, S.PUBLISHING}
_TRIES = 3
_POLL_SECONDS = 1.0


def run_campaign(
    workspace: Workspace, actor: Actor, campaign_id: str, *, publish: bool, parallel: int = 2
) -> CampaignView:
    """Bring every member as far as it goes; what stops one stops those that read it, and no other."""
    record = workspace.ledger.campaigns.get(campaign_id)
    require_role(workspace, actor, (Role.OPERATOR,), "run", record.campaign_id)
    if publish:
        require_role(workspace, actor, (Role.PUBLISHER,), "run --publish", record.campaign_id)
        refuse_requester(workspace, actor, record.planned_by, "publish", record.campaign_id)
    while True:
        problems = _walk(workspace, actor, record.campaign_id, publish=publish, parallel=parallel)
        if not _wait_for_consumers(workspace, actor, record.campaign_id, problems):
            break
    told = {name: error.message for name, error in problems.items()}
    view = build_campaign_status(workspace, actor, record.campaign_id, problems=told)
    return replace(view, exit_code=_find_exit_code(view, tuple(problems.values())))


def _walk(
    workspace: Workspace, actor: Actor, campaign_id: str, *, publish: bool, parallel: int
) -> dict[str, ErrataError]:
    """Bring every member as far as it goes now; returns what stopped members."""
    problems: dict[str, ErrataError] = {}
    for name, _ in workspace.ledger.campaigns.manifest(campaign_id).list_steps():
        try:
            _advance_beside_others(workspace, actor, campaign_id, name, publish=publish, parallel=parallel)
        except ErrataError as error:
            problems[name] = error
            workspace.narrate(f"{name} stopped: {error.message}")
        failpoint("campaign.after_member")
    return problems


def _wait_for_consumers(
    workspace: Workspace, actor: Actor, campaign_id: str, problems: Mapping[str, ErrataError]
) -> bool:
    """Wait until a member that stopped for its consumers may go; False if none did."""
    runs = workspace.ledger.members.list(campaign_id)
    held = [
        (workspace.open_run(runs[name].run_id, actor), error.fields["holds"])
        for name, error in problems.items()
        if isinstance(error, PublishHeld) and error.fields.get("holds")
    ]
    return bool(held) and wait_for_any(held)


def _find_exit_code(view: CampaignView, problems: Sequence[ErrataError]) -> int:
    """Of what stopped a member in this command, of a gate that a member did not pass before, or of a campaign that
    cannot start: it is over, or nobody approved its first member.
    """
    if problems:
        return problems[0].exit_code
    judged = {S.REJECTED.value, S.NEEDS_ACCEPTANCE.value}
    if any(one.state in judged for one in view.members):
        return ValidationRejected.exit_code
    is_over = view.state not in ("open", "done")
    return Refused.exit_code if is_over or view.members[0].state == NOT_APPROVED else 0


def _advance_beside_others(
    workspace: Workspace, actor: Actor, campaign_id: str, name: str, *, publish: bool, parallel: int
) -> None:
    """Bring one member as far as it goes; that another process did a step first, or is publishing it, is no problem.

    Nor is it one that a live write won, or that someone was erased: then chunks of it are computed again.
    """
    for _ in range(_TRIES):
        before = _read_run_state(workspace, campaign_id, name)
        try:
            return _advance(workspace, actor, campaign_id, name, publish=publish, parallel=parallel)
        except ErasureListMoved:
            raise  # it was judged again as often as one command does
        except (ScopeLocked, StateRefused) as refused:
            now = _read_run_state(workspace, campaign_id, name)
            if now is S.PUBLISHING and publish:
                _wait_for_publisher(workspace, campaign_id, name, refused)
            elif now is before:
                raise
        except Rebased as again:
            workspace.narrate(f"{name}: {again.message}")  # its chunks are computed again
        except PublishConflict:
            # the commit that it met is the run's own if another process has published it meanwhile
            if before is S.PUBLISHED or _read_run_state(workspace, campaign_id, name) is not S.PUBLISHED:
                raise
    return _advance(workspace, actor, campaign_id, name, publish=publish, parallel=parallel)


def _read_run_state(workspace: Workspace, campaign_id: str, name: str) -> RunState | None:
    """State of the run of a member; None while it has none."""
    member = workspace.ledger.members.list(campaign_id).get(name)
    return workspace.ledger.runs.get(member.run_id).state if member else None


def _wait_for_publisher(workspace: Workspace, campaign_id: str, name: str, refused: ErrataError) -> None:
    """Wait while another process publishes a member, at most as long as its lease; raises if it still does then."""
    workspace.narrate(f"{name} waits: {refused.message}")
    for _ in range(math.ceil(write_lease() / _POLL_SECONDS)):
        workspace.sleep(_POLL_SECONDS)
        if _read_run_state(workspace, campaign_id, name) is not S.PUBLISHING:
            return
    raise refused


def _advance(workspace: Workspace, actor: Actor, campaign_id: str, name: str, *, publish: bool, parallel: int) -> None:
    """Bring one member as far as it goes now."""
    # read again for every member: what the ones before it did decides whether it may start
    found = read_campaign(workspace, campaign_id)
    member = found.find(name)
    if member.is_dbt:
        if member.state in (READY, FAILED, DRIFT):
            build_step(workspace, actor, found.record, next(one for one in found.campaign.dbt if one.select == name))
        return
    run_id = member.run_id
    if run_id is None:
        run_id = _start(workspace, actor, found, name)
        if run_id is None:
            return
    run = workspace.ledger.runs.get(run_id)
    if run.state is S.APPROVED:
        pin_member(workspace, actor, run, is_new=False)
    # several waves are judged and published while later ones are computed
    streams = publish and len(list_waves(workspace.ledger.runs.manifest(run_id, actor))) > 1
    if run.state in _COMPUTES or (streams and run.state in _STREAMS):
        run_chunks(workspace, actor, run_id, parallel=parallel, max_chunks=None, publish=streams)
    if streams:
        return
    if workspace.ledger.runs.get(run_id).state is S.STAGED:
        validate_run(workspace, actor, run_id, {})
    # a publication that was killed is settled by repeating it
    state = workspace.ledger.runs.get(run_id).state
    if publish and (state is S.PUBLISHING or (state in _CAN_PUBLISH and _may_publish(workspace, actor, run_id))):
        _publish(workspace, actor, run_id)


def _publish(workspace: Workspace, actor: Actor, run_id: str) -> None:
    """Publish a member; it is judged again first, a few times, if subjects were erased after its verdict."""
    for looks_left in range(MOST_VERDICTS - 1, -1, -1):
        try:
            publish_run(workspace, actor, run_id, None, by_itself=True)
            return
        except ErasureListMoved as moved:
            if not looks_left:
                raise
            workspace.narrate(f"{moved.message}; this is done now")
        validate_run(workspace, actor, run_id, {})


def _start(workspace: Workspace, actor: Actor, found: CampaignState, name: str) -> str | None:
    """Seal the run of a member that may start; tried again after a drift, which may be gone."""
    member = found.find(name)
    if member.state not in (READY, DRIFT):
        return None
    workspace.narrate(f"{name}: {plural(len(member.partitions), 'partition')}")
    return seal_member(workspace, actor, found.record, found.campaign, name).run_id


def _may_publish(workspace: Workspace, actor: Actor, run_id: str) -> bool:
    """Whether a person released the candidate, or the product publishes when its gate is clean."""
    run = workspace.ledger.runs.get(run_id)
    judged = load_judged_candidate(workspace, run)
    manifest = workspace.ledger.runs.manifest(run_id, actor)
    if judged is not None and find_valid_release(workspace, run, manifest, judged) is not None:
        return True
    return can_publish_unattended(workspace, actor, run_id)
