"""`errata init`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.project import render_starter


def init(
    session: Session,
    target: Annotated[
        str, typer.Argument(metavar="DIR", help="Directory (default: the current one).", show_default=False)
    ] = ".",
) -> None:
    """Create a starter project with a small local lake.

    Example: errata init shop
    """
    from errata.project.starter import write_starter

    place = session.directory / target
    files = write_starter(place)
    data = {"directory": str(place), "files": list(files)}
    session.answer(data, lambda width: render_starter(str(place), files, width))
