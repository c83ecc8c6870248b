"""`errata approve` and `errata decline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import DECLINED, BreakGlass, Run
from errata.cli.app.session import Session
from errata.cli.app.signing import require_whole_digest, sign_on_terminal
from errata.cli.commands.campaigns import answer, find_campaign, refuse_options
from errata.cli.commands.campaigns import approve as approve_campaign
from errata.cli.render.plan import render_decision, render_plan
from errata.errors import UsageError

if TYPE_CHECKING:
    from errata.views import DecisionView, PlanView


def approve(
    session: Session,
    run: Run,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="SHA", help="Manifest digest (default: ask on a terminal).")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Comment, recorded with the decision.")] = "",
    break_glass: BreakGlass = None,
) -> int:
    """Approve a plan by its digest.

    On a terminal it shows the plan and asks for the first 8 characters of its digest; elsewhere --digest is required.
    The requester cannot approve. If the project requires several approvals, the last one approves the run.
    --break-glass replaces all of them: it needs the role break_glass, triggers the alarm and is shown with the run.
    A campaign is approved once for all its members, each of which needs the approvals that its own product asks for.

    Example: errata approve bf-20260214-daily-revenue-7f3a21c0
    """
    if digest is None and not session.asks:
        raise UsageError(
            "approve without --digest was refused; expected the manifest digest, because nobody can be asked here",
            state="nothing was changed",
            hint=f"errata show {run} shows the plan and its digest",
        )
    require_whole_digest(session, digest, f"approve {run}")
    with session.client() as client:
        if campaign := find_campaign(client, run):
            refuse_options(campaign, break_glass=break_glass)
            return approve_campaign(session, client, campaign, digest, note)
        plan = None if digest is None or session.json else client.show(run)

        def decide(signed: str | None) -> DecisionView:
            return client.approve(run, digest=signed, note=note, break_glass=break_glass, as_=session.person)

        if digest is None:
            view = sign_on_terminal(session, decide, "plan", "approve it", _cover_plan)
        else:
            view = decide(digest)
        if view is None:
            return DECLINED
        session.answer_about(client, view, lambda width: render_decision(view, width, plan=plan))
    return 0


def _cover_plan(plan: PlanView, width: int) -> tuple[list[str], str]:
    return render_plan(plan, width), plan.manifest_digest


def decline(
    session: Session,
    run: Run,
    note: Annotated[
        str, typer.Option("--reason", "--note", metavar="TEXT", help="Reason, recorded with the decision.")
    ],
) -> None:
    """Decline a plan; this is final.

    A new plan is a new run.

    Example: errata decline bf-20260214-daily-revenue-7f3a21c0 --reason "books are closed"
    """
    with session.client() as client:
        if campaign := find_campaign(client, run):
            answer(session, client.decline_campaign(campaign, note=note, as_=session.person))
            return
        view = client.decline(run, note=note, as_=session.person)
        session.answer_about(client, view, lambda width: render_decision(view, width))
