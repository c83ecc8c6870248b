"""`errata recordings`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.sources.recordings import render_recordings


def recordings(
    session: Session,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="Source in errata.yaml (default: all).")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that were rejected, superseded or removed.")] = False,
) -> None:
    """List recorded files.

    Shows what each file is about, how many rows it has, and until when it is kept.

    Example: errata recordings orders --all
    """
    with session.client() as client:
        view = client.recordings(source, every=every)
    session.answer(view, lambda width: render_recordings(view, width))
