"""`errata cleanup`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import DECLINED
from errata.cli.app.session import Session
from errata.cli.commands.look.status import SomeRun
from errata.cli.render.audit import render_cleanup


def cleanup(
    session: Session,
    run: SomeRun = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed.")] = False,
) -> int:
    """Remove branches and tags of finished runs.

    Keeps everything that an open undo window needs. On a terminal it shows the list and asks first.

    Example: errata cleanup --run bf-20260214-daily-revenue-7f3a21c0 --dry-run
    """
    with session.client() as client:
        if session.asks and not dry_run:
            would = client.cleanup(run, dry_run=True, as_=session.person)
            if would.removed and not session.confirm(render_cleanup(would, session.width), "remove them?"):
                return DECLINED
        view = client.cleanup(run, dry_run=dry_run, as_=session.person)
    session.answer(view, lambda width: render_cleanup(view, width))
    return 0
