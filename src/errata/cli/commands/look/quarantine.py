"""`errata quarantine`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.render.quarantine import render_quarantine


def quarantine(
    session: Session,
    run: Run,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Number of rows to show per reason.")] = 3,
) -> None:
    """Show the rows that a run set aside, and why.

    Shows row counts per input, the reasons by partition, and sample rows with their origin. Classified columns are
    masked.

    Example: errata quarantine bf-20260214-daily-revenue-7f3a21c0 --sample 5
    """
    with session.client() as client:
        view = client.quarantine(run, sample=sample)
    session.answer(view, lambda width: render_quarantine(view, width))
