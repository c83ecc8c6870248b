"""`errata pause`, `resume`, `cancel`, `retry`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import DECLINED, Run
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import answer, find_campaign
from errata.cli.render.publish import render_confirmation
from errata.cli.render.run import render_state


def pause(session: Session, run: Run) -> None:
    """Pause a run; chunks in progress still finish.

    Example: errata pause bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        view = client.pause(run, as_=session.person)
        session.answer_about(client, view, lambda width: render_state(view, width))


def resume(session: Session, run: Run) -> None:
    """Resume a paused run; start workers with `errata run`.

    Example: errata resume bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        view = client.resume(run, as_=session.person)
        session.answer_about(client, view, lambda width: render_state(view, width))


def cancel(
    session: Session,
    run: Run,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log.")],
    now: Annotated[bool, typer.Option("--now", help="Also stop chunks in progress, within a heartbeat.")] = False,
) -> int:
    """Cancel a run for good; published data is not changed.

    Chunks in progress finish, unless --now is given. Asks first on a terminal. Of a campaign no member starts any more,
    and members that are not published are cancelled.

    Example: errata cancel bf-20260214-daily-revenue-7f3a21c0 --reason "the source is corrected first"
    """
    with session.client() as client:
        if campaign := find_campaign(client, run):
            if session.confirm([f"no member of {campaign} starts any more"], f"cancel {campaign}?"):
                return answer(session, client.cancel_campaign(campaign, reason=reason, as_=session.person))
            return DECLINED
        if session.asks:
            plan, status = client.show(run), client.status(run)
            preview = render_confirmation("cancel", plan, status, session.width, reason=reason)
            if not session.confirm(preview, f"cancel {plan.run_id}?"):
                return DECLINED
        view = client.cancel(run, reason=reason, now=now, as_=session.person)
        session.answer_about(client, view, lambda width: render_state(view, width))
    return 0


def retry(
    session: Session,
    run: Run,
    chunk: Annotated[
        str | None, typer.Option("--chunk", metavar="C", help="Chunk to retry (default: all failed chunks).")
    ] = None,
) -> None:
    """Queue failed chunks again.

    Example: errata retry bf-20260214-daily-revenue-7f3a21c0 --chunk c003
    """
    with session.client() as client:
        view = client.retry(run, chunk=chunk, as_=session.person)
        session.answer_about(client, view, lambda width: render_state(view, width))
