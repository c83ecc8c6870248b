"""`errata diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Partitions, Run, Wave
from errata.cli.app.session import Session
from errata.cli.render.diff import render_diff


def diff(
    session: Session,
    run: Run,
    partitions: Partitions = None,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Number of sample rows to show.")] = 10,
    wave: Wave = None,
) -> None:
    """Compare the candidate with the current data.

    Shows schema changes; rows added, removed and changed, by column and by partition; and sample rows old → new.

    Example: errata diff bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-17 --sample 20
    """
    with session.client() as client:
        with session.show_spinner(f"comparing {run}"):
            view = client.diff(run, partitions=partitions, sample=sample, wave=wave)
        upcoming = () if session.json else client.next_steps(run, is_reviewed=True, as_=session.person)
    if session.json:
        session.write_json(view.data())
    else:
        session.page(render_diff(view, session.width, upcoming))
