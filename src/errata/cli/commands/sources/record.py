"""`errata record`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.sources.recordings import render_import
from errata.errors import Refused


def record(
    session: Session,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Source with sql, http or kafka, or a copy: WAREHOUSE:TABLE.")
    ],
    start: Annotated[str | None, typer.Option("--from", metavar="TIME|ID", help="The window begins here.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME|ID", help="And ends before this.")] = None,
) -> int:
    """Record a window of a database, API or topic.

    What the source has for the window is read once and recorded like a file, so that runs never read the source itself.
    Repeating the command continues after a crash. Exits with 3 if the recording was rejected.

    Example: errata record orders_db --from 2026-01-03 --to 2026-01-04
    """
    with session.client() as client:
        view = client.record(source, start, end, as_=session.person)
    session.answer(view, lambda width: render_import(view, width))
    return Refused.exit_code if view.rejected else 0
