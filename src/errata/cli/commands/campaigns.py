"""What `plan --cascade`, `show`, `approve`, `decline`, `run`, `status`, `cancel` and `rollback` do with a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.canonical import to_plain
from errata.cli.app.options import DECLINED
from errata.cli.app.signing import sign_on_terminal
from errata.cli.render.campaign import render_campaign, render_campaign_plan, render_campaign_rollback
from errata.cli.render.layout import render_next
from errata.errors import UsageError

if TYPE_CHECKING:
    from errata.cli.app.session import Session
    from errata.client import Client
    from errata.views.campaign import CampaignPlanView, CampaignRollbackView, CampaignView


def find_campaign(client: Client, text: str) -> str | None:
    """The campaign that a person means; None if it is a run."""
    find = getattr(client, "find_campaign", None)
    return find(text) if find is not None else None


def refuse_options(about: str, **given: object) -> None:
    """Refuse options that only a run has."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} was refused; {about} is a campaign, and only a run has it")


def answer_plan(session: Session, client: Client, view: CampaignPlanView) -> None:
    """Print a campaign that was planned."""
    session.answer(view, lambda width: render_campaign_plan(view, width))
    if not session.json and view.state != "dry-run":
        session.page(render_next(*client.campaign(view.campaign_id, as_=session.person).next))


def show(session: Session, client: Client, campaign_id: str) -> None:
    """Print a campaign as it is approved."""
    answer_plan(session, client, client.show_campaign(campaign_id))


def approve(session: Session, client: Client, campaign_id: str, digest: str | None, note: str) -> int:
    """Approve a campaign, on a terminal by the first characters of its digest."""

    def decide(signed: str | None) -> CampaignView:
        return client.approve_campaign(campaign_id, digest=signed, note=note, as_=session.person)

    def cover(plan: CampaignPlanView, width: int) -> tuple[list[str], str]:
        return render_campaign_plan(plan, width), plan.campaign_digest

    view = sign_on_terminal(session, decide, "plan", "approve it", cover) if digest is None else decide(digest)
    if view is None:
        return DECLINED
    session.answer(view, lambda width: render_campaign(view, width))
    return 0


def answer(session: Session, view: CampaignView) -> int:
    """Print where a campaign is."""
    session.answer(to_plain(view), lambda width: render_campaign(view, width))
    return view.exit_code


def roll_back(
    session: Session,
    client: Client,
    campaign_id: str,
    *,
    member: str | None,
    leave: Mapping[str, str],
    reason: str | None,
) -> int:
    """Show what can go back, then undo it; without a reason it is only shown."""

    def act(why: str | None) -> CampaignRollbackView:
        return client.roll_back_campaign(campaign_id, member=member, leave=leave, reason=why, as_=session.person)

    if reason is not None and session.asks:
        look = act(None)
        if not session.confirm(render_campaign_rollback(look, session.width), f"roll back {campaign_id}?"):
            return DECLINED
    view = act(reason)
    session.answer(view, lambda width: render_campaign_rollback(view, width))
    return 0
