"""`errata note`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.render.history import render_note


def note(
    session: Session, run: Run, text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")]
) -> None:
    """Keep a note with a run, in the audit log.

    Notes are shown by `errata runbook` and at the end of the report.

    Example: errata note bf-20260214-daily-revenue-7f3a21c0 "rates of January came late"
    """
    with session.client() as client:
        view = client.note(run, text, as_=session.person)
    session.answer(view, lambda width: render_note(view, width))
