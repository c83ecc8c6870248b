"""`errata release`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.render.approval import render_release


def release(
    session: Session,
    run: Run,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="R", help="Release digest (default: show it).")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Comment, recorded with the decision.")] = "",
) -> None:
    """Release a validated candidate for publication.

    After a release a service account may publish the candidate. A person decides on the candidate, its verdict and the
    accepted warnings. Without --digest the command shows what the release covers and prints the command to copy (exit
    code 3). A release becomes void when candidate, verdict or accepted warnings change.

    Example: errata release bf-20260214-daily-revenue-7f3a21c0 --digest 5c1e0b77…
    """
    with session.client() as client:
        view = client.release(run, digest=digest, note=note, as_=session.person)
        session.answer_about(client, view, lambda width: render_release(view, width))
