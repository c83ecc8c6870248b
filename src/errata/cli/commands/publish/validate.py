"""`errata validate`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Run, Wave, parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.gate import render_validation


def validate(
    session: Session,
    run: Run,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="CHECK=WHY", help="Accept a warning, with a reason; repeatable."),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option("--thresholds", metavar="WHY", help="Use current product file thresholds, for this reason."),
    ] = None,
    wave: Wave = None,
) -> None:
    """Assemble the candidate and run the gate.

    Exit code 4 when the gate rejects the candidate. Thresholds may change afterwards: the gate judges the same
    measurements again and records the person and the reason.

    Example: errata validate bf-20260214-daily-revenue-7f3a21c0 --accept empty="no trading on 2026-01-01"
    """
    accepted = parse_pairs("--accept", accept)
    with session.client() as client:
        with session.show_spinner(f"validating {run}"):
            view = client.validate(run, accept=accepted, thresholds=thresholds, wave=wave, as_=session.person)
        session.answer_about(client, view, lambda width: render_validation(view, width))
