"""`errata rollback CAMPAIGN`: look first at what can go back, then undo in reverse order, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from errata.approval.permissions import require_person, require_role
from errata.approval.suggestion import complete_commands
from errata.commands.campaign.decide import cancel_unpublished
from errata.commands.campaign.member_state import BUILT, CampaignState, read_campaign
from errata.commands.publish.rollback import look_at_rollback, roll_back_run
from errata.delivery.payment import pay
from errata.errors import ErrataError, StateRefused, UsageError
from errata.failpoints import failpoint
from errata.ledger import PartitionState
from errata.model.audit import Actor
from errata.model.partition import format_ranges
from errata.model.product import Role
from errata.model.run import RunState
from errata.publishing.readers.ready_table import owe_ready
from errata.publishing.recovery import recover_open_intents
from errata.text.escape import require_one_line
from errata.views.campaign import CampaignRollbackView, MemberUndoView, MemberView
from errata.workspace import Workspace

CAN, CANNOT, LEFT, NOTHING, DONE = "can", "cannot", "left", "nothing", "rolled_back"


def roll_back_campaign(
    workspace: Workspace,
    actor: Actor,
    campaign_id: str,
    *,
    member: str | None = None,
    leave: Mapping[str, str] | None = None,
    reason: str | None = None,
) -> CampaignRollbackView:
    """Undo a campaign, or a member with everything that follows from it; without a reason only show what can go back.

    ``leave`` names members that stay as they are, each with the reason; what they were computed from may go back.
    """
    found = read_campaign(workspace, campaign_id)
    campaign_id, leave = found.record.campaign_id, dict(leave or {})
    require_role(workspace, actor, (Role.PUBLISHER,), "rollback", campaign_id, persons=True)
    require_person(workspace, actor, (Role.PUBLISHER,), "rollback", campaign_id)
    names = _select_members(found, member, leave)
    for name in names:
        if found.find(name).run_id is not None:
            # an earlier commit may have landed without being recorded
            recover_open_intents(workspace, actor, workspace.ledger.runs.get(found.find(name).run_id or "").table)
    looks = tuple(_look(workspace, actor, found, name, leave) for name in names)
    if reason is None:
        return CampaignRollbackView(
            campaign_id, acted=False, members=looks, next=_list_next(workspace, actor, campaign_id, member, looks)
        )
    require_one_line("--reason", reason)
    stuck = [one for one in looks if one.state == CANNOT]
    if stuck:
        raise StateRefused(
            f"rollback of {campaign_id} was refused; {len(stuck)} of {len(looks)} members cannot go back: "
            + "; ".join(f"{one.product}: {one.why}" for one in stuck),
            state="nothing at all was rolled back",
            hint="\n".join(_list_next(workspace, actor, campaign_id, member, looks)),
            members=[one.product for one in stuck],
        )
    return _undo(workspace, actor, found, looks, leave, reason, is_whole=member is None)


def _select_members(found: CampaignState, member: str | None, leave: Mapping[str, str]) -> list[str]:
    """Members to undo, those that read others first."""
    known = [name for name, _ in found.campaign.list_steps()]
    for option, name in [("--member", member), *(("--leave", name) for name in leave)]:
        if name is not None and name not in known:
            raise UsageError(
                f"{option} {name} was refused; expected a member of {found.record.campaign_id}: {', '.join(known)}",
                state="nothing was changed",
            )
    if member is None:
        return known[::-1]
    inside = {member, *found.campaign.list_descendants(member)}
    if apart := [name for name in leave if name not in inside]:
        raise UsageError(
            f"--leave {apart[0]} was refused; it does not follow from {member} and stays as it is anyway",
            state="nothing was changed",
        )
    return [name for name in known[::-1] if name in inside]


def _look(
    workspace: Workspace, actor: Actor, found: CampaignState, name: str, leave: Mapping[str, str]
) -> MemberUndoView:
    """What a rollback would do with a member; reads only."""
    member = found.find(name)
    if member.is_dbt:
        if member.state != BUILT:
            return _undo_view(member, NOTHING, (), "dbt has not built it")
        said = (LEFT, leave[name]) if name in leave else (CANNOT, "dbt built it, and Errata cannot undo it")
        return _undo_view(member, said[0], member.partitions, said[1])
    if member.run_id is None:
        return _undo_view(member, NOTHING, (), "it was not started")
    run = workspace.ledger.runs.get(member.run_id)
    if busy := workspace.ledger.publications.list_open(run_id=run.run_id):
        # also if it is left: what it reads cannot go back before its outcome is known
        return _undo_view(member, CANNOT, busy[0].partitions, f"another process works on it now ({busy[0].pub_id})")
    states = workspace.ledger.partitions.states(run.run_id)
    out = tuple(one for one, state in states.items() if state is PartitionState.ACCEPTED)
    over = [one for one, state in states.items() if state is PartitionState.SUPERSEDED]
    if not out and not over:
        return _undo_view(member, NOTHING, (), "nothing of it is published")
    if name in leave:
        return _undo_view(member, LEFT, (*out, *over), leave[name])
    grain = found.campaign.find(name).manifest.target.grain
    if over:
        later = {one.run_id or "" for one in workspace.ledger.partitions.accepted(run.table, over).values()}
        why = f"{format_ranges(grain, over, 6)} was published again by {', '.join(sorted(later))}"
        return _undo_view(member, CANNOT, (*out, *over), why)
    try:
        look_at_rollback(workspace.open_run(run.run_id, actor), out)
    except ErrataError as error:
        return _undo_view(member, CANNOT, out, error.message)
    return _undo_view(member, CAN, out, "")


def _undo_view(member: MemberView, state: str, partitions: Sequence[str], why: str) -> MemberUndoView:
    return MemberUndoView(member.product, member.run_id, state, tuple(partitions), member.grain, why)


def _undo(
    workspace: Workspace,
    actor: Actor,
    found: CampaignState,
    looks: Sequence[MemberUndoView],
    leave: Mapping[str, str],
    reason: str,
    *,
    is_whole: bool,
) -> CampaignRollbackView:
    campaign_id = found.record.campaign_id
    left = {one.run_id: leave[one.product] for one in looks if one.state == LEFT and one.run_id}
    done, stale = [], list[str]()
    if is_whole and found.record.state == "open":
        # first, so that no member starts on what goes back
        workspace.ledger.campaigns.end(campaign_id, reason, actor, owe_ready(workspace.project, "cancelled"))
        cancel_unpublished(workspace, actor, campaign_id, reason)
    with _undone_together(workspace, actor, campaign_id, looks):
        for one in looks:
            is_back = one.run_id and workspace.ledger.runs.get(one.run_id).state is RunState.ROLLED_BACK
            if one.run_id and (one.state == CAN or is_back):
                failpoint("campaign.before_undo")
                view = roll_back_run(workspace, actor, one.run_id, None, reason, left=left)
                stale += view.stale
                one = MemberUndoView(one.product, one.run_id, DONE, view.partitions, one.grain)
            done.append(one)
    return CampaignRollbackView(campaign_id, acted=True, members=tuple(done), stale=tuple(dict.fromkeys(stale)))


@contextmanager
def _undone_together(
    workspace: Workspace, actor: Actor, campaign_id: str, looks: Sequence[MemberUndoView]
) -> Iterator[None]:
    """Keep readers from the tables of all these members until the last one is back.

    A rollback that stops half-way leaves them waiting until it is repeated; one that stops before its first member
    does not.
    """
    ledger, ready = workspace.ledger, owe_ready(workspace.project, "rolled_back")
    runs = [one.run_id for one in looks if one.state == CAN and one.run_id]
    if ready and len(runs) > 1:
        ledger.campaigns.begin_undo(campaign_id, runs, actor)
        failpoint("campaign.after_undo_begun")
    try:
        yield
    except Exception:
        if all(ledger.runs.get(one.run_id).state is not RunState.ROLLED_BACK for one in looks if one.run_id):
            ledger.campaigns.end_undo(campaign_id, actor, ready)
        raise
    if (owing := ledger.campaigns.end_undo(campaign_id, actor, ready)) is not None:
        for warning in pay(workspace, actor, run_id=owing, settle=False).warnings:
            workspace.narrate(f"WARNING: {warning}")


def _list_next(
    workspace: Workspace, actor: Actor, campaign_id: str, member: str | None, looks: Sequence[MemberUndoView]
) -> tuple[str, ...]:
    """The command that continues, with the members that cannot go back left as they are."""
    if not any(one.state in (CAN, CANNOT) for one in looks):
        return ()
    part = f" --member {member}" if member else ""
    stuck = "".join(f' --leave {one.product}="…"' for one in looks if one.state == CANNOT)
    left = "".join(f' --leave {one.product}="{one.why}"' for one in looks if one.state == LEFT)
    command = f'errata rollback {campaign_id}{part}{left}{stuck} --reason "…"'
    return (complete_commands(workspace, actor, command),)
