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
        str | None, typer.Option("--digest", metavar="R", help="The release digest; without it, it is shown.")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Kept with the decision.")] = "",
) -> None:
    """Release a validated candidate; a service may then publish it.

    A person's decision over candidate, verdict and accepted warnings. Without --digest it shows what would be signed,
    and refuses with the command to copy: exit code 3. Another candidate, verdict or acceptance makes a release void.

    Example: errata release bf-20260214-daily-revenue-7f3a21c0 --digest 5c1e0b77…
    """
    with session.client() as client:
        view = client.release(run, digest=digest, note=note, as_=session.person)
    session.answer(view, lambda width: render_release(view, width))
