"""`errata approve` and `errata decline`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import BreakGlass, Run
from errata.cli.app.session import Session
from errata.cli.render.plan import render_decision


def approve(
    session: Session,
    run: Run,
    digest: Annotated[str, typer.Option("--digest", metavar="SHA", help="Manifest digest, as the plan shows it.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Comment, recorded with the decision.")] = "",
    break_glass: BreakGlass = None,
) -> None:
    """Approve a plan by its digest.

    The requester cannot approve. If the project requires several approvals, the last one approves the run.
    --break-glass replaces all of them: it needs the role break_glass, triggers the alarm and is shown with the run.

    Example: errata approve bf-20260214-daily-revenue-7f3a21c0 --digest 9be2c0f1…
    """
    with session.client() as client:
        plan_view = None if session.json else client.show(run)
        bare = digest.strip().removeprefix("sha256:")
        view = client.approve(run, digest=bare, note=note, break_glass=break_glass, as_=session.person)
        session.answer_about(client, view, lambda width: render_decision(view, width, plan=plan_view))


def decline(
    session: Session,
    run: Run,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Reason, recorded with the decision.")],
) -> None:
    """Decline a plan; this is final.

    A new plan is a new run.

    Example: errata decline bf-20260214-daily-revenue-7f3a21c0 --note "books are closed"
    """
    with session.client() as client:
        view = client.decline(run, note=note, as_=session.person)
        session.answer_about(client, view, lambda width: render_decision(view, width))
