"""`errata rollback`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.copy_exit import choose_copy_exit
from errata.cli.app.options import DECLINED, Partitions, Run, Wave, parse_pairs
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import find_campaign, refuse_options, roll_back
from errata.cli.render.publish import render_confirmation, render_rollback
from errata.errors import UsageError


def rollback(
    session: Session,
    run: Run,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log.")
    ] = None,
    partitions: Partitions = None,
    wave: Wave = None,
    member: Annotated[
        str | None, typer.Option("--member", metavar="PRODUCT", help="Of a campaign: this, and what follows from it.")
    ] = None,
    leave: Annotated[
        list[str] | None,
        typer.Option("--leave", metavar="MEMBER=WHY", help="Of a campaign: leave this member; repeatable."),
    ] = None,
) -> int:
    """Restore the previous data of partitions in a new commit.

    Asks first on a terminal. A run needs --reason. A campaign is undone in reverse order; without --reason it only
    shows what can go back. If one member cannot go back, nothing is undone, unless --leave names it.

    Example: errata rollback bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-03 --reason "bank asks to wait"
    """
    with session.client() as client:
        if campaign := find_campaign(client, run):
            refuse_options(campaign, partitions=partitions)
            stays = parse_pairs("--leave", leave)
            return roll_back(session, client, campaign, member=member, leave=stays, reason=reason)
        if member or leave:
            raise UsageError("--member and --leave were refused; expected a campaign", state="nothing was changed")
        if reason is None:
            raise UsageError(
                "a rollback without --reason was refused; expected why the data goes back",
                state="nothing was changed",
                hint=f'errata rollback {run} --reason "…"',
            )
        if session.asks:
            plan, status = client.show(run), client.status(run)
            shown = render_confirmation("rollback", plan, status, session.width, partitions=partitions, reason=reason)
            if not session.confirm(shown, f"roll back {plan.run_id}?"):
                return DECLINED
        with session.show_spinner(f"rolling back {run}"):
            view = client.rollback(run, partitions=partitions, reason=reason, wave=wave, as_=session.person)
        session.answer_about(client, view, lambda width: render_rollback(view, width))
    return choose_copy_exit(view.copies)
