"""`errata import`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.sources.recordings import render_import
from errata.errors import Refused


def import_(
    session: Session,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files or directories, local or s3://.")],
    source: Annotated[str, typer.Option("--source", metavar="NAME", help="Source in errata.yaml.")],
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="What the files are about begins here.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="And ends before this.")] = None,
    manifest: Annotated[
        str | None, typer.Option("--manifest", metavar="ID", help="The producer's own id of the delivery.")
    ] = None,
) -> int:
    """Record files that others dropped, for runs to read.

    Each file is copied once, hashed, and accepted or rejected with the reason beside it. The files stay where they are.
    Repeating the command changes nothing. Exits with 3 if a file was rejected.

    Example: errata import landing/orders --source orders --from 2026-01-03 --to 2026-01-04
    """
    with session.client() as client:
        view = client.import_files(paths, source, start=start, end=end, manifest=manifest, as_=session.person)
    session.answer(view, lambda width: render_import(view, width))
    return Refused.exit_code if view.rejected else 0
