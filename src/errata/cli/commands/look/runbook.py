"""`errata runbook`."""

from __future__ import annotations

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.render.history import render_runbook


def runbook(session: Session, run: Run) -> None:
    """Show the steps of a correction, ticked from the record.

    Each step says who did it and when, why it is not needed, or which command does it.

    Example: errata runbook bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        view = client.runbook(run)
        commands = {step.n: client.complete_commands(step.next, as_=session.person) for step in view.steps if step.next}
    session.answer(view, lambda width: render_runbook(view, commands, width))
