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
    empty: Annotated[bool, typer.Option("--empty", help="Write no sample product and no lake.")] = False,
) -> None:
    """Create a starter project with a small local lake.

    The project is named after its directory. With --empty it has a project file only, for a table of your own.

    Example: errata init shop
    """
    from errata.project.starter import format_lake_command, write_starter

    place = session.directory / target
    files = write_starter(place, empty=empty)
    data = {"directory": str(place), "files": list(files)}
    session.world.directory = None  # the next steps begin with cd, so they need no -C
    make_lake = None if empty else format_lake_command()
    session.answer(data, lambda width: render_starter(str(place), files, make_lake, width))
