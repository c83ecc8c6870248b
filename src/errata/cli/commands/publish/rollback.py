"""`errata rollback`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Partitions, Run, Wave
from errata.cli.app.session import Session
from errata.cli.commands.compute.control import DECLINED
from errata.cli.render.publish import render_confirmation, render_rollback


def rollback(
    session: Session,
    run: Run,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log.")],
    partitions: Partitions = None,
    wave: Wave = None,
) -> int:
    """Restore the previous data of partitions in a new commit.

    Asks first on a terminal.

    Example: errata rollback bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-03 --reason "bank asks to wait"
    """
    with session.client() as client:
        if session.asks:
            plan, status = client.show(run), client.status(run)
            shown = render_confirmation("rollback", plan, status, session.width, partitions=partitions, reason=reason)
            if not session.confirm(shown, f"roll back {plan.run_id}?"):
                return DECLINED
        with session.show_spinner(f"rolling back {run}"):
            view = client.rollback(run, partitions=partitions, reason=reason, wave=wave, as_=session.person)
        session.answer_about(client, view, lambda width: render_rollback(view, width))
    return 0
