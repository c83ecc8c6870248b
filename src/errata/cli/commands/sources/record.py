"""`errata record`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.sources.recordings import render_import
from errata.errors import Refused


def record(
    session: Session,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source in errata.yaml with sql or http.")],
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="The window begins here.")],
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="And ends before this.")],
) -> int:
    """Record a window of a database or an API.

    What the source has for the window is read once and recorded like a file, so that runs never read the source itself.
    Repeating the command continues after a crash. Exits with 3 if the recording was rejected.

    Example: errata record orders_db --from 2026-01-03 --to 2026-01-04
    """
    with session.client() as client:
        view = client.record(source, start, end, as_=session.person)
    session.answer(view, lambda width: render_import(view, width))
    return Refused.exit_code if view.rejected else 0
